"""The table ``policy_versions``: which rules stand behind a version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3_retention.store.statements import fetch_one, run

if TYPE_CHECKING:
    from s3_retention.store.connection import Connection


def use_version(conn: Connection, *, policy: str, policy_version: str, rules_hash: str) -> str:
    """Store the rules of a version at its first use; give the hash under which it was first used."""
    run(
        conn,
        "policy_versions",
        "insert_version",
        policy=policy,
        policy_version=policy_version,
        rules_hash=rules_hash,
    )
    return find_rules_hash(conn, policy=policy, policy_version=policy_version) or rules_hash


def find_rules_hash(conn: Connection, *, policy: str, policy_version: str) -> str | None:
    """Find the hash under which a version was first used; None when it never was."""
    row = fetch_one(conn, "policy_versions", "find_rules_hash", policy=policy, policy_version=policy_version)
    return str(row["rules_hash"]) if row else None
