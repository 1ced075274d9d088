"""What a person asks for in the form of a redrive: which waiting commands, and what is to become of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

from s3_retention.core.durations import parse_duration
from s3_retention.core.form_fields import parse_operation_id
from s3_retention.errors import RedriveRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping


class RedriveAction(str, Enum):
    """What becomes of the selected commands."""

    REDRIVE = "redrive"
    WAIVE = "waive"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which waiting commands: all that is given must match, and None matches everything.

    ``older_than`` counts from the last failure. Raises ``RedriveRefusedError`` when an operation id is not one.
    """

    policy: str | None = None
    failure_classes: tuple[str, ...] | None = None
    operation_ids: tuple[str, ...] | None = None
    tenant: str | None = None
    code: str | None = None
    older_than: timedelta | None = None
    interval_key: str | None = None
    max_commands: int = 10_000

    def __post_init__(self) -> None:
        """Look at each operation id."""
        for one in self.operation_ids or ():
            _raw(one)

    @property
    def raw_operation_ids(self) -> list[bytes] | None:
        """The operation ids as the ledger has them."""
        return None if self.operation_ids is None else [_raw(one) for one in self.operation_ids]


@dataclass(frozen=True, slots=True)
class RedriveForm:
    """What a form says."""

    action: RedriveAction
    selection: Selection
    is_dry_run: bool
    note: str | None


def parse_form(form: Mapping[str, Any]) -> RedriveForm:
    """Read a form. Raises ``RedriveRefusedError``, which names the field, its value and the fix."""
    try:
        action = RedriveAction(form["action"])
    except ValueError:
        raise RedriveRefusedError(f"action = {form['action']!r}: it is redrive or waive") from None
    note = (form["note"] or "").strip() or None
    if action is RedriveAction.WAIVE and note is None:
        raise RedriveRefusedError(
            "note is empty: say why these commands are waived, it is kept with your name"
        )
    older_than = None
    if form["older_than"]:
        try:
            older_than = parse_duration(form["older_than"])
        except ValueError as error:
            raise RedriveRefusedError(f"older_than = {form['older_than']!r} {error}") from None
        if older_than < timedelta(0):
            raise RedriveRefusedError(
                f"older_than = {form['older_than']!r} is negative; write for example 2d"
            )
    selection = Selection(
        policy=form["policy"] or None,
        failure_classes=tuple(form["failure_classes"] or ()) or None,
        operation_ids=tuple(form["operation_ids"] or ()) or None,
        tenant=form["tenant"] or None,
        code=form["code"] or None,
        older_than=older_than,
        interval_key=form["interval"].strip() if form["interval"] else None,
        # JSON has one kind of number: 5.0 is whole, too.
        max_commands=int(form["max_commands"]),
    )
    return RedriveForm(action, selection, bool(form["dry_run"]), note)


def _raw(operation_id: str) -> bytes:
    try:
        return parse_operation_id(operation_id)
    except ValueError as error:
        raise RedriveRefusedError(
            f"operation id {operation_id[:80]!r} {error}, as the quarantine shows it"
        ) from None
