"""Matches the answer to a DeleteObjects request to what was asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from s3_retention.core.outcome import FailureClass, Final, Outcome
from s3_retention.s3.answers import is_empty, nothing_said, outcome_of_entry, request_id_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from s3_retention.core.objects import ObjectFacts


def join(targets: Sequence[ObjectFacts], answer: dict[str, Any]) -> list[Outcome]:
    """Match an answer to what was asked, by key and version: order and completeness are not to be trusted.

    A 200 without a body says nothing of any key: the store is at fault, or something before it, and no object is.
    """
    request_id = request_id_of(answer)
    if is_empty(answer):
        return [nothing_said(answer)] * len(targets)
    # One value for all of them: most answers name nothing else.
    done = Outcome(Final.DELETED, request_id=request_id)
    plain = [{"Key": facts.ref.key} for facts in targets if facts.ref.version_id is None]
    if len(plain) == len(targets) and answer.get("Deleted") == plain and not answer.get("Errors"):
        return [done] * len(targets)
    asked = {(facts.ref.key, facts.ref.version_id) for facts in targets}
    deleted = {
        _deleted_name(one, asked)
        if "DeleteMarkerVersionId" in one
        else (one.get("Key"), one.get("VersionId") or None): one
        for one in _readable(answer.get("Deleted", []))
    }
    # Some stores send an empty VersionId where there is none.
    errors = {
        (one.get("Key"), one.get("VersionId") or None): one for one in _readable(answer.get("Errors", []))
    }
    not_told = Outcome(
        FailureClass.UNKNOWN,
        code="NoAnswerForKey",
        message="the store's answer names the key neither as deleted nor as failed, or as both",
        request_id=request_id,
    )
    outcomes = []
    for facts in targets:
        name = (facts.ref.key, facts.ref.version_id)
        error = errors.get(name)
        if error is not None and name not in deleted:
            outcomes.append(outcome_of_entry(error, request_id=request_id))
        elif error is None and name in deleted:
            marker = deleted[name].get("DeleteMarkerVersionId") if facts.ref.version_id is None else None
            outcomes.append(replace(done, marker_version_id=marker) if marker else done)
        else:
            outcomes.append(not_told)
    return outcomes


def _readable(entries: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    # Where a tag comes twice in an entry, botocore gives a list of elements: which of them is meant, nobody knows.
    return (one for one in entries if not any(isinstance(value, list) for value in one.values()))


def _deleted_name(entry: Mapping[str, Any], asked: set[tuple[str, str | None]]) -> tuple[Any, str | None]:
    # SeaweedFS names a delete marker that was removed in DeleteMarkerVersionId alone. A marker that was just added
    # stands there too, but nobody can have asked for it.
    removed = (entry.get("Key"), entry.get("DeleteMarkerVersionId"))
    if not entry.get("VersionId") and removed[1] and removed in asked:
        return removed
    return entry.get("Key"), entry.get("VersionId") or None
