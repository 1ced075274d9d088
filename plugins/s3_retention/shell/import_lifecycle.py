"""``import-lifecycle``: policies out of the lifecycle configuration of a bucket."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - typer reads the types
from typing import TYPE_CHECKING, Annotated

import typer
import yaml

from s3_retention.core.lifecycle import import_lifecycle
from s3_retention.errors import LifecycleError
from s3_retention.shell.answers import AsJson, Exit, fail
from s3_retention.shell.policy_options import DEFAULT_FLOOR, MinRetention, parse_floor

if TYPE_CHECKING:
    from s3_retention.core.lifecycle import ImportedPolicy, LifecycleImport


def import_lifecycle_rules(
    file: Annotated[
        Path,
        typer.Argument(
            help="JSON of get-bucket-lifecycle-configuration; - reads standard input.", allow_dash=True
        ),
    ],
    bucket: Annotated[str, typer.Option(help="The bucket whose rules these are.", show_default=False)],
    to: Annotated[
        Path | None,
        typer.Option(help="The folder for the files; without it they are printed.", show_default=False),
    ] = None,
    min_retention: MinRetention = DEFAULT_FLOOR,
    as_json: AsJson = False,  # noqa: FBT002 - a switch of the command line
) -> None:
    """Turn the lifecycle rules of a bucket into policies in mode simulate, and say what has none.

    Exit code 1: something of the rules has no policy (each is named, with why), or nothing could be read or written.
    """
    try:
        done = import_lifecycle(_read(file), bucket=bucket, min_retention=parse_floor(min_retention))
    except LifecycleError as error:
        fail(f"{file}: {error}", Exit.NOT_GOOD)
    if to is not None:
        _write(done, to)
    if as_json:
        typer.echo(json.dumps(_as_rows(done), indent=2))
    elif to is None:
        typer.echo("---\n".join(_as_yaml(one) for one in done.policies), nl=False)
    for one in done.not_expressed:
        field = f" {one.field}" if one.field else ""
        typer.echo(f"{one.rule}:{field} {one.why}", err=True)
    if done.not_expressed or not done.policies:
        raise typer.Exit(Exit.NOT_GOOD)


def _read(file: Path) -> object:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        return json.loads(text)
    except OSError as error:
        raise LifecycleError(f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise LifecycleError(f"is not JSON: {error}") from error


def _write(done: LifecycleImport, folder: Path) -> None:
    there = [one.name for one in done.policies if (folder / f"{one.name}.yaml").exists()]
    if there:
        fail(f"{folder}: {', '.join(there)} are there already; nothing was written", Exit.NOT_GOOD)
    try:
        for one in done.policies:
            # Not over a file that came meanwhile.
            with (folder / f"{one.name}.yaml").open("x", encoding="utf-8") as out:
                out.write(_as_yaml(one))
    except OSError as error:
        fail(f"{folder}: cannot be written: {error.strerror}", Exit.NOT_GOOD)


def _as_yaml(one: ImportedPolicy) -> str:
    return yaml.safe_dump(one.document, sort_keys=False, allow_unicode=True, width=110)


def _as_rows(done: LifecycleImport) -> dict[str, list[dict[str, object]]]:
    return {
        "policies": [{"rule": one.rule, "policy": one.document} for one in done.policies],
        "not_expressed": [
            {"rule": one.rule, "field": one.field, "why": one.why} for one in done.not_expressed
        ],
    }
