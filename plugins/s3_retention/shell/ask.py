"""``explain``, ``status`` and ``report``: questions to the ledger."""

from __future__ import annotations

from typing import Annotated

import typer

from s3_retention.core.objects import ObjectRef
from s3_retention.core.report import RunReport
from s3_retention.shell.answers import AsJson, Conninfo, Exit, fail, open_ledger, show
from s3_retention.shell.policy_options import DEFAULT_FLOOR, POLICY_FOLDER, Folder, MinRetention, parse_floor
from s3_retention.shell.stores import open_gateway

SCHEME = "s3://"
WithVerdict = Annotated[
    bool,
    typer.Option(
        "--verdict",
        help="Look at the object with the credentials of this shell, and say what each policy decides of it now.",
    ),
]


def explain(
    uri: Annotated[str, typer.Argument(help="s3://bucket/key, byte for byte.", show_default=False)],
    conninfo: Conninfo,
    with_verdict: WithVerdict = False,  # noqa: FBT002 - a switch of the command line
    folder: Folder = POLICY_FOLDER,
    min_retention: MinRetention = DEFAULT_FLOOR,
    as_json: AsJson = False,  # noqa: FBT002 - as above
) -> None:
    """Show all that happened to one object, in order of time: commands, outcomes, quarantine, holds, restores.

    Exit code 1: the ledger knows nothing of it, and no policy looks at it. It reads the plans and the ledger whole,
    which takes a second or so for each million rows.
    """
    from s3_retention.policy_files import read_policy_files
    from s3_retention.shell.verdicts import list_verdicts
    from s3_retention.store import histories

    bucket, slash, key = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or not bucket or not slash or not key:
        raise typer.BadParameter(f"{uri!r} names no object; write s3://bucket/key", param_hint="URI")
    with open_ledger(conninfo) as conn:
        rows = histories.list_history(conn, bucket=bucket, key=key)
        if with_verdict:
            files = read_policy_files(folder, min_retention=parse_floor(min_retention))
            policies = [file.policy for file in files if file.policy is not None]
            rows += list_verdicts(conn, open_gateway(parallel=1), policies, ObjectRef(bucket, key))
            for file in files:
                if file.policy is None:
                    typer.echo(file.error, err=True)
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
    """Show how each policy stands. Exit code 1: something waits, was missed or found, is stopped or paused."""
    from s3_retention.store import histories

    with open_ledger(conninfo) as conn:
        rows = histories.list_status(conn)
    counts = ("num_quarantined", "num_missed", "num_findings")
    show(
        rows,
        (
            "policy",
            "completed_through",
            "open_interval",
            "state",
            "claimed_by",
            *counts,
            "stopped_for",
            "paused_tenants",
        ),
        as_json=as_json,
    )
    if any(
        row["stopped_for"] or row["paused_tenants"] or any(row[count] for count in counts) for row in rows
    ):
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
    if as_json:
        show(rows, (), as_json=True)
    else:
        for row in rows:
            typer.echo(f"{row['reported_at']:%Y-%m-%d %H:%M:%S} {row['dag_id']}/{row['run_id']}")
            typer.echo(str(RunReport.from_counts(row["policy"], row["interval_key"], row["counts"])))
    if not all(row["is_balanced"] for row in rows):
        raise typer.Exit(Exit.NOT_GOOD)
