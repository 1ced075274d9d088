"""The hash of a policy's rules: by it a change under the same version is seen."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from s3_retention.core.policy_parts import Versions

if TYPE_CHECKING:
    from s3_retention.core.policy import RetentionPolicy

# What may not change without a new version: it decides which objects go, and when.
_RULE_FIELDS = frozenset(
    {
        "source",
        "select",
        "versions",
        "age",
        "keep",
        "pointers",
        "keep_newest_noncurrent",
        "bypass_governance",
        "tenant",
        "timezone",
    }
)


def hash_rules(policy: RetentionPolicy) -> str:
    """Return the SHA-256, in hex, of the canonical JSON of what decides which objects go, and when.

    Equal rules give equal hashes however they are written (``30d``, ``P30D``). Absent values are left
    out, so that an optional field of a later release does not change the hash of a file without it.
    """
    values = policy.model_dump(mode="json", by_alias=True, include=set(_RULE_FIELDS), exclude_none=True)
    if policy.versions is Versions.CURRENT:
        del values["versions"]
    if not policy.bypass_governance:
        del values["bypass_governance"]
    if not policy.age.whole_groups:
        del values["age"]["whole_groups"]
    # By whom a simulation looks decides nothing.
    values["source"].pop("simulate_aws_conn_id", None)
    # Nor do limits of what is asked of the database, and of what it may say.
    for name in ("statement_timeout", "max_absent_share"):
        values["source"].get("rows", {}).pop(name, None)
    if policy.tenant is not None:
        # Nor does who comes first.
        del values["tenant"]["weights"]
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return sha256(canonical.encode()).hexdigest()
