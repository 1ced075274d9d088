"""The section ``tenant`` of a policy file."""

from __future__ import annotations

from pydantic import Field

from s3_retention.core.policy_types import StrictModel, Text


class Tenant(StrictModel):
    """Whose an object is, by its key. An object whose tenant cannot be read, or is an empty text, is kept."""

    group: Text = Field(min_length=1, description="Named group of select.regex; its value is the tenant.")
