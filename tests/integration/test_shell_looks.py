"""What an operator asks of the store from a shell: with an identity that cannot delete, and without Airflow."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from typer.testing import CliRunner

from s3_retention.__main__ import app
from s3_retention.core.holder import Holder
from s3_retention.core.lever import PauseTenant, PlaceHold, ResumeTenant, Scope
from s3_retention.steps import hold
from tests.factories import KEEP_LATEST, NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    from sandbox.ledger import Ledger
    from tests.factories import World

WRONG_SECRET = {"AWS_SECRET_ACCESS_KEY": "wrong"}
A, B = "exports/2020-01/a.json", "exports/2020-02/a.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def ask(world: World, ledger: Ledger, folder: Path) -> Callable[..., Result]:
    """Ask as somebody whose credentials see the bucket and nothing more."""
    write(world, folder)
    env = world.s3.env(world.s3.reader) | {
        "S3_RETENTION_LEDGER_CONNINFO": ledger.writer_conninfo,
        "AIRFLOW__S3_RETENTION__POLICIES_DIR": str(folder),
        "NO_PROXY": "127.0.0.1",
    }

    def run(*arguments: str, **more: str) -> Result:
        return CliRunner().invoke(app, list(arguments), env=env | more)

    return run


def write(world: World, folder: Path, **changes: Any) -> None:
    policy = world.under(**changes).policy.model_dump(mode="json", by_alias=True, exclude_none=True)
    (folder / f"{NAME}.yaml").write_text(yaml.safe_dump(policy))


# Simulate -------------------------------------------------------------------------------------------------
def test_a_policy_is_rehearsed_without_airflow_and_without_a_right_to_delete(
    world: World, ask: Callable[..., Result]
) -> None:
    world.put(A, B, "exports/2020-01/x.txt")
    said = ask("simulate", NAME)
    assert said.exit_code == 0, said.output
    assert "of 3 objects, 2 (2 bytes) would be deleted now; nothing was" in said.stdout
    assert world.keys() == {A, B, "exports/2020-01/x.txt"}
    assert world.value("SELECT count(*) FROM s3_retention.intervals") == 0
    (row,) = world.rows("SELECT policy, dag_id, num_due FROM s3_retention.simulations")
    assert row == {"policy": NAME, "dag_id": "shell", "num_due": 2}


def test_the_rehearsal_and_the_enforced_run_after_it_have_one_plan(
    world: World, ask: Callable[..., Result]
) -> None:
    world.put(A, B)
    (row,) = json.loads(ask("simulate", NAME, "--json").stdout)
    world.planned()
    stored = world.value("SELECT s3_retention.plan_hash(%(id)s, 0)", id=world.interval_id())
    assert row["plan_hash"] == stored.hex()
    assert json.loads(ask("simulated", NAME, "--json").stdout) == [row]
    assert ask("simulate", NAME, "--csv").stdout.splitlines()[0] == (
        "reason,num_objects,num_bytes,oldest_at,newest_at"
    )


def test_a_policy_that_is_not_there_or_broken_is_named_and_nothing_is_asked(
    world: World, ask: Callable[..., Result], folder: Path
) -> None:
    missing = ask("simulate", "weekly_reports")
    assert (missing.exit_code, "weekly_reports" in missing.stderr) == (1, True)
    (folder / f"{NAME}.yaml").write_text("name: weekly_digests\nmode: erase\n")
    broken = ask("simulate", NAME)
    assert broken.exit_code == 1
    assert "mode = 'erase'" in broken.stderr
    assert world.value("SELECT count(*) FROM s3_retention.simulations") == 0


def test_a_store_that_refuses_the_shell_is_said_in_a_sentence(
    world: World, ask: Callable[..., Result]
) -> None:
    world.put(A)
    said = ask("simulate", NAME, **WRONG_SECRET)
    assert said.exit_code == 1
    assert "SignatureDoesNotMatch" in said.stderr
    assert "Traceback" not in said.output


def test_a_shell_whose_profile_is_not_there_is_told_without_a_traceback(
    ask: Callable[..., Result],
) -> None:
    said = ask("simulate", NAME, AWS_PROFILE="nobody")
    assert said.exit_code == 1
    assert "AWS_PROFILE, AWS_ENDPOINT_URL and the like: ProfileNotFound" in said.stderr


def test_a_reader_of_the_ledger_cannot_write_a_simulation_down_and_is_told(
    world: World, ask: Callable[..., Result], ledger: Ledger
) -> None:
    world.put(A)
    world.root.execute("DROP ROLE IF EXISTS test_shell_reader")
    world.root.execute("CREATE ROLE test_shell_reader LOGIN IN ROLE s3_retention_reader")
    said = ask("simulate", NAME, "--conninfo", ledger.postgres.conninfo("test_shell_reader", ledger.database))
    assert said.exit_code == 1
    assert "permission" in said.stderr
    assert "Traceback" not in said.output


# Verdicts -------------------------------------------------------------------------------------------------
def verdict(ask: Callable[..., Result], world: World, key: str, *, code: int = 0) -> str:
    said = ask("explain", f"s3://{world.bucket}/{key}", "--verdict", "--json")
    assert said.exit_code == code, said.output
    (detail,) = [row["detail"] for row in json.loads(said.stdout) if row["event"] == "verdict"]
    return str(detail)


def test_explain_says_what_a_policy_decides_now_of_an_object_that_no_run_has_met(
    world: World, ask: Callable[..., Result]
) -> None:
    young = f"exports/{datetime.now(timezone.utc) - timedelta(days=1):%Y-%m}/a.json"
    world.put(A, young, "exports/2020-01/x.txt")
    assert verdict(ask, world, A) == "expire: due since 2020-03-02 00:00:00"
    assert verdict(ask, world, young).startswith("keep: not_due before ")
    assert verdict(ask, world, "exports/2020-01/x.txt") == "keep: not_selected"
    assert verdict(ask, world, "exports/2020-01/gone.json").startswith("not there: ")


def test_explain_names_what_one_object_alone_cannot_tell(
    world: World, ask: Callable[..., Result], folder: Path
) -> None:
    world.put(A)
    write(world, folder, keep=KEEP_LATEST)
    assert verdict(ask, world, A).endswith('unless a keep rule spares it in its group ["a"]: latest 1')
    write(world, folder, versions="noncurrent")
    assert verdict(ask, world, A) == "keep: current; what lies beneath is decided by its history"


def test_a_held_object_is_said_to_be_kept(world: World, ask: Callable[..., Result]) -> None:
    world.put(A)
    lever = PlaceHold(world.bucket, Scope.PREFIX, "exports/", "a court order", None)
    hold.run(world.conn, lever, Holder("s3_retention_hold", "act-1", "pull_lever"), acted_by="ann")
    assert verdict(ask, world, A) == "keep: held"


def test_an_object_of_a_paused_tenant_is_said_to_wait(
    world: World, ask: Callable[..., Result], folder: Path
) -> None:
    world.put(A)
    write(world, folder, tenant={"group": "customer"})
    lever = PauseTenant(None, "a", "they move out")
    hold.run(world.conn, lever, Holder("s3_retention_hold", "act-1", "pull_lever"), acted_by="ann")
    assert verdict(ask, world, A) == "keep: tenant_paused (a)"
    lever = PauseTenant(None, "b", "they move out")
    hold.run(world.conn, lever, Holder("s3_retention_hold", "act-2", "pull_lever"), acted_by="ann")
    lift = ResumeTenant(None, "a", "they have moved")
    hold.run(world.conn, lift, Holder("s3_retention_hold", "act-3", "pull_lever"), acted_by="ann")
    assert verdict(ask, world, A).startswith("expire: due since")


def test_an_object_that_cannot_be_looked_at_gets_no_verdict_but_why(
    world: World, ask: Callable[..., Result]
) -> None:
    world.put(A)
    said = ask("explain", f"s3://{world.bucket}/{A}", "--verdict", "--json", **WRONG_SECRET)
    (row,) = json.loads(said.stdout)
    assert row["detail"].startswith("cannot be looked at: ")


def test_a_broken_policy_file_does_not_hide_the_verdicts_of_the_others(
    world: World, ask: Callable[..., Result], folder: Path
) -> None:
    world.put(A)
    (folder / "broken.yaml").write_text("name: broken\n")
    said = ask("explain", f"s3://{world.bucket}/{A}", "--verdict", "--json")
    assert said.exit_code == 0
    assert "broken.yaml" in said.stderr
    assert [row["policy"] for row in json.loads(said.stdout)] == [NAME]


def test_a_key_that_no_policy_looks_at_is_known_to_nobody(world: World, ask: Callable[..., Result]) -> None:
    said = ask("explain", f"s3://{world.bucket}/elsewhere/a.json", "--verdict")
    assert said.exit_code == 1
    assert "knows nothing" in said.stderr
