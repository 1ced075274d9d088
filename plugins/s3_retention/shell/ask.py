"""``explain``, ``status``, ``report`` and ``simulated``: questions to the ledger."""

from __future__ import annotations

import csv
import sys
from typing import Annotated

import typer

from s3_retention.shell.answers import AsJson, Conninfo, Exit, fail, open_ledger, show

SCHEME = "s3://"


def explain(
    uri: Annotated[str, typer.Argument(help="s3://bucket/key, byte for byte.", show_default=False)],
    conninfo: Conninfo,
    as_json: AsJson = False,  # noqa: FBT002 - a switch of the command line
) -> None:
    """Show all that happened to one object, in order of time: commands, outcomes, quarantine, holds.

    Exit code 1: the ledger knows nothing of it. It reads the plans and the ledger whole, which takes a second or so for
    each million rows.
    """
    from s3_retention.store import histories

    bucket, slash, key = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or not bucket or not slash or not key:
        raise typer.BadParameter(f"{uri!r} names no object; write s3://bucket/key", param_hint="URI")
    with open_ledger(conninfo) as conn:
        rows = histories.list_history(conn, bucket=bucket, key=key)
    if not rows:
        fail(
            f"the ledger knows nothing of {uri!r}: no policy has planned it, or the key is written otherwise",
            Exit.NOT_GOOD,
        )
    show(rows, ("happened_at", "event", "detail", "policy", "run", "acted_by"), as_json=as_json)


def status(
    conninfo: Conninfo,
    as_json: AsJson = False,  # noqa: FBT002 - as above
) -> None:
    """Show how each policy stands. Exit code 1: something waits, was missed or found, or is stopped."""
    from s3_retention.store import histories

    with open_ledger(conninfo) as conn:
        rows = histories.list_status(conn)
    counts = ("num_quarantined", "num_missed", "num_findings")
    show(
        rows,
        ("policy", "completed_through", "open_interval", "state", "claimed_by", *counts, "stopped_for"),
        as_json=as_json,
    )
    if any(row["stopped_for"] or any(row[count] for count in counts) for row in rows):
        raise typer.Exit(Exit.NOT_GOOD)


def report(
    name: Annotated[
        str, typer.Argument(help="The key of an interval, or the id of a run.", show_default=False)
    ],
    conninfo: Conninfo,
    as_json: AsJson = False,  # noqa: FBT002 - as above
) -> None:
    """Show what the runs on an interval have reported, or what one run has.

    Exit code 1: there is none, or one does not balance.
    """
    from s3_retention.store import histories

    with open_ledger(conninfo) as conn:
        rows = histories.list_reports(conn, name)
    if not rows:
        fail(f"there is no report of a run or on an interval of this name: {name!r}", Exit.NOT_GOOD)
    show(rows, ("reported_at", "run_id", "policy", "is_balanced", "counts"), as_json=as_json)
    if not all(row["is_balanced"] for row in rows):
        raise typer.Exit(Exit.NOT_GOOD)


def simulated(
    policy: Annotated[str, typer.Argument(help="The name of a policy.", show_default=False)],
    conninfo: Conninfo,
    as_json: AsJson = False,  # noqa: FBT002 - as above
    as_csv: Annotated[bool, typer.Option("--csv", help="Print objects and bytes per reason as CSV.")] = False,  # noqa: FBT002 - as above
) -> None:
    """Show what the last run of a policy in mode simulate would have deleted. Exit code 1: there is none."""
    from s3_retention.store import simulations

    with open_ledger(conninfo) as conn:
        rows = simulations.list_newest(conn, policy=policy, max_rows=1)
    if not rows:
        fail(f"no run of policy {policy!r} in mode simulate is in the ledger", Exit.NOT_GOOD)
    if as_json:
        show(rows, (), as_json=True)
        return
    columns = ("reason", "num_objects", "num_bytes", "oldest_at", "newest_at")
    if as_csv:
        writer = csv.DictWriter(sys.stdout, columns)
        writer.writeheader()
        writer.writerows(rows[0]["detail"]["reasons"])
        return
    show(
        rows,
        ("simulated_at", "policy_version", "num_scanned", "num_due", "num_bytes", "plan_hash"),
        as_json=False,
    )
    show(rows[0]["detail"]["reasons"], columns, as_json=False)
