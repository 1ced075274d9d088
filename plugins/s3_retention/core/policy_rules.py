"""What a policy may not say: checks of single values, and contradictions between the parts of a policy.

Each check raises ValueError, or gives Faults, with a message that names the fix.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from s3_retention.core.durations import format_duration, spell_duration
from s3_retention.core.faults import Fault
from s3_retention.core.globs import reaches, read_glob
from s3_retention.core.schedule import longest_gap
from s3_retention.core.selection import compile_regex, takes_every_key
from s3_retention.core.source_rules import SOURCE_RULES
from s3_retention.core.version_rules import VERSION_RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from s3_retention.core.policy import RetentionPolicy

_MAX_KEY_BYTES = 1024
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html (general purpose buckets)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_IP_ADDRESS = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+")
_RESERVED_HEADS = ("xn--", "sthree-", "amzn-s3-demo-")
_RESERVED_TAILS = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
# Files of the zoneinfo folder that are no zone, or mean another one on each machine, or count leap seconds.
_NO_ZONES = re.compile(r"localtime|posixrules|Factory|(right|posix)/.*")


def check_text(text: str) -> str:
    """Refuse what no Postgres text can hold: NUL and lone surrogates."""
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("has a NUL or a lone surrogate, which cannot be stored; remove it")
    return text


def check_name(name: str) -> str:
    """Check the name of a policy: it becomes a DAG id, a file name and part of ledger keys."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name):
        raise ValueError(
            "must be 1 to 63 of a-z, 0-9 and _, with a letter first; rename the policy and its file"
        )
    return name


def check_version(version: str) -> str:
    """Check the version of a policy: it is part of every operation id."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", version):
        raise ValueError(
            "must be 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'; write for example retain-30d-v1"
        )
    return version


def check_bucket(bucket: str) -> str:
    """Check a bucket's name against the S3 naming rules."""
    if not _BUCKET.fullmatch(bucket) or ".." in bucket or _IP_ADDRESS.fullmatch(bucket):
        raise ValueError(
            "is not a bucket name; use 3 to 63 of a-z, 0-9, '.' and '-', a letter or digit at both ends, "
            "no two dots together and no IP address"
        )
    if bucket.startswith(_RESERVED_HEADS) or bucket.endswith(_RESERVED_TAILS):
        raise ValueError("is a name that S3 reserves; name a general purpose bucket, not an alias of one")
    return bucket


def check_prefix(prefix: str) -> str:
    """Check a prefix: what no key can start with lists nothing, in silence."""
    if len(check_text(prefix).encode()) > _MAX_KEY_BYTES:
        raise ValueError(f"is longer than the {_MAX_KEY_BYTES} bytes of the longest key; shorten it")
    return prefix


def check_timezone(timezone: str) -> str:
    """Check a time zone: an IANA name that every machine reads alike."""
    try:
        if _NO_ZONES.fullmatch(timezone):
            raise ValueError(timezone)  # noqa: TRY301 - one message for every way to be no zone
        ZoneInfo(timezone)
    except (LookupError, ValueError, OSError) as error:
        raise ValueError("is not an IANA time zone; write for example UTC or Europe/Berlin") from error
    return timezone


def check_positive(length: timedelta) -> timedelta:
    """Check that a duration is longer than nothing."""
    if length <= timedelta(0):
        raise ValueError("must be longer than nothing; write for example 2h, or null")
    return length


def check_glob(glob: str) -> str:
    """Check one glob, unchanged."""
    read_glob(check_text(glob))
    return glob


def check_regex(regex: str) -> str:
    """Check a regular expression, unchanged."""
    compile_regex(check_text(regex))
    return regex


def check_date_regex(regex: str) -> str:
    """Check the regular expression that finds the date in a key: it must have the group ``date``."""
    if "date" not in compile_regex(check_text(regex)).groupindex:
        raise ValueError("has no group named date; put the date in (?P<date>...)")
    return regex


def below_floor(
    policy: RetentionPolicy, min_retention: timedelta, *, broken: Collection[str] = ()
) -> Iterator[Fault]:
    """Find a retention under the floor that is set for all policies; ``broken`` as in ``contradictions``."""
    floor = spell_duration(min_retention)
    fix = f"is under the floor of {floor}; raise it, or lower [s3_retention] min_retention"
    if "age" not in broken and policy.age.retain < min_retention:
        yield Fault(("age", "retain"), f"retention {fix}")
    # Beside a broken field, it is as the file has it.
    age = policy.abort_incomplete_after
    if isinstance(age, timedelta) and age < min_retention:
        yield Fault(("abort_incomplete_after",), fix)


def contradictions(policy: RetentionPolicy, *, broken: Collection[str] = ()) -> list[Fault]:
    """Find what parts of a policy say against each other.

    ``broken`` names top-level fields that are not valid by themselves: rules that read one are left out. Beside one, a
    field that is no section is as the file has it (a duration is a text): a rule may ask whether it is there.
    """
    return [fault for fields, rule in _RULES if fields.isdisjoint(broken) for fault in rule(policy)]


def _unreachable_globs(policy: RetentionPolicy) -> Iterator[Fault]:
    prefix = policy.source.prefix
    for number, glob in enumerate(policy.select.include):
        if not reaches(read_glob(glob), prefix):
            yield Fault(
                ("select", "include", number),
                "is an empty selection: no key under source.prefix can match; globs are held against the "
                "whole key, so begin it with the prefix",
            )


def _unknown_groups(policy: RetentionPolicy) -> Iterator[Fault]:
    group_by = policy.keep.group_by if policy.keep else ()
    regex = policy.select.regex
    known = compile_regex(regex).groupindex if regex is not None else {}
    if regex is None and group_by:
        yield Fault(
            ("keep", "group_by"),
            "names groups, but select has no regex; select by a regex with (?P<name>...)",
        )
        return
    for number, group in enumerate(group_by):
        if group not in known:
            yield Fault(
                ("keep", "group_by", number),
                "is not a group of select.regex; add a group of that name, (?P<name>...), or remove it",
            )


def _unknown_whole_groups(policy: RetentionPolicy) -> Iterator[Fault]:
    regex = policy.select.regex
    known = compile_regex(regex).groupindex if regex is not None else {}
    for number, group in enumerate(policy.age.whole_groups):
        if group not in known:
            yield Fault(
                ("age", "whole_groups", number),
                "is not a group of select.regex; add a group of that name, (?P<name>...), or remove it",
            )


def _groups_of_two_rules(policy: RetentionPolicy) -> Iterator[Fault]:
    if not policy.age.whole_groups:
        return
    fault = "does not go with age.whole_groups, by which a whole group goes at once; remove one of the two"
    if policy.keep is not None:
        yield Fault(("keep",), fault)
    if policy.versions != "current":
        yield Fault(("versions",), fault)


def _unknown_tenant_group(policy: RetentionPolicy) -> Iterator[Fault]:
    regex = policy.select.regex
    known = compile_regex(regex).groupindex if regex is not None else {}
    group = policy.tenant.group if policy.tenant is not None else None
    if group is not None and group not in known:
        yield Fault(
            ("tenant", "group"), "is not a group of select.regex; add one of that name, (?P<name>...)"
        )


def _limits_of_no_tenant(policy: RetentionPolicy) -> Iterator[Fault]:
    for name in ("limits.max_commands_per_tenant", "limits.max_tenant_share", "batch.parallel_per_tenant"):
        section, field = name.split(".")
        if policy.tenant is None and getattr(getattr(policy, section), field) is not None:
            yield Fault((section, field), "is for each tenant, and there is none; remove it, or set tenant")


def _expires_everything(policy: RetentionPolicy) -> Iterator[Fault]:
    # A date in the key selects too: a key without one is kept. So does a version that nothing newer lies on.
    spared = policy.keep is not None or policy.age.from_ != "last_modified"
    spared = spared or policy.versions == "noncurrent" or policy.select.tags is not None
    allowed = not policy.source.whole_bucket or policy.limits.allow_expire_everything
    if not spared and not allowed and takes_every_key(policy.select):
        field = "include" if policy.select.include else "regex"
        yield Fault(
            ("select", field),
            "would expire every object of the bucket; narrow it, add a keep rule, or set "
            "limits.allow_expire_everything: true",
        )


def _never_catches_up(policy: RetentionPolicy) -> Iterator[Fault]:
    if policy.window.width is None or policy.schedule is None:
        return
    gap = longest_gap(policy.schedule)
    if policy.window.width <= gap:
        yield Fault(
            ("window", "width"),
            f"never catches up: the schedule leaves up to {spell_duration(gap)} between two runs; write more "
            f"than {format_duration(gap)}, or null for no width",
        )


def _deadline_of_no_tick(policy: RetentionPolicy) -> Iterator[Fault]:
    if policy.deadline is not None and policy.schedule is None:
        yield Fault(("deadline",), "counts from a tick, and there is no schedule; remove it, or set one")


_RULES: tuple[tuple[frozenset[str], Callable[[RetentionPolicy], Iterator[Fault]]], ...] = (
    (frozenset({"source", "select"}), _unreachable_globs),
    (frozenset({"select", "keep"}), _unknown_groups),
    (frozenset({"select", "age"}), _unknown_whole_groups),
    (frozenset({"age", "keep", "versions"}), _groups_of_two_rules),
    (frozenset({"select", "tenant"}), _unknown_tenant_group),
    (frozenset({"limits", "batch", "tenant"}), _limits_of_no_tenant),
    (frozenset({"source", "select", "age", "keep", "limits", "versions"}), _expires_everything),
    (frozenset({"schedule", "window"}), _never_catches_up),
    (frozenset({"schedule", "deadline"}), _deadline_of_no_tick),
    *SOURCE_RULES,
    *VERSION_RULES,
)
