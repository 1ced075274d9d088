"""What a policy of a source of rows may not say besides: contradictions between its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.faults import Fault
from s3_retention.core.version_rules import tag_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from s3_retention.core.policy import RetentionPolicy


def _age_of_rows(policy: RetentionPolicy) -> Iterator[Fault]:
    is_rows = policy.source.rows is not None
    if is_rows and policy.age.from_ != "detached_at":
        yield Fault(
            ("age", "from"), "does not go with postgres_rows, whose age is an orphan's; write detached_at"
        )
    if not is_rows and policy.age.from_ == "detached_at":
        yield Fault(
            ("age", "from"), "is only for source.type: postgres_rows; write last_modified, key_date or tag"
        )


def _keep_of_rows(policy: RetentionPolicy) -> Iterator[Fault]:
    if policy.source.rows is not None and policy.keep is not None:
        yield Fault(
            ("keep",),
            "does not go with postgres_rows: a keep rule must see every object of a group; remove it",
        )


def _groups_of_rows(policy: RetentionPolicy) -> Iterator[Fault]:
    if policy.source.rows is None:
        return
    if policy.age.whole_groups:
        yield Fault(
            ("age", "whole_groups"),
            "does not go with postgres_rows: it must see every object of a group; remove it",
        )
    if policy.select.storage_class is not None:
        yield Fault(
            ("select", "storage_class"),
            "does not go with postgres_rows, whose objects are not listed; remove it",
        )


def _versions_of_rows(policy: RetentionPolicy) -> Iterator[Fault]:
    if policy.source.rows is not None and policy.versions != "current":
        yield Fault(
            ("versions",), "does not go with postgres_rows, whose rows name no version; write current"
        )


def _detach_of_rows(policy: RetentionPolicy) -> Iterator[Fault]:
    rows = policy.source.rows
    if rows is None or policy.mode != "enforce":
        return
    if rows.detached_at is None and rows.soft_delete is None:
        # Else a row that is attached and detached again between two looks would seem to have been orphaned all along.
        yield Fault(
            ("source", "rows", "detached_at"),
            "is missing, and so is soft_delete; mode: enforce needs one of these columns (docs/policies.md)",
        )


def _tenant_of_column(policy: RetentionPolicy) -> Iterator[Fault]:
    if policy.tenant is not None and policy.tenant.column is not None and policy.source.rows is None:
        yield Fault(("tenant", "column"), "is only for source.type: postgres_rows; write group")


def _pointers_of_rows(policy: RetentionPolicy) -> Iterator[Fault]:
    if policy.pointers and policy.source.rows is not None:
        yield Fault(
            ("pointers",), "does not go with postgres_rows; write source.rows.references, or remove it"
        )


def _tags_of_rows(policy: RetentionPolicy) -> Iterator[Fault]:
    if policy.source.rows is not None:
        fault = "does not go with postgres_rows, whose objects are not listed; remove it"
        yield from (Fault(path, fault) for path in tag_fields(policy))


SOURCE_RULES: tuple[tuple[frozenset[str], Callable[[RetentionPolicy], Iterator[Fault]]], ...] = (
    (frozenset({"source", "age"}), _age_of_rows),
    (frozenset({"source", "keep"}), _keep_of_rows),
    (frozenset({"source", "age", "select"}), _groups_of_rows),
    (frozenset({"source", "versions"}), _versions_of_rows),
    (frozenset({"source", "mode"}), _detach_of_rows),
    (frozenset({"source", "tenant"}), _tenant_of_column),
    (frozenset({"source", "pointers"}), _pointers_of_rows),
    (frozenset({"source", "select", "age"}), _tags_of_rows),
)
