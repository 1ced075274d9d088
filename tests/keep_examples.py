"""Groups and keep rules by chance, for the model in Python and for the SQL that is held against it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hypothesis import strategies as st

from s3_retention.core.verdict import Candidate
from tests.factories import facts

UTC = timezone.utc
BERLIN = "Europe/Berlin"
RULES = {
    "latest": st.integers(1, 4),
    "daily": st.integers(1, 4),
    "weekly": st.integers(1, 3),
    "monthly": st.integers(1, 3),
    "yearly": st.integers(1, 3),
    "within": st.integers(1, 90).map(lambda days: timedelta(days=days)),
    "min_bytes": st.integers(1, 60),
}
some_rules = st.fixed_dictionaries({}, optional=RULES).filter(bool)
validity = st.one_of(st.none(), st.integers(1, 31).map(lambda size: {"min_size": size}))
"""What ``valid_if`` may be for the sizes of ``members``: of some groups all are valid, and of some none."""
moments = st.datetimes(
    datetime(2024, 1, 1),  # noqa: DTZ001 - the zone is added
    datetime(2028, 12, 31),  # noqa: DTZ001 - as above
    timezones=st.just(UTC),
)


@st.composite
def members(draw: st.DrawFn) -> list[Candidate]:
    keys = draw(st.lists(st.text("abc", min_size=1, max_size=3), unique=True, max_size=12))
    made = []
    for key in keys:
        at = draw(moments)
        found = facts(key, at=at, size=draw(st.integers(0, 30)))
        made.append(Candidate(found, at, at, draw(st.sampled_from(['["a"]', '["b"]']))))
    return made
