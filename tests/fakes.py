"""An S3 client of function fields, for faults that no real server makes on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import ClientError
from botocore.hooks import HierarchicalEmitter

from s3_retention.s3.gateway import S3Gateway
from s3_retention.s3.limits import RetryLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mypy_boto3_s3 import S3Client

    Call = Callable[..., Any]


NO_WAIT = RetryLimits(sleep=lambda _: None)


def _unexpected(name: str) -> Call:
    def call(**arguments: Any) -> Any:
        raise AssertionError(f"{name} was not expected: {arguments}")

    return call


@dataclass
class FakeClient:
    """What the gateway needs of a boto3 client. A call without a function fails the test."""

    list_objects_v2: Call = field(default_factory=lambda: _unexpected("list_objects_v2"))
    head_object: Call = field(default_factory=lambda: _unexpected("head_object"))
    head_bucket: Call = field(default_factory=lambda: _unexpected("head_bucket"))
    delete_objects: Call = field(default_factory=lambda: _unexpected("delete_objects"))
    delete_object: Call = field(default_factory=lambda: _unexpected("delete_object"))
    get_object_retention: Call = field(default_factory=lambda: _unexpected("get_object_retention"))
    get_object_legal_hold: Call = field(default_factory=lambda: _unexpected("get_object_legal_hold"))
    get_object: Call = field(default_factory=lambda: _unexpected("get_object"))
    get_object_tagging: Call = field(default_factory=lambda: _unexpected("get_object_tagging"))
    list_multipart_uploads: Call = field(default_factory=lambda: _unexpected("list_multipart_uploads"))
    abort_multipart_upload: Call = field(default_factory=lambda: _unexpected("abort_multipart_upload"))
    list_object_versions: Call = field(default_factory=lambda: _unexpected("list_object_versions"))
    get_bucket_versioning: Call = lambda **_: {}
    meta: Any = field(
        default_factory=lambda: SimpleNamespace(endpoint_url="http://fake", events=HierarchicalEmitter())
    )


@dataclass(frozen=True)
class AroundGateway:
    """A gateway around another one: what a subclass does not say anew is as in that."""

    real: S3Gateway

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def fake_gateway(**calls: Call) -> S3Gateway:
    """A gateway to a store that is only these functions."""
    return S3Gateway(cast("S3Client", FakeClient(**calls)), NO_WAIT)


def faulty_gateway(real: S3Gateway, **calls: Call) -> S3Gateway:
    """A gateway to a real store in which some calls are replaced."""
    names = ("list_objects_v2", "head_object", "head_bucket", "delete_objects", "delete_object")
    versions = (
        "list_object_versions",
        "get_bucket_versioning",
        "get_object_retention",
        "get_object_legal_hold",
        "get_object",
        "get_object_tagging",
        "list_multipart_uploads",
        "abort_multipart_upload",
    )
    ours = {name: getattr(real.client, name) for name in (*names, *versions, "meta")} | calls
    return S3Gateway(cast("S3Client", FakeClient(**ours)), NO_WAIT)


def one_after_another(*answers: Any) -> Call:
    """A call that gives, or raises, one answer after another, and the last one for ever."""
    left = list(answers)

    def call(**_: Any) -> Any:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return call


def refusal(
    code: str,
    status: int = 400,
    message: str = "the store says so",
    headers: Mapping[str, str] | None = None,
) -> ClientError:
    """What boto3 raises for an error answer."""
    return ClientError(
        {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {  # type: ignore[typeddict-item]
                "HTTPStatusCode": status,
                "RequestId": "R1",
                "HTTPHeaders": dict(headers or {}),
            },
        },
        "Operation",
    )


def deleted(*keys: str, errors: Iterable[tuple[str, str]] = ()) -> dict[str, Any]:
    """An answer to DeleteObjects: these keys are gone, and those have an error code."""
    return {
        "Deleted": [{"Key": key} for key in keys],
        "Errors": [{"Key": key, "Code": code, "Message": f"about {key}"} for key, code in errors],
        "ResponseMetadata": {"RequestId": "R2", "HTTPStatusCode": 200},
    }


def asked(arguments: dict[str, Any]) -> list[str]:
    """The keys that a DeleteObjects request names."""
    return [one["Key"] for one in arguments["Delete"]["Objects"]]
