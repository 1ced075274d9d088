"""The sections of a policy file. ``core.policy`` puts them together, the types are in ``policy_types``."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field, field_validator, model_validator

from s3_retention.core import policy_rules as rules
from s3_retention.core.durations import Duration
from s3_retention.core.faults import Fault, FaultsError
from s3_retention.core.policy_types import (
    Flag,
    Format,
    Glob,
    Share,
    StorageClasses,
    StrictModel,
    Tags,
    Text,
    Whole,
    refuse_null,
)

if TYPE_CHECKING:
    from typing_extensions import Self

MIN_LEASE = timedelta(seconds=30)
_ZERO = timedelta(0)


class Mode(str, Enum):
    """Whether a policy deletes, or only shows what it would delete."""

    SIMULATE = "simulate"
    ENFORCE = "enforce"


class AgeFrom(str, Enum):
    """Where the reference time of an object comes from."""

    LAST_MODIFIED = "last_modified"
    KEY_DATE = "key_date"
    TAG = "tag"
    DETACHED_AT = "detached_at"
    """When the last row of the object lost its parent."""


_OWNERS = {
    "regex": (AgeFrom.KEY_DATE,),
    "tag": (AgeFrom.TAG,),
    "format": (AgeFrom.KEY_DATE, AgeFrom.TAG),
}
"""By which ages a field of ``Age`` is asked for."""


class Versions(str, Enum):
    """Which versions of an object go, in a bucket that has versions."""

    CURRENT = "current"
    """The current one, under a delete marker: nothing is lost for good."""
    NONCURRENT = "noncurrent"
    """Those that something newer lies on top of, and delete markers with nothing beneath."""
    ALL = "all"
    """The whole history of a key, the current one with it."""


class Select(StrictModel):
    """Which of the listed objects: globs over the whole key, or a regular expression matching all of it."""

    include: tuple[Glob, ...] = Field((), description="'*' stays between slashes, '**' crosses them.")
    exclude: tuple[Glob, ...] = Field((), description="Taken out again; works beside a regex too.")
    regex: Annotated[str, Field(strict=True), AfterValidator(rules.check_regex)] | None = Field(
        None, description="Full match; '.' does not match a line break unless it says (?s)."
    )
    min_size: Whole | None = Field(None, ge=0, description="Bytes; smaller objects are kept.")
    max_size: Whole | None = Field(None, ge=0, description="Bytes; larger objects are kept.")
    storage_class: StorageClasses | None = Field(
        None, min_length=1, description="Storage classes, such as STANDARD; objects of others are kept."
    )
    tags: Tags | None = Field(
        None, description="Tags that an object must have, each with its value, some values, or '*' for any."
    )
    exclude_tags: Tags | None = Field(None, description="Tags any of which keeps an object.")

    _have_tags = field_validator("tags", "exclude_tags", mode="before")(refuse_null)

    @model_validator(mode="after")
    def _select_something(self) -> Self:
        faults = []
        if self.include and self.regex is not None:
            faults.append(Fault(("regex",), "stands beside include; remove one of the two"))
        if not self.include and not self.regex:
            faults.append(Fault((), "is an empty selection; add include (globs) or regex"))
        if self.min_size is not None and self.max_size is not None and self.min_size > self.max_size:
            faults.append(
                Fault(("min_size",), "is over max_size, so that no object is selected; exchange the two")
            )
        if any(set(glob) == {"*"} and len(glob) > 1 for glob in self.exclude):
            faults.append(Fault(("exclude",), "is an empty selection: '**' excludes every object; remove it"))
        if faults:
            raise FaultsError(faults)
        return self


class Age(StrictModel):
    """From when an object's age counts, and how long it is retained."""

    from_: AgeFrom = Field(
        alias="from",
        description="last_modified; key_date, a date in the key; tag, a date in a tag; or detached_at, of rows.",
    )
    regex: Annotated[str, Field(strict=True), AfterValidator(rules.check_date_regex)] | None = Field(
        None, description="Searched in the key; its group 'date' is read. For key_date only."
    )
    tag: Text | None = Field(None, min_length=1, description="The tag whose value is the date. For tag only.")
    format: Format | None = Field(
        None, description="strptime format of the group 'date', or of the tag. For key_date and tag only."
    )
    retain: Duration = Field(
        description="Counted from the reference time; for a date in the key, from its end."
    )
    whole_groups: tuple[Text, ...] = Field(
        (),
        description="Named groups of select.regex, such as a partition: of objects that agree in them none goes before "
        "all are due.",
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        faults = []
        for name, owners in _OWNERS.items():
            value = getattr(self, name)
            if self.from_ in owners and value is None:
                faults.append(Fault((name,), f"is missing; from: {self.from_.value} needs it"))
            if self.from_ not in owners and value is not None:
                which = " or ".join(one.value for one in owners)
                faults.append(Fault((name,), f"is only for from: {which}; remove it, or change from"))
        if self.retain <= _ZERO:
            faults.append(Fault(("retain",), "must be longer than nothing; write for example 30d"))
        if faults:
            raise FaultsError(faults)
        return self


class Window(StrictModel):
    """How an interval is cut, and how long a claim on it holds."""

    width: Duration | None = Field(
        None, description="The most time that one interval covers; null is no limit."
    )
    safety_delay: Duration = Field(timedelta(minutes=2), description="Intervals end this long before now.")
    lease: Duration = Field(
        timedelta(minutes=10), description="How long a claim holds without a sign of life."
    )
    max_age: Duration | None = Field(
        None,
        description="How old the watermark may grow before the watch finds it; null is two schedule periods.",
    )

    @model_validator(mode="after")
    def _be_positive(self) -> Self:
        faults = []
        if self.width is not None and self.width <= _ZERO:
            faults.append(Fault(("width",), "must be longer than nothing; write for example 8d, or null"))
        if self.safety_delay < _ZERO:
            faults.append(
                Fault(("safety_delay",), "is negative, which reaches into the future; write for example 2m")
            )
        if self.max_age is not None and self.max_age <= _ZERO:
            faults.append(Fault(("max_age",), "must be longer than nothing; write for example 2d, or null"))
        if self.lease < MIN_LEASE:
            faults.append(
                Fault(("lease",), "is under 30s, too short to finish a request; write for example 10m")
            )
        if faults:
            raise FaultsError(faults)
        return self


class Limits(StrictModel):
    """What one run may do, and beyond what a plan waits for a person. No rule: they may change at any time."""

    max_commands_per_run: Whole = Field(100_000, ge=1, description="The rest waits for the next run.")
    max_command_age: Duration | None = Field(
        timedelta(days=14),
        description="How old a command that has not ended may grow; the watch warns at 80 %, nothing is dropped. "
        "null is no limit.",
    )
    max_redrives: Whole = Field(
        5,
        ge=1,
        description="How often a quarantined command may be redriven; after that only its operation id takes it.",
    )
    max_denied_share: Share | None = Field(
        0.5,
        description="A batch stops when more than this share of at least 100 objects is denied; null is no limit.",
    )
    max_commands_per_tenant: Whole | None = Field(
        None,
        ge=1,
        description="How much of each tenant one interval takes, the longest due first; null is no limit.",
    )
    allow_expire_everything: Flag = Field(default=False, description="Let a policy empty its whole bucket.")
    max_objects: Whole | None = Field(
        None, ge=0, description="A plan of more commands waits for approval; null is no limit."
    )
    max_bytes: Whole | None = Field(
        None, ge=0, description="A plan of more bytes waits for approval; null is no limit."
    )
    max_share: Share | None = Field(
        None,
        description="A plan of more than this share of what its scan saw waits for approval; null is no limit.",
    )
    max_tenant_share: Share | None = Field(
        None,
        description="A plan of more than this share of what its scan saw of one tenant waits for approval; null is no "
        "limit.",
    )
    approval_timeout: Duration | None = Field(
        timedelta(hours=24),
        description="How long a plan waits for an answer before it counts as rejected; null is for ever.",
    )
    canary: Whole | None = Field(
        None,
        ge=1,
        le=1000,
        description="How many commands at most the first enforced run of a version deletes, in one request; null is no "
        "canary.",
    )

    @model_validator(mode="after")
    def _be_positive(self) -> Self:
        faults = [
            Fault((name,), f"must be longer than nothing; write for example {example}, or null")
            for name, value, example in (
                ("max_command_age", self.max_command_age, "14d"),
                ("approval_timeout", self.approval_timeout, "24h"),
            )
            if value is not None and value <= _ZERO
        ]
        if faults:
            raise FaultsError(faults)
        return self
