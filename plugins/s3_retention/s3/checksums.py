"""The header by which a store checks the body of a DeleteObjects request."""

from __future__ import annotations

from base64 import b64encode
from hashlib import md5
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def send_md5(client: S3Client) -> None:
    """Let a client send ``Content-MD5`` with DeleteObjects in place of the CRC32 that botocore sends since 2025.

    Older S3-compatible stores answer ``MissingContentMD5`` without it
    (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html, "Content-MD5").
    """
    client.meta.events.register("before-sign.s3.DeleteObjects", _replace_checksum)


def _replace_checksum(request: Any, **_: Any) -> None:
    for name in list(request.headers):
        if name.lower().startswith(("x-amz-checksum-", "x-amz-sdk-checksum-")):
            del request.headers[name]
    # A check against damage on the way, which is what the header is for; also where MD5 is no cipher any more.
    digest = md5(request.body, usedforsecurity=False).digest()
    del request.headers["Content-MD5"]
    request.headers["Content-MD5"] = b64encode(digest).decode("ascii")
