"""A lifecycle configuration as S3 has it, read strictly: a field that is not known is a fault, not an omission.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_LifecycleRule.html
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_pascal

Days = Annotated[int, Field(ge=1, le=100_000)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_pascal)


class Expiration(_Part):
    """When current versions expire."""

    days: Days | None = None
    date: str | None = None
    expired_object_delete_marker: bool | None = None


class NoncurrentVersionExpiration(_Part):
    """When noncurrent versions expire, and how many of each key stay."""

    noncurrent_days: Days
    newer_noncurrent_versions: Annotated[int, Field(ge=1)] | None = None


class AbortIncompleteMultipartUpload(_Part):
    """When unfinished uploads are aborted."""

    days_after_initiation: Days


class Tag(_Part):
    """A tag that an object must have, with this value."""

    key: str
    value: str


class Scope(_Part):
    """What all of a filter's conditions are; sizes are exclusive bounds, in bytes."""

    prefix: str | None = None
    tags: list[Tag] | None = None
    object_size_greater_than: Annotated[int, Field(ge=0)] | None = None
    object_size_less_than: Annotated[int, Field(ge=1)] | None = None


class Filter(Scope):
    """One condition, or several under ``And``."""

    tag: Tag | None = None
    all_of: Scope | None = Field(None, alias="And")


class Rule(_Part):
    """One rule; ``prefix`` beside the filter is the form of before 2016."""

    rule_id: str | None = Field(None, alias="ID")
    status: Literal["Enabled", "Disabled"]
    filter: Filter | None = None
    prefix: str | None = None
    expiration: Expiration | None = None
    noncurrent_version_expiration: NoncurrentVersionExpiration | None = None
    abort_incomplete_multipart_upload: AbortIncompleteMultipartUpload | None = None
    transition: Any = None
    transitions: list[Any] | None = None
    noncurrent_version_transition: Any = None
    noncurrent_version_transitions: list[Any] | None = None

    @property
    def scope(self) -> Scope:
        """What the rule is for, in whichever form it was written."""
        if self.filter is None:
            return Scope.model_validate({"Prefix": self.prefix})
        return self.filter.all_of or self.filter

    @property
    def wanted_tags(self) -> list[Tag]:
        """The tags that an object must have, in whichever form they were written."""
        alone = self.filter.tag if self.filter is not None else None
        return [*(self.scope.tags or ()), *(() if alone is None else (alone,))]
