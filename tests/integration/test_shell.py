"""What an operator asks from a shell: the answers are those of the ledger, and nothing is changed."""

from __future__ import annotations

import json
import re
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from s3_retention.__main__ import app
from s3_retention.core.holder import Holder
from s3_retention.core.lever import PlaceHold, Scope, StopDeletes
from s3_retention.errors import LedgerError
from s3_retention.steps import audit, hold, simulate
from s3_retention.store.connection import connect
from tests.factories import NAME, ODD_KEYS, Timeless

if TYPE_CHECKING:
    from typer.testing import Result

    from sandbox.ledger import Ledger
    from tests.factories import World

A, B = "exports/2020-01/a.json", "exports/2020-01/b.json"


class Shell:
    """Runs a command against the ledger of a test."""

    def __init__(self, ledger: Ledger) -> None:
        """Ask as the writer; the session is read only."""
        self.env = {"S3_RETENTION_LEDGER_CONNINFO": ledger.writer_conninfo}

    def run(self, *arguments: str) -> Result:
        """Run it, as a person does."""
        return CliRunner().invoke(app, list(arguments), env=self.env)

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Run it with --json."""
        result = self.run(*arguments, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)


@pytest.fixture
def shell(ledger: Ledger) -> Shell:
    return Shell(ledger)


def act(world: World, what: Any, run: str) -> None:
    hold.run(world.conn, what, Holder("s3_retention_hold", run, "pull_lever"), acted_by="ann")


def test_explain_tells_a_keys_whole_story_in_order(world: World, shell: Shell) -> None:
    world.put(A, B)
    world.s3.deny(world.bucket, [A])
    world.clean()
    act(world, PlaceHold(world.bucket, Scope.PREFIX, "exports/", "a court order", None), "act-1")
    world.redrive()
    rows = shell.json("explain", f"s3://{world.bucket}/{A}")
    events = [row["event"] for row in rows]
    assert events[:4] == ["planned", "quarantined", "hold placed", "redriven"]
    assert sorted(events[4:]) == ["kept", "resolved"]  # of one transaction
    said = shell.run("explain", f"s3://{world.bucket}/{A}")
    assert said.exit_code == 0
    for words in ("permission, AccessDenied", "a court order", "held", "ann", "run-1"):
        assert words in said.stdout
    assert {row["policy"] for row in rows} == {NAME, None}


def test_explain_takes_keys_byte_for_byte(world: World, shell: Shell) -> None:
    world.put(*ODD_KEYS)
    world.clean()
    for key in ODD_KEYS:
        rows = shell.json("explain", f"s3://{world.bucket}/{key}")
        assert [row["event"] for row in rows] == ["planned", "deleted"]


def test_explain_of_a_key_that_nobody_has_planned_says_so(world: World, shell: Shell) -> None:
    world.put(A)
    world.clean()
    result = shell.run("explain", f"s3://{world.bucket}/exports/2020-01/A.json")
    assert result.exit_code == 1
    assert "the ledger knows nothing of" in result.stderr


@pytest.mark.parametrize(
    "uri", ["exports/a", "s3://bucket", "s3://bucket/", "s3:///key", "https://bucket/key"]
)
def test_what_is_no_object_is_refused_with_how_to_write_one(shell: Shell, uri: str) -> None:
    result = shell.run("explain", uri)
    assert result.exit_code == 2
    assert "write s3://bucket/key" in " ".join(re.sub(r"[^ -~]", " ", result.stderr).split())


def test_status_is_good_where_nothing_waits_and_not_where_something_does(world: World, shell: Shell) -> None:
    world.put(A)
    world.clean()
    (row,) = shell.json("status")
    assert (row["policy"], row["num_quarantined"], row["open_interval"]) == (NAME, 0, None)
    act(world, StopDeletes(None, "look first"), "act-1")
    (row,) = shell.json("status", code=1)
    assert row["stopped_for"] == "look first"


def test_status_counts_what_waits_in_quarantine(world: World, shell: Shell) -> None:
    world.put(A)
    world.s3.deny(world.bucket, [A])
    world.clean()
    (row,) = shell.json("status", code=1)
    assert row["num_quarantined"] == 1
    assert NAME in shell.run("status").stdout


def test_report_finds_a_run_by_its_id_and_an_interval_by_its_key(world: World, shell: Shell) -> None:
    world.put(A)
    world.clean()
    by_run, by_interval = shell.json("report", "run-1"), shell.json("report", world.interval_key())
    assert by_run == by_interval
    assert by_run[0]["counts"]["num_by_outcome"] == {"deleted": 1}
    assert shell.run("report", "run-2").exit_code == 1


def test_report_shows_the_screen_that_the_run_has_shown(world: World, shell: Shell) -> None:
    world.put(A, B)
    world.s3.deny(world.bucket, [B])
    said = str(world.clean())
    screen = shell.run("report", "run-1").stdout.splitlines()
    assert screen[0].endswith(" s3_retention_cleanup__weekly_digests/run-1")
    assert "\n".join(screen[1:]) == said


def test_a_report_of_an_earlier_release_is_shown_without_what_it_did_not_count(
    world: World, shell: Shell
) -> None:
    world.conn.execute(
        "INSERT INTO s3_retention.run_reports (dag_id, run_id, policy, counts, is_balanced) VALUES "
        "('d', 'old', 'p', '{\"num_discovered\": 0, \"num_by_outcome\": {}, \"is_balanced\": true}', true)"
    )
    said = shell.run("report", "old")
    assert said.exit_code == 0
    assert said.stdout.splitlines()[1:] == [
        "policy p, interval -",
        "  discovered                 0",
        "  bytes deleted              0",
        "  balanced",
    ]


def test_a_ledger_that_is_away_is_said_without_its_password(shell: Shell) -> None:
    shell.env["S3_RETENTION_LEDGER_CONNINFO"] = "postgresql://ann:secret@127.0.0.1:1/ledger"
    result = shell.run("status")
    assert result.exit_code == 3
    assert "the ledger database cannot be reached" in result.stderr
    assert "secret" not in result.output + result.stderr


def test_a_question_changes_nothing_and_cannot(world: World, shell: Shell) -> None:
    world.put(A)
    world.clean()
    before = world.rows("SELECT * FROM s3_retention.ledger_entries")
    for question in (["status"], ["report", "run-1"], ["explain", f"s3://{world.bucket}/{A}"]):
        assert shell.run(*question).exit_code == 0
    with closing(connect(shell.env["S3_RETENTION_LEDGER_CONNINFO"], is_read_only=True)) as conn:
        refused = pytest.raises(LedgerError, match="read-only transaction")
        with refused:
            hold.run(conn, StopDeletes(None, "no"), Holder("d", "r", "t"), acted_by="ann")
    assert world.rows("SELECT * FROM s3_retention.ledger_entries") == before


def test_simulated_shows_what_the_last_simulation_would_have_deleted(world: World, shell: Shell) -> None:
    assert shell.run("simulated", NAME).exit_code == 1
    world.put(A, "exports/2020-01/x.txt")
    source = Timeless(world.gateway, world.bucket, "exports/")
    simulate.run(world.conn, source, world.policy, Holder("d", "r", "plan_commands"))
    (row,) = shell.json("simulated", NAME)
    assert (row["num_due"], row["num_scanned"]) == (1, 2)
    assert shell.run("simulated", NAME, "--csv").stdout.splitlines()[1].startswith("due,1,1,2020-02-01")
    assert row["plan_hash"] in shell.run("simulated", NAME).stdout


def test_audits_shows_the_last_audits_and_what_the_newest_has_found(world: World, shell: Shell) -> None:
    assert shell.run("audits", "--policy", NAME).exit_code == 1
    world.put(A)
    world.clean()
    world.put(B)
    sides = audit.Sides(Timeless(world.gateway, world.bucket, "exports/"), world.gateway)
    audit.run(world.conn, sides, world.policy, Holder("s3_retention_audit", "a", "t"), acted_by="ann")
    (row,) = shell.json("audits", "--policy", NAME)
    assert row["counts"] == {
        "overdue": {"num_found": 1, "num_confirmed": 1, "num_refuted": 0, "num_unknown": 0}
    }
    assert "ann" in shell.run("audits", "--policy", NAME).stdout
    (found,) = shell.json("audits", "--policy", NAME, "--keys")
    assert (found["kind"], found["key"], found["state"]) == ("overdue", B, "confirmed")
    assert B in shell.run("audits", "--policy", NAME, "--keys").stdout
