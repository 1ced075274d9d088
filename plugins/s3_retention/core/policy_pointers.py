"""The section ``pointers`` of a policy file: objects that name others, which stay as long as they are named."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field, model_validator

from s3_retention.core import policy_rules as rules
from s3_retention.core.faults import Fault, FaultsError
from s3_retention.core.policy_types import StrictModel, Text

if TYPE_CHECKING:
    from typing_extensions import Self

EACH = "*"
"""In a path: every element of a list, or every value of a mapping."""


class PointerFormat(str, Enum):
    """How a pointer names objects."""

    LINES = "lines"
    """One in each line that is not empty."""
    JSON = "json"
    """Texts in a JSON document, at a path."""


class Pointer(StrictModel):
    """One object, such as a manifest, that names others of its bucket."""

    key: Annotated[str, Field(strict=True, min_length=1), AfterValidator(rules.check_prefix)] = Field(
        description="Its whole key, in source.bucket."
    )
    format: PointerFormat = Field(
        PointerFormat.LINES, description="lines: a name in each line; json: names at path."
    )
    path: tuple[Text, ...] = Field(
        (),
        description="Of json: the fields that lead to the names, '*' for all of a list or mapping; none is a document "
        "that is one name.",
        examples=[["files", "*", "key"]],
    )
    base: Annotated[str, Field(strict=True), AfterValidator(rules.check_prefix)] = Field(
        "", description="What stands before each name that is no s3:// URL, to make it a key."
    )

    @model_validator(mode="after")
    def _lead_somewhere(self) -> Self:
        if self.path and self.format is PointerFormat.LINES:
            raise FaultsError([Fault(("path",), "is only for format: json; remove it, or change format")])
        return self
