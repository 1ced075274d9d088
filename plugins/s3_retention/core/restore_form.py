"""Reads what the form of a restore says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from s3_retention.core.form_fields import parse_operation_id, parse_time
from s3_retention.core.policy_rules import check_bucket, check_text
from s3_retention.core.restore import RestoreForm
from s3_retention.errors import RestoreRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

MAX_OBJECTS = 100_000


def parse_restore_form(form: Mapping[str, Any]) -> RestoreForm:
    """Read a form. Raises ``RestoreRefusedError``, which names the field, its value and the fix."""
    is_dry_run, max_objects = form.get("dry_run", True), form.get("max_objects")
    if not isinstance(is_dry_run, bool):
        raise RestoreRefusedError(f"dry_run = {is_dry_run!r}: it is true or false")
    if (
        isinstance(max_objects, bool)
        or not isinstance(max_objects, int)
        or not 1 <= max_objects <= MAX_OBJECTS
    ):
        raise RestoreRefusedError(f"max_objects = {max_objects!r}: write a number from 1 to {MAX_OBJECTS}")
    parsed = RestoreForm(
        operation_ids=_operation_ids(form.get("operation_ids")),
        interval_key=_text(form, "interval_key", lambda key: check_text(key.strip())),
        bucket=_text(form, "bucket", check_bucket),
        prefix=_text(form, "prefix"),
        deleted_from=_time(form, "deleted_from"),
        deleted_before=_time(form, "deleted_before"),
        max_objects=max_objects,
        is_dry_run=is_dry_run,
        note=_text(form, "note"),
    )
    if parsed.prefix is not None and parsed.bucket is None:
        raise RestoreRefusedError("prefix is given without bucket: name the bucket in which it is")
    first, last = parsed.deleted_from, parsed.deleted_before
    if first is not None and last is not None and first >= last:
        raise RestoreRefusedError(
            f"deleted_from = {first.isoformat()!r} is not before deleted_before = {last.isoformat()!r}: "
            "swap the two, or correct one"
        )
    if all(one is None for one in (parsed.operation_ids, parsed.interval_key, parsed.bucket, first, last)):
        raise RestoreRefusedError(
            "nothing is selected: give operation_ids, interval_key, bucket, or a time of the delete"
        )
    if not is_dry_run and parsed.note is None:
        raise RestoreRefusedError("note is empty: say in a sentence why, it is kept with each object")
    return parsed


def _operation_ids(value: Any) -> tuple[bytes, ...] | None:
    if not value:
        return None
    if not isinstance(value, list):
        raise RestoreRefusedError(
            f"operation_ids = {str(value)[:80]!r}: write a list of ids, 64 hex digits each"
        )
    return tuple(_operation_id(one) for one in value)


def _operation_id(value: Any) -> bytes:
    try:
        return parse_operation_id(value)
    except ValueError as error:
        raise RestoreRefusedError(
            f"operation_ids: {str(value)[:80]!r} {error}, as the ledger shows it"
        ) from None


def _text(form: Mapping[str, Any], field: str, check: Callable[[str], str] = check_text) -> str | None:
    value = form.get(field)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or (field == "note" and not value.strip()):
        raise RestoreRefusedError(f"{field} = {value!r}: write it as text, or leave it empty")
    try:
        return check(value)
    except ValueError as error:
        raise RestoreRefusedError(f"{field} = {value[:80]!r}: {error}") from None


def _time(form: Mapping[str, Any], field: str) -> datetime | None:
    try:
        return parse_time(form.get(field))
    except ValueError as error:
        raise RestoreRefusedError(f"{field} = {form.get(field)!r}: {error}") from None
