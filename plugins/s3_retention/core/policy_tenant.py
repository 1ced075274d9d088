"""The section ``tenant`` of a policy file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from s3_retention.core.faults import Fault, FaultsError
from s3_retention.core.policy_rows import Column
from s3_retention.core.policy_types import StrictModel, Text, Whole

if TYPE_CHECKING:
    from typing_extensions import Self

_Name = Annotated[Text, Field(min_length=1)]
_Weight = Annotated[Whole, Field(ge=1, le=100)]


class Tenant(StrictModel):
    """Whose an object is: by its key, or by its row. One whose tenant cannot be read, or is an empty text, is kept."""

    group: _Name | None = Field(None, description="Named group of select.regex; its value is the tenant.")
    column: Column | None = Field(
        None, description="Column of source.rows.table; its value is the tenant. For postgres_rows only."
    )
    weights: dict[_Name, _Weight] = Field(
        default_factory=dict,
        description="How many requests of a tenant are laid in batches for each one of another; 1 where it is not "
        "named. No rule: it may change at any time.",
    )

    @model_validator(mode="after")
    def _be_one(self) -> Self:
        if (self.group is None) == (self.column is None):
            raise FaultsError([Fault((), "must be one of group and column; write one of the two")])
        return self
