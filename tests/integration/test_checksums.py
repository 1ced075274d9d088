"""A store that demands Content-MD5 gets it where the policy says so, and an operator is told where it does not."""

from __future__ import annotations

from base64 import b64encode
from hashlib import md5
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.outcome import FailureClass
from s3_retention.errors import BatchStoppedError
from s3_retention.s3.checksums import send_md5
from s3_retention.s3.gateway import S3Gateway
from tests.fakes import faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from tests.factories import World

KEYS = [f"exports/2020-01/{name}.json" for name in "abc"]
MISSING = refusal("InvalidRequest", 400, "Missing required header for this request: Content-MD5")


def test_content_md5_replaces_the_checksum_and_the_request_is_signed_with_it(world: World) -> None:
    world.put(*KEYS)
    client = world.s3.worker_client()
    sent: list[Any] = []
    client.meta.events.register("before-send.s3.DeleteObjects", lambda request, **_: sent.append(request))
    send_md5(client)
    assert world.through(S3Gateway(client)).clean().num_by_outcome == {"deleted": 3}
    (request,) = sent
    names = {name.lower() for name in request.headers}
    assert request.headers["Content-MD5"] == b64encode(md5(request.body).digest()).decode().encode()  # noqa: S324
    assert b"content-md5" in request.headers["Authorization"]
    assert not {name for name in names if name.startswith(("x-amz-checksum", "x-amz-sdk-checksum"))}


@pytest.mark.parametrize("missing", [MISSING, refusal("MissingContentMD5", 400)])
def test_a_store_that_demands_content_md5_stops_the_batch_with_the_setting_that_is_missing(
    world: World, missing: Exception
) -> None:
    world.put(*KEYS)
    demanding = world.through(faulty_gateway(world.gateway, delete_objects=one_after_another(missing)))
    (batch,) = demanding.planned().batches
    result = demanding.delete(batch)
    assert result.stopped_class == FailureClass.CONFIG.value
    assert result.stopped_message is not None
    assert result.stopped_message.endswith("set batch.checksum: md5 in the policy")
    with pytest.raises(BatchStoppedError, match=r"batch\.checksum: md5"):
        demanding.report()
    assert world.keys() == set(KEYS)
