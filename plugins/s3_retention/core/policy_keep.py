"""The section ``keep`` of a policy file: what stays of each group, due or not."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from s3_retention.core.durations import Duration, format_duration
from s3_retention.core.faults import Fault, FaultsError
from s3_retention.core.policy_types import StrictModel, Text, Whole

if TYPE_CHECKING:
    from typing_extensions import Self

_KEEP_RULES = ("latest", "daily", "weekly", "monthly", "yearly", "within", "min_bytes")
_ZERO = timedelta(0)


class ValidIf(StrictModel):
    """What an object must be for the rules to count on it: an empty dump is no backup, however new."""

    min_size: Whole = Field(ge=1, description="Bytes that a valid object has at least.")

    def __str__(self) -> str:
        """Say it in a few words."""
        return f"{self.min_size} bytes"


class Keep(StrictModel):
    """Objects of each group that are never expired, due or not: what any of the rules keeps, and always the newest."""

    latest: Whole | None = Field(None, ge=1, description="How many of each group are kept, the newest first.")
    daily: Whole | None = Field(
        None, ge=1, description="The newest of each of the last so many days that have one."
    )
    weekly: Whole | None = Field(None, ge=1, description="The same of weeks, from Monday (ISO 8601).")
    monthly: Whole | None = Field(None, ge=1, description="The same of months.")
    yearly: Whole | None = Field(None, ge=1, description="The same of years.")
    within: Duration | None = Field(
        None, description="All that are not older than this beside the newest of their group."
    )
    min_bytes: Whole | None = Field(
        None, ge=1, description="The newest, until they have so many bytes together."
    )
    valid_if: ValidIf | None = Field(
        None,
        description="Each rule is asked again, of the valid objects alone; what either answer keeps stays.",
    )
    group_by: tuple[Text, ...] = Field(
        (), description="Named groups of select.regex; none is one group for all."
    )

    @model_validator(mode="after")
    def _name_once(self) -> Self:
        if len(set(self.group_by)) < len(self.group_by):
            raise FaultsError([Fault(("group_by",), "names a group twice; remove one of the two")])
        return self

    @model_validator(mode="after")
    def _keep_something(self) -> Self:
        if not self.rules:
            raise FaultsError([Fault((), f"keeps nothing; write one of {', '.join(_KEEP_RULES)}")])
        if self.within is not None and self.within <= _ZERO:
            raise FaultsError([Fault(("within",), "must be longer than nothing; write for example 7d")])
        return self

    @property
    def rules(self) -> dict[str, int | timedelta]:
        """The rules that are set, by their names."""
        return {name: value for name in _KEEP_RULES if (value := getattr(self, name)) is not None}

    def __str__(self) -> str:
        """Say it in one line."""
        rules = ", ".join(
            f"{name} {format_duration(value) if isinstance(value, timedelta) else value}"
            for name, value in self.rules.items()
        )
        return rules if self.valid_if is None else f"{rules}, and the same of those that have {self.valid_if}"
