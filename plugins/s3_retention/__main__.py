"""``python -m s3_retention``: what an operator runs from a shell."""

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from s3_retention.core.durations import format_duration
from s3_retention.core.policy import AgeFrom, RetentionPolicy, policy_schema
from s3_retention.errors import S3RetentionError
from s3_retention.policy_files import PolicyFile, overlaps, read_policy_files, read_policy_paths
from s3_retention.shell import ask, rehearse
from s3_retention.shell.answers import AsJson, show
from s3_retention.shell.audits import audits
from s3_retention.shell.export import export
from s3_retention.shell.import_lifecycle import import_lifecycle_rules
from s3_retention.shell.policy_options import DEFAULT_FLOOR, POLICY_FOLDER, Folder, MinRetention, parse_floor

# Tracebacks without local variables: one of them is a connection string.
app = typer.Typer(
    help="S3 retention for Airflow.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


def _fail(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(1)


@app.command()
def policies(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Policy files; none: all of the folder.", show_default=False)
    ] = None,
    folder: Folder = POLICY_FOLDER,
    min_retention: MinRetention = DEFAULT_FLOOR,
    as_json: AsJson = False,  # noqa: FBT002 - a switch of the command line
) -> None:
    """Check policy files: one line for each good one, one for each fault; exit 1 when there is a fault."""
    floor = parse_floor(min_retention)
    try:
        read = (
            read_policy_paths([*dict.fromkeys(files)], min_retention=floor)
            if files
            else read_policy_files(folder, min_retention=floor)
        )
    except S3RetentionError as error:
        _fail(str(error))
    if as_json:
        show([_as_row(file) for file in read], (), as_json=True)
    for file in read:
        if file.policy is None:
            typer.echo(file.error, err=True)
        elif not as_json:
            typer.echo(f"{file.path}: {_summary(file.policy)}")
    for warning in overlaps(file.policy for file in read if file.policy is not None):
        typer.echo(f"warning: {warning}", err=True)
    if not read:
        _fail(f"{folder}: there is no policy file; add one, such as weekly_digests.yaml")
    if any(file.error for file in read):
        raise typer.Exit(1)


def _as_row(file: PolicyFile) -> dict[str, object]:
    policy = file.policy
    return {
        "file": str(file.path),
        "error": file.error,
        "policy": policy.model_dump(mode="json", by_alias=True, exclude_none=True) if policy else None,
        "rules_hash": policy.rules_hash if policy else None,
    }


def _summary(policy: RetentionPolicy) -> str:
    since = {
        AgeFrom.LAST_MODIFIED: "last modification",
        AgeFrom.KEY_DATE: "the date in the key",
        AgeFrom.TAG: f"the date in the tag {policy.age.tag}",
        AgeFrom.DETACHED_AT: "the last row lost its parent",
    }[policy.age.from_]
    schedule = f"'{policy.schedule}' {policy.timezone}" if policy.schedule is not None else "manual only"
    keep = f", keeps {policy.keep}" if policy.keep is not None else ""
    if policy.pointers is not None:
        keep += ", keeps what its pointers name"
    place = f"s3://{policy.source.bucket}/{policy.source.prefix}"
    age = f"{format_duration(policy.age.retain)} after {since}"
    return f"ok, version {policy.version}, {policy.mode.value}, {schedule}, {place}, {age}{keep}"


@app.command("policy-schema")
def print_policy_schema() -> None:
    """Print the JSON Schema of a policy file, for editors."""
    typer.echo(policy_schema(), nl=False)


@app.command()
def migrate(
    conninfo: Annotated[
        str,
        typer.Option(
            envvar="S3_RETENTION_LEDGER_CONNINFO",
            help="Connection of the schema's owner: a libpq string or URL.",
            show_default=False,
        ),
    ],
) -> None:
    """Bring the ledger's schema up to date."""
    # Here, and not above: checking policies needs neither Alembic nor psycopg.
    from s3_retention.store.migrate import upgrade

    try:
        upgrade(conninfo)
    except S3RetentionError as error:
        _fail(str(error))
    typer.echo("the ledger schema is up to date")


for question in (ask.explain, ask.status, ask.report, audits, rehearse.simulate, rehearse.simulated, export):
    app.command()(question)


app.command("import-lifecycle")(import_lifecycle_rules)


if __name__ == "__main__":
    app()
