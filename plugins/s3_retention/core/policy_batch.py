"""The section ``batch`` of a policy file."""

from __future__ import annotations

from enum import Enum

from pydantic import Field

from s3_retention.core.policy_types import StrictModel, Whole


class Recheck(str, Enum):
    """What an object must still have, just before its delete, to be the one that was planned."""

    ETAG = "etag"
    TIME = "time"


class Checksum(str, Enum):
    """What a store wants to check the body of a DeleteObjects request by."""

    CRC32 = "crc32"
    MD5 = "md5"


class Batch(StrictModel):
    """How the work is cut for mapped tasks, and sent to the store."""

    size: Whole = Field(5000, ge=1, le=100_000, description="Commands of one mapped task.")
    parallel: Whole = Field(8, ge=1, le=32, description="Requests in flight in one mapped task.")
    parallel_per_tenant: Whole | None = Field(
        None,
        ge=1,
        le=32,
        description="Of these, how many at once may be of one tenant; null: as many as come.",
    )
    rate: Whole | None = Field(
        None,
        ge=1,
        description="Keys per second that all tasks together may delete under the prefix; null: as fast as the store "
        "answers, until it asks for less.",
    )
    recheck: Recheck = Field(
        Recheck.ETAG,
        description="etag; or time: each object is also looked at just before its delete, since an upload of the "
        "same bytes has the same ETag.",
    )
    checksum: Checksum = Field(
        Checksum.CRC32,
        description="md5 for a store that demands the header Content-MD5; crc32 for any other.",
    )
