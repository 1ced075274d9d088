"""Which objects of each group the keep rules spare: the model that the SQL of the plan is held against.

The rules are a union: each spares some objects, and another rule beside it never takes one away. They are those of
restic's ``forget`` (https://restic.readthedocs.io/en/stable/060_forget.html), by the reference times of a policy.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from s3_retention.core.verdict import newness

if TYPE_CHECKING:
    from collections.abc import Iterable

    from s3_retention.core.policy_keep import Keep
    from s3_retention.core.verdict import Candidate

_INSTANT = timedelta(microseconds=1)
CALENDAR = ("daily", "weekly", "monthly", "yearly")


def kept_by(
    candidates: Iterable[Candidate], keep: Keep, *, timezone: str, are_periods: bool
) -> dict[Candidate, str]:
    """Give each candidate that is spared, and the reason, which names the first rule that spares it.

    One without a reference time counts as the newest: in doubt it is kept; ``latest`` alone can rank it. With
    ``are_periods`` a reference time is the end of a period, such as a day that a key names: its last instant is what
    belongs to a day, a week (ISO 8601, from Monday), a month or a year of ``timezone``. The newest of a group is spared
    by every rule. With ``keep.valid_if`` the rules are asked once more, of the valid members alone: what either answer
    spares stays, so that it never takes one away.
    """
    groups: dict[str | None, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        groups[candidate.group_key].append(candidate)
    zone, reasons = ZoneInfo(timezone), {}
    for members in groups.values():
        ordered = sorted(members, key=newness, reverse=True)
        for reason, spared in _spared(ordered, keep, zone, are_periods=are_periods):
            reasons.update({one: reason for one in spared if one not in reasons})
        if keep.valid_if is None:
            continue
        valid = [one for one in ordered if one.facts.size >= keep.valid_if.min_size]
        for rule, spared in _spared(valid, keep, zone, are_periods=are_periods):
            # What a span alone keeps is not looked for before a delete, valid or not.
            reason = rule if rule == "kept_within" else "kept_valid"
            reasons.update(
                {one: reason for one in spared if reasons.get(one, "kept_within") == "kept_within"}
            )
    return reasons


def _spared(
    ordered: list[Candidate], keep: Keep, zone: ZoneInfo, *, are_periods: bool
) -> Iterable[tuple[str, list[Candidate]]]:
    yield "kept_latest", ordered[: keep.latest or 1]
    for rule in CALENDAR:
        if (most := getattr(keep, rule)) is None:
            continue
        newest_of: dict[tuple[int, ...], Candidate] = {}
        for one in ordered:
            newest_of.setdefault(_period(rule, _at(one), zone, are_periods=are_periods), one)
        yield f"kept_{rule}", list(newest_of.values())[:most]
    if keep.within is not None:
        yield "kept_within", [one for one in ordered if _at(ordered[0]) - _at(one) <= keep.within]
    if keep.min_bytes is None:
        return
    num_bytes, needed = 0, []
    for one in ordered:
        if num_bytes < keep.min_bytes:
            needed.append(one)
        num_bytes += one.facts.size
    yield "kept_min_bytes", needed


def _at(candidate: Candidate) -> datetime:
    if candidate.reference_at is None:
        raise ValueError("a candidate without a reference time has no day")
    return candidate.reference_at


def _period(rule: str, at: datetime, zone: ZoneInfo, *, are_periods: bool) -> tuple[int, ...]:
    local = (at - _INSTANT if are_periods else at).astimezone(zone)
    if rule == "weekly":
        return tuple(local.isocalendar())[:2]
    return (local.year, local.month, local.day)[: {"yearly": 1, "monthly": 2, "daily": 3}[rule]]
