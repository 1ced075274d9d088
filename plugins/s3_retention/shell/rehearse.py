"""``simulate`` and ``simulated``: what a policy would delete, asked of the store now, or of the ledger."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from s3_retention.errors import PolicyError
from s3_retention.shell.answers import AsJson, Conninfo, Exit, fail, open_ledger, show
from s3_retention.shell.policy_options import DEFAULT_FLOOR, POLICY_FOLDER, Folder, MinRetention, parse_floor
from s3_retention.shell.stores import open_gateway

if TYPE_CHECKING:
    from s3_retention.store.connection import Connection

Name = Annotated[str, typer.Argument(help="The name of a policy.", show_default=False)]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print objects and bytes per reason as CSV.")]


def simulate(
    policy: Name,
    conninfo: Conninfo,
    folder: Folder = POLICY_FOLDER,
    min_retention: MinRetention = DEFAULT_FLOOR,
    as_json: AsJson = False,  # noqa: FBT002 - a switch of the command line
    as_csv: AsCsv = False,  # noqa: FBT002 - as above
) -> None:
    """Decide everything by a policy file as it stands, without Airflow, and delete nothing.

    The ledger's connection is that of a writer: the result is written down, as that of a run is. The store is looked at
    with the credentials of this shell, which need no right to delete. Exit code 1: the policy is broken, or the scan or
    the decision is refused.
    """
    from s3_retention.core.holder import Holder
    from s3_retention.policy_files import load_policy
    from s3_retention.sources.s3_listing import S3Listing
    from s3_retention.steps import simulate as step
    from s3_retention.store.migrate import check_revision

    floor = parse_floor(min_retention)
    try:
        found = load_policy(folder, policy, min_retention=floor)
    except PolicyError as error:
        fail(str(error), Exit.NOT_GOOD)
    if found.source.rows is not None:
        fail(
            f"policy {policy} reads rows of a database by an Airflow connection: simulate it by its DAG",
            Exit.NOT_GOOD,
        )
    with open_ledger(conninfo, is_read_only=False) as conn:
        check_revision(conn)
        source = S3Listing(
            open_gateway(parallel=found.batch.parallel), found.source.bucket, found.source.prefix
        )
        _, simulation = step.run(conn, source, found, Holder("shell", uuid4().hex, "simulate"))
        if as_json or as_csv:
            _show(conn, policy, as_json=as_json, as_csv=as_csv)
        else:
            typer.echo(str(simulation))


def simulated(
    policy: Name,
    conninfo: Conninfo,
    as_json: AsJson = False,  # noqa: FBT002 - as above
    as_csv: AsCsv = False,  # noqa: FBT002 - as above
) -> None:
    """Show what the last simulation of a policy would have deleted. Exit code 1: there is none."""
    with open_ledger(conninfo) as conn:
        _show(conn, policy, as_json=as_json, as_csv=as_csv)


def _show(conn: Connection, policy: str, *, as_json: bool, as_csv: bool) -> None:
    from s3_retention.store import simulations

    rows = simulations.list_newest(conn, policy=policy, max_rows=1)
    if not rows:
        fail(f"no simulation of policy {policy!r} is in the ledger", Exit.NOT_GOOD)
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
