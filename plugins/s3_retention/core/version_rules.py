"""What a policy may not say of versions: contradictions between its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.core.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from s3_retention.core.policy import RetentionPolicy


def _noncurrent_of_none(policy: RetentionPolicy) -> Iterator[Fault]:
    if policy.keep_newest_noncurrent is not None and policy.versions != "noncurrent":
        yield Fault(
            ("keep_newest_noncurrent",), "is only for versions: noncurrent; remove it, or change versions"
        )


def _keeps_versions_by_latest(policy: RetentionPolicy) -> Iterator[Fault]:
    if policy.versions == "current" or policy.keep is None:
        return
    for name in policy.keep.rules.keys() - {"latest"}:
        yield Fault(
            ("keep", name), "is not for versions: noncurrent or all, which know latest alone; remove it"
        )
    if policy.keep.valid_if is not None:
        yield Fault(
            ("keep", "valid_if"),
            "is not for versions: noncurrent or all, where a key is kept with its whole history; remove it",
        )


def _bypass_of_none(policy: RetentionPolicy) -> Iterator[Fault]:
    if policy.bypass_governance and policy.versions == "current":
        yield Fault(
            ("bypass_governance",),
            "is only for versions that are named: a delete marker goes over a locked one; remove it, or change "
            "versions",
        )


def _pointers_of_versions(policy: RetentionPolicy) -> Iterator[Fault]:
    if policy.pointers and policy.versions != "current":
        yield Fault(
            ("pointers",), "does not go with versions: noncurrent or all: a name is no version; remove it"
        )


def _tags_of_versions(policy: RetentionPolicy) -> Iterator[Fault]:
    if policy.versions != "current":
        fault = "does not go with versions: noncurrent or all; remove it"
        yield from (Fault(path, fault) for path in tag_fields(policy))


def _uploads_of_tags(policy: RetentionPolicy) -> Iterator[Fault]:
    by_tag = policy.select.tags is not None or policy.select.exclude_tags is not None
    if by_tag and policy.abort_incomplete_after is not None:
        yield Fault(
            ("abort_incomplete_after",),
            "does not go with select.tags or exclude_tags: nobody tells the tags of an upload; write another policy",
        )


def tag_fields(policy: RetentionPolicy) -> Iterator[tuple[str, str]]:
    """Give the fields by which a policy asks for tags."""
    for section, name in (("select", "tags"), ("select", "exclude_tags"), ("age", "tag")):
        if getattr(getattr(policy, section), name) is not None:
            yield section, name


VERSION_RULES: tuple[tuple[frozenset[str], Callable[[RetentionPolicy], Iterator[Fault]]], ...] = (
    (frozenset({"versions", "keep_newest_noncurrent"}), _noncurrent_of_none),
    (frozenset({"versions", "keep"}), _keeps_versions_by_latest),
    (frozenset({"versions", "bypass_governance"}), _bypass_of_none),
    (frozenset({"versions", "pointers"}), _pointers_of_versions),
    (frozenset({"versions", "select", "age"}), _tags_of_versions),
    (frozenset({"select"}), _uploads_of_tags),
)
