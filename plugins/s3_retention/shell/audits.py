"""``audits``: what the last audits of a policy have found."""

from __future__ import annotations

from typing import Annotated

import typer

from s3_retention.core.audit import Kind
from s3_retention.shell.answers import AsJson, Conninfo, Exit, fail, open_ledger, show

_KINDS = tuple(kind.value for kind in Kind)
Policy = Annotated[str, typer.Option("--policy", help="The name of a policy.", show_default=False)]
Last = Annotated[int, typer.Option("--last", min=1, max=1000, help="How many audits.")]
WithKeys = Annotated[
    bool, typer.Option("--keys", help="Show what the newest has found, up to 1,000 of each kind.")
]


def audits(
    policy: Policy,
    conninfo: Conninfo,
    last: Last = 10,
    with_keys: WithKeys = False,  # noqa: FBT002 - a switch of the command line
    as_json: AsJson = False,  # noqa: FBT002 - as above
) -> None:
    """Show the last audits of a policy, the newest first. Exit code 1: there is none."""
    from s3_retention.store import audits as stored

    with open_ledger(conninfo) as conn:
        rows = stored.list_newest(conn, policy=policy, max_rows=last)
        if not rows:
            fail(f"no audit of policy {policy!r} is in the ledger", Exit.NOT_GOOD)
        if with_keys:
            found = stored.list_findings(conn, rows[0]["audit_id"])
            show(found, ("kind", "state", "key", "row_id", "since", "detail"), as_json=as_json)
            return
    if not as_json:
        # A kind that an audit could not tell is empty, and not 0.
        rows = [row | {kind: row["counts"].get(kind, {}).get("num_found") for kind in _KINDS} for row in rows]
    show(rows, ("audit_id", "started_at", "num_rows", "num_objects", *_KINDS, "acted_by"), as_json=as_json)
