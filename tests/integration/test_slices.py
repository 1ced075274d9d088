"""A policy with a width: several slices in one run where nothing was due, and never past one in which something is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.holder import Holder
from s3_retention.errors import PlanRefusedError
from s3_retention.steps import claim, plan
from tests.factories import BUCKET, CLEANUP, a_policy, facts, source_of

if TYPE_CHECKING:
    from s3_retention.steps.decide import PlanResult
    from tests.factories import World

MAY = facts("exports/2026-03/due-on-1-may.json")  # 30 days after the end of March


@pytest.fixture
def weekly(world: World) -> World:
    """Slices of seven days from New Year, on 10 June 2026."""
    world.set_clock("'2026-06-10T00:00:00Z'::timestamptz")
    return world.under(
        start_at="2026-01-01T00:00:00Z",
        window={"width": "7d", "safety_delay": "0s"},
        source={"type": "s3_listing", "bucket": "t-fake", "prefix": "exports/", "aws_conn_id": "c"},
    )


def slices(world: World) -> list[tuple[str, str, int | None]]:
    rows = world.rows(
        "SELECT to_char(starts_at, 'MM-DD') AS starts, state, num_discovered FROM s3_retention.intervals ORDER BY 1"
    )
    return [tuple(row.values()) for row in rows]


def planned(world: World, *objects: Any, run: str = "run-1") -> PlanResult:
    world.claim(run)
    return world.plan(run, source=source_of(*objects))


def test_time_in_which_nothing_is_due_is_closed_in_one_run_up_to_the_slice_in_which_something_is(
    weekly: World,
) -> None:
    assert planned(weekly, MAY).num_discovered == 1
    assert slices(weekly) == [
        ("01-01", "completed", 0),
        ("01-08", "completed", 0),
        ("05-01", "planned", 1),
    ]
    (completed,) = weekly.rows("SELECT position, completed_through FROM s3_retention.watermarks")
    assert [f"{at:%m-%d}" for at in completed.values()] == ["05-08", "05-01"]


def test_slices_tile_time_without_hole_or_overlap(weekly: World) -> None:
    planned(weekly, MAY)
    holes = weekly.value(
        "SELECT count(*) FROM s3_retention.intervals AS one WHERE follows IS NULL AND starts_at <> '2026-01-01Z' "
        "OR NOT EXISTS (SELECT 1 FROM s3_retention.intervals AS other WHERE other.starts_at = one.ends_at) "
        "AND one.ends_at <> (SELECT max(ends_at) FROM s3_retention.intervals)"
    )
    assert holes == 0


def test_a_run_with_nothing_due_anywhere_catches_up_at_once(weekly: World) -> None:
    assert planned(weekly).num_discovered == 0
    assert slices(weekly) == [("01-01", "completed", 0), ("01-08", "planned", 0)]
    report = weekly.report()
    assert report.is_balanced
    assert report.interval_key == weekly.interval_key()
    assert weekly.value("SELECT completed_through = s3_retention.clock() FROM s3_retention.watermarks")
    assert weekly.claim("run-2").status.value == "caught_up"


def test_the_same_run_goes_on_from_its_last_slice_when_it_is_cleared(weekly: World) -> None:
    first = planned(weekly, MAY)
    again = weekly.plan(source=source_of(MAY))
    assert again == first
    assert len(slices(weekly)) == 3


def test_no_slice_ends_after_the_scan_that_found_it_empty(weekly: World) -> None:
    # While the scan is under way, two weeks go by: what fell due meanwhile was not seen by it.
    class Slow:
        def pages(self) -> Any:
            weekly.set_clock("'2026-06-24T00:00:00Z'::timestamptz")
            return iter([])

        def read_clock(self) -> None:
            return None

    weekly.claim()
    weekly.plan(source=Slow())
    ends_at = weekly.value("SELECT max(ends_at) FROM s3_retention.intervals")
    assert f"{ends_at:%m-%d}" == "06-10"


def test_a_slice_that_would_delete_everything_is_refused_with_the_empty_ones_closed(weekly: World) -> None:
    careful = weekly.under(limits={})
    with pytest.raises(PlanRefusedError):
        planned(careful, MAY)
    assert slices(weekly)[-1] == ("05-01", "claimed", None)
    assert planned(weekly, MAY, run="run-1").num_discovered == 1


def test_slices_in_which_all_waits_in_quarantine_are_closed_too_up_to_a_limit(
    weekly: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked = [facts(f"exports/2026-0{month}/a.json", bucket=BUCKET) for month in (1, 2, 3)]
    weekly.root.execute(
        "INSERT INTO s3_retention.policy_versions VALUES ('weekly_digests', 'v1', %s)",
        [weekly.policy.rules_hash],
    )
    weekly.claim("run-0")
    for one in parked:
        weekly.root.execute(
            """
            INSERT INTO s3_retention.quarantine (
                policy, policy_version, interval_id, generation, command_id, operation_id, bucket, key, etag, size,
                last_modified_at, due_at, failure_class, num_attempts, dag_id, run_id, map_index, first_failed_at,
                last_failed_at
            )
            VALUES (
                'weekly_digests', 'v1', 1, 0, sha256(convert_to(%(key)s::text, 'UTF8')),
                sha256(convert_to(%(key)s::text, 'UTF8')), %(bucket)s, %(key)s::text,
                '"e"', 1, %(at)s, now(), 'permission', 1, 'd', 'r', 0, now(), now()
            )
            """,
            {"key": one.ref.key, "bucket": BUCKET, "at": one.last_modified_at},
        )
    monkeypatch.setattr(plan, "MAX_SLICES", 3)
    assert weekly.plan("run-0", source=source_of(*parked)).num_discovered == 0
    # One gap, one slice in which something is due and waits, and the next gap.
    assert [start for start, _, _ in slices(weekly)] == ["01-01", "01-08", "03-03", "03-10"]
    weekly.report("run-0")
    assert planned(weekly, *parked).num_discovered == 0
    assert weekly.report().is_balanced


def test_a_gap_makes_no_partition(weekly: World) -> None:
    planned(weekly)
    made = weekly.rows("SELECT 1 FROM pg_inherits WHERE inhparent = 's3_retention.ledger_entries'::regclass")
    assert len(made) == 1


def test_without_a_width_a_run_has_one_interval(world: World) -> None:
    world.set_clock("'2026-06-10T00:00:00Z'::timestamptz")
    policy = a_policy()
    who = Holder(CLEANUP, "run-1", "claim")
    got = claim.run(world.conn, policy, who)
    assert got.interval_id is not None
    plan.run(world.conn, source_of(), policy, got.interval_id, who, max_batches=1)
    assert len(slices(world)) == 1
