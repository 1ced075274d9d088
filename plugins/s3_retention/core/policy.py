"""Retention policies: what a policy file says, refused as a whole when any part of it is doubtful.

``parse_policy`` is the one way from a file to a policy; the sections are in ``policy_parts``, ``policy_keep`` and
``policy_batch``, the checks in ``policy_rules``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator

from s3_retention.core import policy_rules as rules
from s3_retention.core.durations import Duration
from s3_retention.core.faults import FaultsError, Path, faults_of, format_faults
from s3_retention.core.policy_batch import Batch
from s3_retention.core.policy_hash import hash_rules
from s3_retention.core.policy_keep import Keep
from s3_retention.core.policy_parts import (
    Age,
    AgeFrom,
    Limits,
    Mode,
    Select,
    Versions,
    Window,
)
from s3_retention.core.policy_pointers import Pointer
from s3_retention.core.policy_rows import RowKey, Rows
from s3_retention.core.policy_source import Source
from s3_retention.core.policy_tenant import Tenant
from s3_retention.core.policy_types import Flag, StrictModel, Text, UtcTime, Whole, refuse_null
from s3_retention.core.schedule import check_schedule
from s3_retention.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta

    from typing_extensions import Self

__all__ = [
    "Age",
    "AgeFrom",
    "Batch",
    "Keep",
    "Limits",
    "Mode",
    "Pointer",
    "RetentionPolicy",
    "Select",
    "Source",
    "StrictModel",
    "Tenant",
    "Versions",
    "Window",
    "parse_policy",
    "policy_schema",
]

DAG_PREFIX = "s3_retention_cleanup__"
MAX_POINTERS = 100
"""Each is read for every 1,000 objects that go."""


class RetentionPolicy(StrictModel):
    """One policy file. All of it is validated but the floor of the retention: ``parse_policy`` does that."""

    name: Annotated[str, Field(strict=True), AfterValidator(rules.check_name)] = Field(
        description="The file's stem; the DAG is s3_retention_cleanup__<name>.",
        json_schema_extra={"pattern": "^[a-z][a-z0-9_]{0,62}$"},
    )
    version: Annotated[str, Field(strict=True), AfterValidator(rules.check_version)] = Field(
        description="Part of every operation id; raise it when source, select, versions, age, keep, "
        "pointers, keep_newest_noncurrent, bypass_governance, tenant or timezone change.",
        json_schema_extra={"pattern": "^[A-Za-z0-9._-]{1,64}$"},
    )
    mode: Mode = Field(Mode.SIMULATE, description="simulate shows what would go; enforce deletes it.")
    description: Text = Field("", description="One sentence for the operator.")
    owner: Text = Field("airflow", min_length=1, description="Who answers for it; shown as the DAG's owner.")
    schedule: Annotated[str, Field(strict=True), AfterValidator(check_schedule)] | None = Field(
        None,
        description="Five cron fields or a preset such as @daily; null is manual only.",
        examples=["0 3 * * 0"],
    )
    timezone: Annotated[str, Field(strict=True), AfterValidator(rules.check_timezone)] = Field(
        "UTC", description="IANA name; of the schedule, and of a date in a key."
    )
    start_at: UtcTime | None = Field(
        None, description="Where the first enforced interval starts; else 1970-01-01."
    )
    deadline: Annotated[Duration, AfterValidator(rules.check_positive)] | None = Field(
        None, description="How long after its tick a run may take before it counts as late; null is for ever."
    )
    source: Source
    select: Select
    versions: Versions = Field(
        Versions.CURRENT,
        description="current adds a delete marker; noncurrent removes versions that are not the latest, from when they "
        "became so, and lone delete markers; all removes every version.",
    )
    age: Age
    keep: Keep | None = None
    pointers: tuple[Pointer, ...] | None = Field(
        None,
        min_length=1,
        max_length=MAX_POINTERS,
        description="Objects, such as manifests, that name others: what they name stays, and so do they.",
    )
    tenant: Tenant | None = None
    keep_newest_noncurrent: Whole | None = Field(
        None,
        ge=1,
        description="How many noncurrent versions of each key are kept. For versions: noncurrent only.",
    )
    bypass_governance: Flag = Field(
        default=False,
        description="Delete versions in spite of an Object Lock retention in mode GOVERNANCE; it takes a policy that "
        "names versions.",
    )
    abort_incomplete_after: Annotated[Duration, AfterValidator(rules.check_positive)] | None = Field(
        None,
        description="Abort multipart uploads of selected keys that began so long ago and never ended; null is never.",
    )
    window: Window = Window()
    batch: Batch = Batch()
    limits: Limits = Limits()

    _say_what_stays = field_validator("keep", "pointers", mode="before")(refuse_null)

    @model_validator(mode="after")
    def _refuse_contradictions(self) -> Self:
        faults = rules.contradictions(self)
        if faults:
            raise FaultsError(faults)
        return self

    @property
    def keeps_histories(self) -> bool:
        """A keep rule goes with named versions: it ranks current objects, and spares a key with its whole history."""
        return self.keep is not None and self.versions is not Versions.CURRENT

    @property
    def asks_tags(self) -> bool:
        """The tags of an object decide about it, which no listing tells: each that else would go is asked for them."""
        select = self.select
        return select.tags is not None or select.exclude_tags is not None or self.age.tag is not None

    @property
    def rules_hash(self) -> str:
        """Return the SHA-256, in hex, of what decides which objects go, and when."""
        return hash_rules(self)

    @property
    def dag_id(self) -> str:
        """Return the id of the cleanup DAG of this policy."""
        return f"{DAG_PREFIX}{self.name}"


_SECTIONS: dict[str, type[StrictModel]] = {
    "source": Source,
    "select": Select,
    "age": Age,
    "keep": Keep,
    "tenant": Tenant,
    "window": Window,
    "batch": Batch,
    "limits": Limits,
}


def _field_names(model: type[StrictModel]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in model.model_fields.items())


_FIELDS: dict[Path, tuple[str, ...]] = {(): _field_names(RetentionPolicy)} | {
    (name,): _field_names(model) for name, model in _SECTIONS.items()
}
_FIELDS |= {("source", "rows"): _field_names(Rows), ("source", "rows", "key"): _field_names(RowKey)}
_FIELDS |= {("pointers",): _field_names(Pointer)}


def parse_policy(
    data: Mapping[str, Any],
    *,
    where: str,
    min_retention: timedelta,
    read_sql: Callable[[str], str | None] | None = None,
) -> RetentionPolicy:
    """Validate what a policy file says. ``where`` names the file in messages; ``min_retention`` is the floor.

    ``read_sql`` gives the text of a file beside it, None where there is none.
    Raises PolicyError with every fault that can be told, one line each: ``file: field = value: fix``.
    """
    try:
        policy = RetentionPolicy.model_validate(dict(data), context={"read_sql": read_sql})
    except ValidationError as error:
        faults = faults_of(error, _FIELDS)
        broken = {str(fault.path[0]) for fault in faults if fault.path} | {
            name for name in ("source", "select", "age") if name not in data
        }
        # A fault in one section must not hide what is wrong between the others.
        sound = _sound_parts(data, broken, read_sql)
        faults += rules.contradictions(sound, broken=broken)
        faults += rules.below_floor(sound, min_retention, broken=broken)
        raise PolicyError(format_faults(where, data, faults)) from None
    floor = [*rules.below_floor(policy, min_retention)]
    if floor:
        raise PolicyError(format_faults(where, data, floor))
    return policy


def _sound_parts(
    data: Mapping[str, Any], broken: set[str], read_sql: Callable[[str], str | None] | None
) -> RetentionPolicy:
    """Build, for the rules only, a policy of the fields that are valid; what is ``broken`` is not there."""
    parts: dict[str, Any] = {}
    for name, value in data.items():
        if name in _FIELDS[()] and name not in broken:
            model = _SECTIONS.get(name)
            parts[name] = (
                value
                if model is None or value is None
                else model.model_validate(value, context={"read_sql": read_sql})
            )
    return RetentionPolicy.model_construct(**parts)


def policy_schema() -> str:
    """Return the JSON Schema of a policy file, for editors, as text with a final line break."""
    schema = RetentionPolicy.model_json_schema()
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(head | schema, indent=2, ensure_ascii=False) + "\n"
