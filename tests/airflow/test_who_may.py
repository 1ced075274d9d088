"""Who may start what a person starts: an Airflow with logins, where a viewer is refused and the ledger names the admin.

The acceptance tests run without logins, where everyone is an admin: nothing there says who may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest
from jsonschema import FormatChecker, validate

from sandbox.stack import Stack, stack
from tests.airflow.form_input import AUDIT, FORMS, HOLD, REDRIVE, RESTORE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.xdist_group("logins"), pytest.mark.timeout(300)]

CLEANUP = "s3_retention_cleanup__guarded"
BUCKET = "guarded"
KEY = "data/2026-01-01/0.bin"
POLICY = """
name: guarded
version: v1
mode: enforce
source: {type: s3_listing, bucket: guarded, prefix: data/}
select: {include: ["data/**"]}
age: {from: key_date, regex: "data/(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})/", format: "%Y-%m-%d", retain: 1d}
window: {safety_delay: 0s}
limits: {allow_expire_everything: true}
"""
# Names that are no names of roles: what the ledger records is who it was, not what they may.
ADMIN, VIEWER = "ann", "victor"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One denied object in quarantine, whose cause is gone since."""
    policies: Path = tmp_path_factory.mktemp("policies")
    (policies / "guarded.yaml").write_text(POLICY)
    with stack(
        policies=policies,
        worker_buckets=(BUCKET,),
        users={ADMIN: "admin", VIEWER: "viewer"},
        env={"AIRFLOW__S3_RETENTION__TASK_RETRIES": "0"},
    ) as started:
        client = started.s3.admin_client()
        client.create_bucket(Bucket=BUCKET)
        client.put_object(Bucket=BUCKET, Key=KEY, Body=b"x")
        started.s3.deny(BUCKET, [KEY])
        for dag_id in (CLEANUP, REDRIVE):
            started.airflow.wait_for_dag(dag_id)
            started.airflow.unpause(dag_id)
        run_id = started.airflow.trigger(CLEANUP)
        started.airflow.wait_for_run(CLEANUP, run_id, expect="success")
        started.s3.allow(BUCKET, [KEY])
        yield started


def ask(guarded: Stack, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(guarded.ledger.superuser_conninfo) as conn:
        return conn.execute(statement.encode()).fetchall()


def start(guarded: Stack, dag_id: str, user: str) -> httpx.Response:
    body: dict[str, Any] = {"logical_date": None, "conf": {"dry_run": False} if dag_id == REDRIVE else {}}
    return guarded.airflow.request("POST", f"/dags/{dag_id}/dagRuns", user=user, json=body)


def manual_dags(guarded: Stack) -> list[str]:
    dags = guarded.airflow.get("/dags", tags="manual", exclude_stale=False)["dags"]
    return sorted(dag["dag_id"] for dag in dags)


def test_a_viewer_starts_no_dag_that_a_person_starts_and_no_run_is_made(guarded: Stack) -> None:
    dag_ids = manual_dags(guarded)
    assert REDRIVE in dag_ids
    for dag_id in (*dag_ids, CLEANUP):
        before = guarded.airflow.dag_runs(dag_id)
        assert start(guarded, dag_id, VIEWER).status_code == 403, dag_id
        # A viewer sees what there is: it is the right to start that is missing, and not the login.
        assert guarded.airflow.request("GET", f"/dags/{dag_id}", user=VIEWER).status_code == 200
        assert guarded.airflow.dag_runs(dag_id) == before
    assert ask(guarded, "SELECT event, acted_by FROM s3_retention.quarantine_events") == [
        ("quarantined", None)
    ]


def test_without_a_login_nothing_is_started(guarded: Stack) -> None:
    for dag_id in manual_dags(guarded):
        answer = httpx.post(
            f"{guarded.airflow.url}/api/v2/dags/{dag_id}/dagRuns",
            json={"logical_date": None, "conf": {}},
            trust_env=False,
        )
        assert answer.status_code == 401, dag_id


def test_a_viewer_lets_no_run_begin_again_and_the_ledger_names_the_admin_who_started_it(
    guarded: Stack,
) -> None:
    started = start(guarded, REDRIVE, ADMIN)
    assert started.status_code == 200
    run_id = started.json()["dag_run_id"]
    guarded.airflow.wait_for_run(REDRIVE, run_id, expect="success")
    acts = "SELECT event, acted_by, run_id FROM s3_retention.quarantine_events WHERE event = 'redriven'"
    assert ask(guarded, acts) == [("redriven", ADMIN, run_id)]
    settled = "SELECT key, outcome FROM s3_retention.ledger_entries"
    assert ask(guarded, settled) == [(KEY, "deleted")]

    again = guarded.airflow.request(
        "POST",
        f"/dags/{REDRIVE}/clearTaskInstances",
        user=VIEWER,
        json={"dry_run": False, "dag_run_id": run_id, "only_failed": False, "reset_dag_runs": True},
    )
    assert again.status_code == 403
    pause = guarded.airflow.request("PATCH", f"/dags/{REDRIVE}", user=VIEWER, json={"is_paused": True})
    assert pause.status_code == 403
    assert ask(guarded, acts) == [("redriven", ADMIN, run_id)]


@pytest.fixture(scope="module")
def levers(guarded: Stack) -> Stack:
    for dag_id in (AUDIT, HOLD, RESTORE):
        guarded.airflow.wait_for_dag(dag_id)
    guarded.airflow.unpause(HOLD)
    return guarded


def pull(levers: Stack, conf: dict[str, Any], *, expect: str = "success") -> str:
    run_id = levers.airflow.trigger(HOLD, conf)
    assert levers.airflow.wait_for_run(HOLD, run_id) == expect
    return run_id


GOOD: dict[str, Any] = {
    "action": "place",
    "reason": "a court order",
    "bucket": BUCKET,
    "scope": "prefix",
    "name": "held/",
}
NEEDED: dict[str, dict[str, Any]] = {HOLD: GOOD, AUDIT: {"policy": "guarded"}}


@pytest.mark.parametrize(
    ("dag_id", "field", "value"),
    [
        (dag_id, field, bad)
        for dag_id, form in FORMS.items()
        for field, row in form.items()
        for bad in row.bad
    ],
    ids=lambda one: ascii(one)[:40],
)
def test_each_field_of_each_form_refuses_bad_input_and_names_itself(
    levers: Stack, dag_id: str, field: str, value: Any
) -> None:
    before = levers.airflow.dag_runs(dag_id)
    body = {"logical_date": None, "conf": NEEDED.get(dag_id, {}) | {field: value}}
    answer = levers.airflow.request("POST", f"/dags/{dag_id}/dagRuns", json=body)
    assert answer.status_code == 400
    assert f"param {field}:" in answer.text
    assert levers.airflow.dag_runs(dag_id) == before


@pytest.mark.parametrize("dag_id", FORMS)
def test_each_field_of_a_form_has_bad_input_to_refuse_and_good_input_to_take(
    levers: Stack, dag_id: str
) -> None:
    params = levers.airflow.get(f"/dags/{dag_id}/details")["params"]
    assert params.keys() == FORMS[dag_id].keys()
    for field, row in FORMS[dag_id].items():
        assert len(row.bad) >= 2, field
        assert row.good, field
        schema = params[field]["schema"]
        for value in row.good:
            validate(value, schema, format_checker=FormatChecker())
        # A pattern alone is no word to a person.
        assert all(one.get("$comment") for one in (schema, schema.get("items", {})) if "pattern" in one), (
            field
        )


def test_a_viewer_pulls_no_lever(levers: Stack) -> None:
    for conf in (GOOD, {"action": "stop", "reason": "mischief"}):
        body = {"logical_date": None, "conf": conf}
        answer = levers.airflow.request("POST", f"/dags/{HOLD}/dagRuns", user=VIEWER, json=body)
        assert answer.status_code == 403
    assert ask(levers, "SELECT count(*) FROM s3_retention.kill_switches") == [(0,)]


def test_each_lever_records_the_admin_who_pulled_it_once_however_often_its_run_is_cleared(
    levers: Stack,
) -> None:
    placed = pull(levers, GOOD)
    for _ in range(2):
        levers.airflow.clear(HOLD, placed)
        levers.airflow.wait_for_run(HOLD, placed, expect="success")
    holds = "SELECT placed_by, run_id, lifted_by, lift_reason FROM s3_retention.legal_holds"
    assert ask(levers, holds) == [(ADMIN, placed, None, None)]
    ((hold_id,),) = ask(levers, "SELECT hold_id FROM s3_retention.legal_holds")
    lift = pull(levers, {"action": "lift", "reason": "settled", "hold_id": hold_id})
    levers.airflow.clear(HOLD, lift)
    levers.airflow.wait_for_run(HOLD, lift, expect="success")
    assert ask(levers, holds) == [(ADMIN, placed, ADMIN, "settled")]

    stopped = pull(levers, {"action": "stop", "reason": "look first", "policy": "guarded"})
    pull(levers, {"action": "resume", "reason": "looked", "policy": "guarded"})
    # A run that is cleared after its switch was lifted sets none again.
    levers.airflow.clear(HOLD, stopped)
    levers.airflow.wait_for_run(HOLD, stopped, expect="success")
    assert ask(levers, "SELECT policy, set_by, run_id, lifted_by FROM s3_retention.kill_switches") == [
        ("guarded", ADMIN, stopped, ADMIN)
    ]


def test_a_tenant_is_paused_and_resumed_from_the_form_by_who_is_logged_in(levers: Stack) -> None:
    named = {"policy": "guarded", "tenant": "acme corp"}
    paused = pull(levers, {"action": "pause_tenant", "reason": "they move out", **named})
    pull(levers, {"action": "resume_tenant", "reason": "they have moved", **named})
    pauses = "SELECT policy, tenant, paused_by, run_id, lifted_by FROM s3_retention.tenant_pauses"
    assert ask(levers, pauses) == [("guarded", "acme corp", ADMIN, paused, ADMIN)]


def test_what_the_form_cannot_know_is_refused_by_the_step_with_the_fix(levers: Stack) -> None:
    refused: dict[str, dict[str, Any]] = {
        "hold_id = 4711: there is no such hold": {"action": "lift", "reason": "settled", "hold_id": 4711},
        "ends_at = '2020-01-01T00:00:00+00:00' has passed": GOOD | {"ends_at": "2020-01-01T00:00:00Z"},
        "policy are not for action = place": GOOD | {"policy": "guarded"},
    }
    for said, conf in refused.items():
        run_id = pull(levers, conf, expect="failed")
        assert said in levers.airflow.task_log(HOLD, run_id, "pull_lever")


def test_an_audit_records_who_asked_for_it_and_shows_its_screen_in_the_log(levers: Stack) -> None:
    levers.airflow.unpause(AUDIT)
    run_id = levers.airflow.trigger(AUDIT, {"policy": "guarded", "note": "as each quarter"})
    levers.airflow.wait_for_run(AUDIT, run_id, expect="success")
    audits = "SELECT policy, acted_by, run_id, note FROM s3_retention.audits"
    assert ask(levers, audits) == [("guarded", ADMIN, run_id, "as each quarter")]
    log = levers.airflow.task_log(AUDIT, run_id, "audit_policy")
    assert "audit of policy guarded" in log
    assert "nothing was deleted" in log


def test_an_audit_without_a_policy_audits_each_and_puts_nothing_of_any_into_quarantine(levers: Stack) -> None:
    levers.airflow.unpause(AUDIT)
    run_id = levers.airflow.trigger(AUDIT, {})
    assert levers.airflow.wait_for_run(AUDIT, run_id) == "success"
    audits = f"SELECT policy, acted_by, num_parked FROM s3_retention.audits WHERE run_id = '{run_id}'"  # noqa: S608 - our own
    assert ask(levers, audits) == [("guarded", ADMIN, 0)]
    refused = levers.airflow.trigger(AUDIT, {"quarantine": True, "note": "all of them"})
    assert levers.airflow.wait_for_run(AUDIT, refused) == "failed"
    log = levers.airflow.task_log(AUDIT, refused, "audit_policy")
    assert "policy is empty: objects of one policy alone go to quarantine" in log
