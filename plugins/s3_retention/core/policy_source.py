"""The section ``source`` of a policy file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from s3_retention.core import policy_rules as rules
from s3_retention.core.faults import Fault, FaultsError
from s3_retention.core.policy_rows import Rows
from s3_retention.core.policy_types import Flag, StrictModel, Text

if TYPE_CHECKING:
    from typing_extensions import Self


class Source(StrictModel):
    """Where candidates come from: a listing of a bucket under a prefix, or rows that name objects there."""

    type: Literal["s3_listing", "postgres_rows"] = Field(description="The kind of source.")
    bucket: Annotated[str, Field(strict=True), AfterValidator(rules.check_bucket)]
    prefix: Annotated[str, Field(strict=True), AfterValidator(rules.check_prefix)] = Field(
        "", description="Only keys that start with exactly this text, slash included, are listed."
    )
    aws_conn_id: Text = Field(
        "s3_retention_store", min_length=1, description="The Airflow connection of the store."
    )
    simulate_aws_conn_id: Text | None = Field(
        None,
        min_length=1,
        description="The Airflow connection by which a simulation looks: one whose identity cannot delete.",
    )
    whole_bucket: Flag = Field(default=False, description="Must be true where the prefix is empty.")
    rows: Rows | None = Field(None, description="The orphaned rows. For postgres_rows only.")

    @model_validator(mode="after")
    def _have_rows(self) -> Self:
        if self.type == "postgres_rows" and self.rows is None:
            raise FaultsError([Fault(("rows",), "is missing; type: postgres_rows needs it")])
        if self.type == "s3_listing" and self.rows is not None:
            raise FaultsError(
                [Fault(("rows",), "is only for type: postgres_rows; remove it, or change type")]
            )
        return self

    @model_validator(mode="after")
    def _say_whole_bucket(self) -> Self:
        if not self.prefix and not self.whole_bucket:
            raise FaultsError(
                [
                    Fault(
                        ("prefix",),
                        "is empty, which is the whole bucket; set a prefix, or whole_bucket: true",
                    )
                ]
            )
        if self.prefix and self.whole_bucket:
            raise FaultsError([Fault(("whole_bucket",), "contradicts source.prefix; remove one of the two")])
        return self
