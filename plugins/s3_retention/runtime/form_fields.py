"""Fields that several forms have: what each takes, in the browser and by REST."""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import Param

from s3_retention.runtime.environment import read_policies

OPTIONAL_TEXT = ["null", "string"]


def optional(pattern: str, says: str, **more: Any) -> dict[str, Any]:
    """Make the schema of a text that is left empty, as null or as '', or matches as a whole.

    The refusal shows the schema: what the pattern ``says`` stands beside it.
    """
    # `$` alone lets a line break at the end by.
    whole = rf"^({pattern})?$(?!\n)"
    return {"type": OPTIONAL_TEXT, "$comment": f"{says}, or empty", "pattern": whole, **more}


_NAME, _NAMED = "[a-z][a-z0-9_]{0,62}", "1 to 63 of a-z, 0-9 and _, a letter first"
_DATE = "(?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_HOUR, _SIXTY = "([01][0-9]|2[0-3])", "[0-5][0-9]"
_BOUND = rf"{_DATE}T{_HOUR}:{_SIXTY}:{_SIXTY}(\.[0-9]{{6}})?\+00:00"
# No Postgres text can hold a NUL or a lone surrogate: a key has all others.
_TEXT = r"[^\x00\ud800-\udfff]*"

TEXT = optional(_TEXT, "at most 1024 characters, no NUL", maxLength=1024)
NOTE = optional(rf"(?=\s*\S){_TEXT}", "a sentence of at most 1024 characters", maxLength=1024)
REASON = NOTE | {"type": "string", "$comment": "a sentence of at most 1024 characters", "minLength": 1}
# A format alone is a word to the browser: the API lets everything through.
TIME = optional(
    rf"{_DATE}[T ]{_HOUR}:{_SIXTY}(:{_SIXTY}(\.[0-9]+)?)?(Z|[+-]{_HOUR}:{_SIXTY})",
    "with its zone, as 2027-01-31T00:00:00Z",
    format="date-time",
)
# As core/policy_rules.py has it: no two dots together, no IP address, nothing that S3 reserves.
BUCKET = optional(
    r"(?!.*\.\.)(?!([0-9]+\.){3}[0-9]+$)(?!xn--|sthree-|amzn-s3-demo-)"
    r"(?!.*(-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
    "the name of a bucket by the rules of S3, no alias",
)
INTERVAL = optional(rf"\s*cleanup:{_NAME}:{_BOUND}:{_BOUND}\s*", "a key as in s3_retention.intervals")
# Airflow has no blanks in the id of a connection, and at most so many characters.
CONNECTION = optional(r"[^\s\x00-\x1f]*", "the id of a connection, no blanks", maxLength=250)


def dry_run(description: str) -> Param:
    """Make the switch that is on unless somebody switches it off."""
    return Param(default=True, type="boolean", title="Dry run", description=description)


def operation_ids(description: str) -> Param:
    """Make a field of operation ids."""
    return Param(
        None,
        type=["null", "array"],
        items={"type": "string", "$comment": "64 hex digits", "pattern": r"^\s*[0-9a-fA-F]{64}\s*$"},
        title="Operation ids",
        description=f"One a line, 64 hex digits each; empty for all.{description}",
    )


def policy(description: str) -> Param:
    """Make a field of a policy's name; the names that there are are offered."""
    return Param(
        None,
        **optional(_NAME, _NAMED),
        title="Policy",
        description=description,
        examples=[file.policy.name for file in read_policies() if file.policy],
    )
