"""``export``: an interval as files that somebody else can check: Parquet, CSV, a manifest and SHA-256 sums."""

from __future__ import annotations

import csv
import hashlib
import json
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3_retention.shell.answers import AsJson, Conninfo, Exit, fail, open_ledger, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from s3_retention.store.connection import Connection
    from s3_retention.store.statements import Row

PARQUET, CSV, MANIFEST, SUMS = "commands.parquet", "commands.csv", "manifest.json", "SHA256SUMS"
_READ_SIZE = 1 << 20


def export(
    interval: Annotated[str, typer.Argument(help="The key of an interval.", show_default=False)],
    to: Annotated[
        Path, typer.Option(help="A folder that is made; it must not be there.", show_default=False)
    ],
    conninfo: Conninfo,
    as_json: AsJson = False,  # noqa: FBT002 - a switch of the command line
) -> None:
    """Write every command of an interval and where it stands, replays included, for an auditor.

    ``sha256sum --check SHA256SUMS`` in the folder tells whether it is still what was written. The folder appears when
    all of it is there. Exit code 1: there is no such interval, or the folder is there already.
    """
    target = to.absolute()
    if target.exists():
        fail(f"{to}: is there already, and nothing is written over: name another folder", Exit.NOT_GOOD)
    if not target.parent.is_dir():
        fail(f"{to}: there is no folder {to.parent} to make it in", Exit.NOT_GOOD)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as partial:
            with open_ledger(conninfo) as conn:
                manifest = _write(conn, interval, Path(partial) / target.name)
            (Path(partial) / target.name).rename(target)
    except OSError as error:
        fail(f"{to}: cannot be written: {error.strerror or error}; nothing is left of it", Exit.NOT_GOOD)
    show(
        [manifest],
        ("interval_key", "state", "num_commands", "num_by_outcome", "exported_at"),
        as_json=as_json,
    )


def _write(conn: Connection, interval_key: str, folder: Path) -> Row:
    from s3_retention.store import exports

    folder.mkdir()
    with exports.one_moment(conn):
        found = exports.find_interval(conn, interval_key)
        if found is None:
            fail(f"there is no interval {interval_key!r}; s3_retention.intervals lists them", Exit.NOT_GOOD)
        interval_id, num_planned = found.pop("interval_id"), found.pop("num_planned")
        plans = exports.list_plans(conn, interval_id)
        num_by_outcome = _write_commands(exports.stream_outcomes(conn, interval_id), folder)
    num_commands = sum(num_by_outcome.values())
    if num_commands != num_planned:
        fail(
            f"{interval_key}: {num_planned:,} commands were planned, and {num_commands:,} were found; nothing was "
            "written: the ledger was changed by something else than this package",
            Exit.NOT_GOOD,
        )
    files = [_describe(folder / name) for name in (PARQUET, CSV)]
    manifest = found | {
        "plans": plans,
        "num_commands": num_commands,
        "num_by_outcome": dict(sorted(num_by_outcome.items())),
        "files": files,
    }
    (folder / MANIFEST).write_text(
        json.dumps(manifest, default=_in_iso, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    listed = [*files, _describe(folder / MANIFEST)]
    (folder / SUMS).write_text(
        "".join(f"{one['sha256']}  {one['name']}\n" for one in listed), encoding="ascii"
    )
    return manifest


def _write_commands(pages: Iterable[list[Row]], folder: Path) -> Counter[str]:
    import pyarrow as pa
    from pyarrow import parquet

    schema = _schema()
    num_by_outcome: Counter[str] = Counter()
    with ExitStack() as files:
        columns = files.enter_context(parquet.ParquetWriter(folder / PARQUET, schema, compression="zstd"))
        # Line ends of keys are data, and stay as they are: in quotes, as RFC 4180 has it.
        text = files.enter_context((folder / CSV).open("w", encoding="utf-8", newline=""))
        lines = csv.writer(text)
        lines.writerow(schema.names)
        for page in pages:
            columns.write_batch(pa.RecordBatch.from_pylist(page, schema))
            lines.writerows([_in_iso(row[name]) for name in schema.names] for row in page)
            num_by_outcome.update(row["outcome"] for row in page)
    return num_by_outcome


def _schema() -> pa.Schema:
    import pyarrow as pa

    whole, at = pa.int64(), pa.timestamp("us", tz="UTC")
    types = {"generation": whole, "size": whole, "batch_id": whole, "num_attempts": whole}
    types |= {"last_modified_at": at, "due_at": at, "settled_at": at}
    return pa.schema([(name, types.get(name, pa.string())) for name in COLUMNS])


COLUMNS = (
    "interval_key", "policy", "policy_version", "generation", "tenant", "bucket", "key", "version_id", "etag", "size",
    "last_modified_at", "due_at", "operation_id", "command_id", "batch_id", "outcome", "reason", "num_attempts",
    "request_id", "marker_version_id", "settled_at", "row_outcomes",
)  # fmt: skip
"""What the files have of each command, in this order; the view ``command_outcomes`` says what they mean."""


def _in_iso(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def _describe(file: Path) -> dict[str, Any]:
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while part := content.read(_READ_SIZE):
            digest.update(part)
    return {"name": file.name, "num_bytes": file.stat().st_size, "sha256": digest.hexdigest()}
