"""Reads what no listing tells of an object: its tags, and of a small one what is in it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from s3_retention.core.outcome import FailureClass, Outcome
from s3_retention.s3.answers import STORE_ERRORS, outcome_of_error, request_id_of
from s3_retention.s3.keys import NOT_SENDABLE, is_sendable

if TYPE_CHECKING:
    from botocore.response import StreamingBody
    from mypy_boto3_s3 import S3Client

    from s3_retention.core.objects import ObjectRef

TOO_LARGE = "PointerTooLarge"
"""Our own code: the object is larger than what is read into memory."""


def read_body(client: S3Client, ref: ObjectRef, *, max_bytes: int) -> bytes | Outcome:
    """Read an object whole, once: its bytes, ``already_absent``, or why that cannot be had.

    Of a larger one than ``max_bytes`` nothing is given, and no more is read. What is shorter than the store said is
    ``unknown``: half a list of names must not be taken for a whole one.
    """
    if not is_sendable(ref.key):
        return NOT_SENDABLE
    try:
        answer = client.get_object(Bucket=ref.bucket, Key=ref.key)
    except STORE_ERRORS as error:
        return outcome_of_error(error, whole_request=False)
    size = answer.get("ContentLength")
    with closing(answer["Body"]) as stream:
        if size is None:
            return _unknown("NoContentLength", "the store does not say how long it is", answer)
        if size > max_bytes:
            message = f"it has {size:,} bytes, and at most {max_bytes:,} are read"
            return Outcome(FailureClass.MALFORMED, code=TOO_LARGE, message=message)
        return _rest_of(stream)


def _rest_of(stream: StreamingBody) -> bytes | Outcome:
    try:
        # It raises where fewer bytes come than the store has said.
        return bytes(stream.read())
    except STORE_ERRORS as error:
        return outcome_of_error(error, whole_request=False)


def read_tags(client: S3Client, ref: ObjectRef) -> dict[str, str] | Outcome:
    """Read the tags of an object, once; where it has none they are empty. A gone object is ``already_absent``."""
    if not is_sendable(ref.key):
        return NOT_SENDABLE
    try:
        answer = client.get_object_tagging(Bucket=ref.bucket, Key=ref.key)
    except STORE_ERRORS as error:
        return outcome_of_error(error, whole_request=False)
    listed = answer.get("TagSet")
    if not isinstance(listed, list):
        return _unknown("NoTagSet", "the answer has no list of tags", answer)
    tags = {one.get("Key"): one.get("Value") for one in listed}
    if len(tags) < len(listed) or not all(isinstance(text, str) for pair in tags.items() for text in pair):
        return _unknown("OddTagSet", "a tag comes twice, or without a name or a value", answer)
    return tags


def _unknown(code: str, message: str, answer: Any) -> Outcome:
    return Outcome(FailureClass.UNKNOWN, code=code, message=message, request_id=request_id_of(dict(answer)))
