"""The form of the redrive: what it takes, and how it says what it does not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from s3_retention.core.redrive import RedriveAction, Selection, parse_form
from s3_retention.errors import RedriveRefusedError

FORM: dict[str, Any] = dict.fromkeys(
    ("policy", "failure_classes", "code", "operation_ids", "tenant", "interval", "older_than", "note")
) | {"dry_run": True, "action": "redrive", "max_commands": 10_000}
ID = "ab" * 32


def test_an_empty_form_selects_everything_and_does_nothing() -> None:
    form = parse_form(FORM)
    assert (form.action, form.selection) == (RedriveAction.REDRIVE, Selection())
    assert (form.is_dry_run, form.note) == (True, None)


def test_each_field_narrows_the_selection() -> None:
    said = {
        "dry_run": False,
        "policy": "p",
        "failure_classes": ["permission"],
        "code": "AccessDenied",
        "operation_ids": [ID],
        "tenant": "t",
        "interval": " cleanup:p:a:b\n",
        "older_than": "2d12h",
        "max_commands": 7,
        "note": " the rights are back ",
    }
    form = parse_form(FORM | said)
    assert form.selection == Selection(
        policy="p",
        failure_classes=("permission",),
        operation_ids=(ID,),
        tenant="t",
        code="AccessDenied",
        older_than=timedelta(days=2, hours=12),
        interval_key="cleanup:p:a:b",
        max_commands=7,
    )
    assert form.selection.raw_operation_ids == [bytes.fromhex(ID)]
    assert (form.is_dry_run, form.note) == (False, "the rights are back")


def test_a_whole_number_is_one_however_json_writes_it() -> None:
    assert isinstance(parse_form(FORM | {"max_commands": 5.0}).selection.max_commands, int)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"action": "delete"}, "action = 'delete': it is redrive or waive"),
        ({"action": "waive"}, "note is empty: say why"),
        ({"action": "waive", "note": "  "}, "note is empty: say why"),
        ({"older_than": "2"}, "older_than = '2' is a duration without a unit"),
        ({"older_than": "soon"}, "older_than = 'soon' is not a duration"),
        ({"older_than": "-2d"}, "older_than = '-2d' is negative"),
        ({"operation_ids": ["everything"]}, "operation id 'everything' is not one: it has 64 hex digits"),
        ({"operation_ids": [ID[:-2]]}, "is not one: it has 64 hex digits"),
        ({"operation_ids": [ID, "zz" * 32]}, "is not one: it has 64 hex digits"),
    ],
)
def test_what_cannot_be_done_is_refused_with_field_value_and_fix(change: dict[str, Any], said: str) -> None:
    with pytest.raises(RedriveRefusedError) as error:
        parse_form(FORM | change)
    assert said in str(error.value)
