"""The section ``tenant`` of a policy file."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from s3_retention.core.policy_types import StrictModel, Text, Whole

_Name = Annotated[Text, Field(min_length=1)]
_Weight = Annotated[Whole, Field(ge=1, le=100)]


class Tenant(StrictModel):
    """Whose an object is, by its key. An object whose tenant cannot be read, or is an empty text, is kept."""

    group: Text = Field(min_length=1, description="Named group of select.regex; its value is the tenant.")
    weights: dict[_Name, _Weight] = Field(
        default_factory=dict,
        description="How many requests of a tenant are laid in batches for each one of another; 1 where it is not "
        "named. No rule: it may change at any time.",
    )
