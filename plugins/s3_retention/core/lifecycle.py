"""Turns an S3 lifecycle configuration into policies, and says of each rule, or part of one, why it has none.

A policy never deletes what its rule would have kept. S3 rounds the end of an object's days up to the next midnight UTC
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html), and a policy counts to the second:
so that it is never earlier, each policy has a day more than its rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic.alias_generators import to_pascal

from s3_retention.core.lifecycle_rules import Rule
from s3_retention.core.policy import parse_policy
from s3_retention.core.tags import ANY
from s3_retention.errors import LifecycleError, PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

SCHEDULE = "0 2 * * *"
_MAX_NAME = 50
_KNOWN = {"Rules", "TransitionDefaultMinimumObjectSize", "ResponseMetadata"}
"""Of a configuration; all but the rules tells nothing of what expires."""
_TRANSITIONS = (
    "transition",
    "transitions",
    "noncurrent_version_transition",
    "noncurrent_version_transitions",
)
_UNKNOWN = "extra_forbidden"


@dataclass(frozen=True, slots=True)
class ImportedPolicy:
    """A policy as its file says it, and the rule that it comes from."""

    rule: str
    document: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the policy, which is that of its file."""
        return str(self.document["name"])


@dataclass(frozen=True, slots=True)
class NotExpressed:
    """A rule, or a field of one, that no policy stands for."""

    rule: str
    field: str
    why: str


@dataclass(frozen=True, slots=True)
class LifecycleImport:
    """What became of a configuration."""

    policies: tuple[ImportedPolicy, ...]
    not_expressed: tuple[NotExpressed, ...]


def import_lifecycle(configuration: Any, *, bucket: str, min_retention: timedelta) -> LifecycleImport:
    """Import a configuration, as ``aws s3api get-bucket-lifecycle-configuration`` prints it.

    Raises ``LifecycleError`` when it is none. A rule that cannot be read as a whole has no policy at all.
    """
    rules = configuration.get("Rules") if isinstance(configuration, dict) else None
    if not isinstance(rules, list):
        raise LifecycleError(
            "is no lifecycle configuration: it has no list of Rules; write what "
            "`aws s3api get-bucket-lifecycle-configuration` prints"
        )
    policies: list[ImportedPolicy] = []
    left = [
        NotExpressed("configuration", name, "is not known here")
        for name in sorted(configuration.keys() - _KNOWN)
    ]
    for number, raw in enumerate(rules, start=1):
        told = raw.get("ID") if isinstance(raw, dict) else None
        rule_id = told if isinstance(told, str) and told else f"rule {number}"
        try:
            rule = Rule.model_validate(raw)
        except ValidationError as error:
            left += [NotExpressed(rule_id, field, why) for field, why in _faults(error)]
            continue
        refused = list(_refuse(rule_id, rule))
        if refused:
            left += refused
            continue
        left += _leave_out(rule_id, rule)
        for document in _documents(rule_id, rule, bucket, {one.name for one in policies}):
            if (fault := _fault_of(document, rule_id, min_retention)) is not None:
                left.append(NotExpressed(rule_id, "", f"its policy would be refused: {fault}"))
            else:
                policies.append(ImportedPolicy(rule_id, document))
    return LifecycleImport(tuple(policies), tuple(left))


def _fault_of(document: dict[str, Any], rule_id: str, min_retention: timedelta) -> str | None:
    try:
        parse_policy(document, where=rule_id, min_retention=min_retention)
    except PolicyError as error:
        return str(error)
    return None


def _faults(error: ValidationError) -> Iterator[tuple[str, str]]:
    for fault in error.errors():
        field = ".".join(str(part) for part in fault["loc"])
        is_unknown = fault["type"] == _UNKNOWN
        yield field, "is not known here, so nothing of the rule was taken" if is_unknown else fault["msg"]


def _refuse(rule_id: str, rule: Rule) -> Iterator[NotExpressed]:
    """Give why nothing of a rule may become a policy: its policy would be for more objects than the rule."""
    if rule.status == "Disabled":
        yield NotExpressed(rule_id, "Status", "is Disabled, and there is no policy that is off; skipped")
    tags = rule.wanted_tags
    if len({one.key for one in tags}) < len(tags):
        yield NotExpressed(rule_id, "Filter", "names a tag twice, and an object has one value of it")
    if any(one.value == ANY for one in tags):
        yield NotExpressed(
            rule_id, "Filter", f"wants a tag of value {ANY!r}, which means any value in a policy"
        )
    if rule.filter is not None and rule.filter.all_of is not None:
        for name in ("prefix", "tag"):
            if getattr(rule.filter, name) is not None:
                yield NotExpressed(rule_id, "Filter", f"has a {name} beside And; S3 takes one of the two")
    if rule.filter is not None and rule.prefix is not None:
        yield NotExpressed(rule_id, "Prefix", "stands beside Filter; S3 takes one of the two")


def _leave_out(rule_id: str, rule: Rule) -> Iterator[NotExpressed]:
    """Give the parts of a rule that have no policy, where its other parts may have one."""
    for name in _TRANSITIONS:
        if getattr(rule, name):
            yield NotExpressed(
                rule_id, to_pascal(name), "moves objects to another class; leave that to S3 Lifecycle"
            )
    expiration = rule.expiration
    if expiration is not None and expiration.date is not None:
        yield NotExpressed(
            rule_id, "Expiration.Date", "is one day for all objects; a policy counts from each"
        )
    if (
        expiration is not None
        and expiration.expired_object_delete_marker
        and not rule.noncurrent_version_expiration
    ):
        yield NotExpressed(
            rule_id,
            "Expiration.ExpiredObjectDeleteMarker",
            "goes with versions: noncurrent alone, and the rule has no NoncurrentVersionExpiration",
        )
    if rule.wanted_tags and rule.noncurrent_version_expiration is not None:
        yield NotExpressed(
            rule_id, "NoncurrentVersionExpiration", "is by tag, which a policy for versions does not see"
        )
    if rule.wanted_tags and rule.abort_incomplete_multipart_upload is not None:
        yield NotExpressed(
            rule_id, "AbortIncompleteMultipartUpload", "is by tag, and nobody tells the tags of an upload"
        )
    elif rule.abort_incomplete_multipart_upload is not None and not _is_policy(rule):
        yield NotExpressed(
            rule_id, "AbortIncompleteMultipartUpload", "is a field of a policy, and the rule makes none"
        )


def _is_policy(rule: Rule) -> bool:
    by_days = rule.expiration is not None and rule.expiration.days is not None
    return by_days or rule.noncurrent_version_expiration is not None


def _documents(rule_id: str, rule: Rule, bucket: str, taken: set[str]) -> Iterator[dict[str, Any]]:
    """Make the policies of a rule: one for what is current, one for what is not."""
    abort = rule.abort_incomplete_multipart_upload
    more: dict[str, Any] = {}
    if abort is not None and not rule.wanted_tags:
        more["abort_incomplete_after"] = _days(abort.days_after_initiation)
    if rule.expiration is not None and rule.expiration.days is not None:
        name = _name(rule_id, taken)
        if not rule.scope.prefix:
            # The rule says so, of a whole bucket; the policy simulates until somebody has looked.
            more["limits"] = {"allow_expire_everything": True}
        yield _document(name, rule_id, rule, bucket, days=rule.expiration.days) | more
        taken, more = taken | {name}, {}
    noncurrent = rule.noncurrent_version_expiration
    if noncurrent is not None and not rule.wanted_tags:
        more["versions"] = "noncurrent"
        if noncurrent.newer_noncurrent_versions is not None:
            more["keep_newest_noncurrent"] = noncurrent.newer_noncurrent_versions
        name = _name(f"{rule_id}_noncurrent", taken)
        yield _document(name, rule_id, rule, bucket, days=noncurrent.noncurrent_days) | more


def _document(name: str, rule_id: str, rule: Rule, bucket: str, *, days: int) -> dict[str, Any]:
    scope = rule.scope
    source: dict[str, Any] = {"type": "s3_listing", "bucket": bucket}
    select: dict[str, Any] = {"include": ["**"]}
    if scope.prefix:
        source["prefix"] = scope.prefix
    else:
        source["whole_bucket"] = True
    if scope.object_size_greater_than is not None:
        select["min_size"] = scope.object_size_greater_than + 1
    if scope.object_size_less_than is not None:
        select["max_size"] = scope.object_size_less_than - 1
    if rule.wanted_tags:
        select["tags"] = {one.key: one.value for one in rule.wanted_tags}
    return {
        "name": name,
        "version": "v1",
        "mode": "simulate",
        "description": f"From the lifecycle rule {rule_id!r}: {days} days, and one more for S3's rounding."[
            :200
        ],
        "schedule": SCHEDULE,
        "source": source,
        "select": select,
        "age": {"from": "last_modified", "retain": _days(days)},
    }


def _days(days: int) -> str:
    return f"{days + 1}d"


def _name(text: str, taken: set[str]) -> str:
    """Make a name that a policy may have, and none has yet."""
    plain = re.sub(r"[^a-z0-9_]+", "_", text.lower()).strip("_")
    plain = (plain if plain[:1].isalpha() else f"rule_{plain}".rstrip("_"))[:_MAX_NAME].rstrip("_")
    number, name = 1, plain
    while name in taken:
        number += 1
        name = f"{plain}_{number}"
    return name
