"""What the rows of an object say to its delete: each combination of them against a plain model."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from s3_retention.core.orphans import FoundRow, PlannedRows, decide_rows
from s3_retention.core.outcome import Final

NOW = datetime(2026, 12, 1, tzinfo=timezone.utc)
RETAIN = timedelta(days=7)
NAME, OTHER = "sfs/a", "sfs/b"
IDS = st.sampled_from(["1", "2", "3", "4"])
TIMES = st.sampled_from(
    [
        NOW - timedelta(days=90),
        NOW - timedelta(days=8),
        NOW - RETAIN,
        NOW - timedelta(days=1),
        NOW + timedelta(days=1),
        datetime(9999, 12, 30, tzinfo=timezone.utc),
        datetime(1, 1, 2, tzinfo=timezone.utc),
    ]
)
ROWS = st.builds(
    FoundRow, IDS, st.sampled_from([NAME, OTHER, None]), st.one_of(st.none(), TIMES), st.booleans()
)


@st.composite
def planned_rows(draw: st.DrawFn) -> PlannedRows:
    ids = draw(st.lists(IDS, min_size=1, unique=True))
    return PlannedRows(NAME, tuple(ids), tuple(draw(TIMES) for _ in ids))


@given(
    planned_rows(),
    st.lists(ROWS, unique_by=lambda row: row.row_id),
    st.sets(st.sampled_from(["1", "2", "3", "4", NAME, OTHER])),
    st.booleans(),
)
def test_nothing_goes_that_a_row_or_a_reference_needs_or_that_is_not_as_it_was_planned(
    planned: PlannedRows, found: list[FoundRow], referenced: set[str], has_detach_time: bool
) -> None:
    outcome = decide_rows(planned, found, referenced, retain=RETAIN, now=NOW, has_detach_time=has_detach_time)
    at = dict(zip(planned.row_ids, planned.detached_ats, strict=True))
    is_needed = (
        NAME in referenced
        or bool(referenced & {*planned.row_ids, *(row.row_id for row in found)})
        or any(row.named == NAME and not row.is_orphaned for row in found)
        or any(row.named == NAME and row.detached_at is None for row in found if has_detach_time)
    )
    is_young = any(
        row.named == NAME and row.detached_at is not None and NOW - row.detached_at <= RETAIN for row in found
    )
    is_as_planned = all(
        row.row_id in at
        and row.named == NAME
        and row.is_orphaned
        and (not has_detach_time or row.detached_at == at[row.row_id])
        for row in found
    )
    assert (outcome is None) == (not is_needed and not is_young and is_as_planned)
    if outcome is not None:
        assert outcome.kind in (Final.KEPT, Final.CHANGED)
    if is_needed and not is_young and all(row.named == NAME for row in found):
        assert outcome is not None
        assert outcome.kind is Final.KEPT, "what is needed is kept, whatever else has changed"


@given(planned_rows(), st.sets(st.sampled_from(["1", "2", NAME])))
def test_where_no_row_is_left_the_object_goes_unless_it_is_referenced(
    planned: PlannedRows, referenced: set[str]
) -> None:
    outcome = decide_rows(planned, [], referenced, retain=RETAIN, now=NOW, has_detach_time=True)
    assert (outcome is None) == referenced.isdisjoint({NAME, *planned.row_ids})
