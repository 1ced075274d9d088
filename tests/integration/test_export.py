"""An interval as files that somebody else can check."""

from __future__ import annotations

import csv
import errno
import json
import os
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from s3_retention.__main__ import app
from s3_retention.shell.export import COLUMNS
from s3_retention.store import exports
from s3_retention.store.connection import connect
from tests.factories import ODD_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    from sandbox.ledger import Ledger
    from tests.factories import World

A, B, C, D = (f"exports/2020-01/{name}.json" for name in "abcd")
FILES = ["SHA256SUMS", "commands.csv", "commands.parquet", "manifest.json"]


@pytest.fixture
def export(world: World, ledger: Ledger, tmp_path: Path) -> Callable[..., Result]:
    """Export the newest interval into the folder `out`, or as the arguments say."""

    def run(*arguments: str) -> Result:
        wanted = arguments or (world.interval_key(), "--to", str(tmp_path / "out"))
        env = {"S3_RETENTION_LEDGER_CONNINFO": ledger.writer_conninfo}
        return CliRunner().invoke(app, ["export", *wanted], env=env)

    return run


def read(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, str]], dict[str, Any]]:
    """Give the rows of the Parquet file, those of the CSV file, and the manifest."""
    with (folder / "commands.csv").open(encoding="utf-8", newline="") as text:
        lines = list(csv.DictReader(text))
    rows = parquet.read_table(folder / "commands.parquet").to_pylist()
    return rows, lines, json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def test_each_command_is_in_both_files_with_what_became_of_it(
    world: World, export: Callable[..., Result], tmp_path: Path
) -> None:
    world.put(A, B, C, D, body=b"12345")
    world.s3.deny(world.bucket, [B])
    (batch,) = world.planned().batches
    world.admin.delete_object(Bucket=world.bucket, Key=C)
    world.admin.put_object(Bucket=world.bucket, Key=D, Body=b"new")
    world.delete(batch)
    world.sweep()
    world.report()
    said = export()
    assert said.exit_code == 0, said.output
    rows, lines, manifest = read(tmp_path / "out")
    outcomes = {A: "deleted", B: "quarantined", C: "already_absent", D: "changed"}
    assert {row["key"]: row["outcome"] for row in rows} == outcomes
    assert {line["key"]: line["outcome"] for line in lines} == outcomes
    assert tuple(lines[0]) == COLUMNS
    (parked,) = [row for row in rows if row["key"] == B]
    assert (parked["reason"], parked["settled_at"], parked["size"]) == ("permission", None, 5)
    ids = world.rows("SELECT encode(operation_id, 'hex') AS id FROM s3_retention.commands")
    assert {row["operation_id"] for row in rows} == {row["id"] for row in ids}
    for row, line in zip(rows, lines, strict=True):
        assert line["due_at"] == row["due_at"].isoformat()
    assert (manifest["num_commands"], manifest["num_by_outcome"]) == (4, dict.fromkeys(outcomes.values(), 1))
    assert manifest["rules_hash"] == world.policy.rules_hash
    plan_hash = world.value("SELECT s3_retention.plan_hash(1, 0)").hex()
    assert manifest["plans"] == [{"generation": 0, "plan_hash": plan_hash}]
    assert (manifest["state"], manifest["interval_key"]) == ("completed", world.interval_key())


def test_odd_keys_come_out_byte_for_byte_however_many_pages_they_fill(
    world: World, export: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "PAGE_SIZE", 3)
    world.put(*ODD_KEYS)
    world.clean()
    assert export().exit_code == 0
    rows, lines, _ = read(tmp_path / "out")
    assert sorted(row["key"] for row in rows) == sorted(ODD_KEYS)
    assert sorted(line["key"] for line in lines) == sorted(ODD_KEYS)


def test_the_sums_tell_a_folder_that_was_changed_from_one_that_was_not(
    world: World, export: Callable[..., Result], tmp_path: Path
) -> None:
    world.put(A)
    world.clean()
    export()
    folder = tmp_path / "out"
    assert sorted(file.name for file in folder.iterdir()) == FILES

    def check() -> int:
        return subprocess.run(
            ["sha256sum", "--check", "SHA256SUMS"], cwd=folder, capture_output=True, check=False
        ).returncode

    assert check() == 0
    sizes = {one["name"]: one["num_bytes"] for one in read(folder)[2]["files"]}
    assert sizes == {name: (folder / name).stat().st_size for name in ("commands.csv", "commands.parquet")}
    (folder / "commands.csv").write_text((folder / "commands.csv").read_text().replace("deleted", "kept"))
    assert check() == 1


def test_a_replay_is_exported_with_the_interval_that_it_replays(
    world: World, export: Callable[..., Result], tmp_path: Path
) -> None:
    world.put(A)
    world.clean()
    world.put(B)
    world.replan()
    export()
    rows, _, manifest = read(tmp_path / "out")
    assert {(row["generation"], row["key"], row["outcome"]) for row in rows} == {
        (0, A, "deleted"),
        (1, B, "pending"),
    }
    assert [one["generation"] for one in manifest["plans"]] == [0, 1]


def test_an_interval_without_commands_has_files_without_rows(
    world: World, export: Callable[..., Result], tmp_path: Path
) -> None:
    world.clean()
    assert export().exit_code == 0
    rows, lines, manifest = read(tmp_path / "out")
    assert (rows, lines, manifest["num_commands"], manifest["plans"]) == ([], [], 0, [])


def test_nothing_is_written_over_and_nothing_is_left_of_an_export_that_fails(
    world: World, export: Callable[..., Result], tmp_path: Path
) -> None:
    world.put(A)
    world.clean()
    (tmp_path / "out").mkdir()
    again = export()
    assert (again.exit_code, list((tmp_path / "out").iterdir())) == (1, [])
    assert "is there already" in again.stderr
    unknown = export("cleanup:x:a:b", "--to", str(tmp_path / "unknown"))
    assert unknown.exit_code == 1
    assert "there is no interval 'cleanup:x:a:b'" in unknown.stderr
    nowhere = export(world.interval_key(), "--to", str(tmp_path / "no" / "where"))
    assert nowhere.exit_code == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out"]


def test_a_disk_that_is_full_is_said_and_nothing_is_left(
    world: World, export: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put(A)
    world.clean()

    def write_batch(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(parquet.ParquetWriter, "write_batch", write_batch)
    said = export()
    assert said.exit_code == 1
    assert "out: cannot be written: No space left on device" in said.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_that_does_not_add_up_is_not_exported(
    world: World, export: Callable[..., Result], tmp_path: Path
) -> None:
    world.put(A)
    world.clean()
    world.root.execute("SET session_replication_role TO replica")
    world.root.execute("DELETE FROM s3_retention.batches")
    world.root.execute("RESET session_replication_role")
    said = export()
    assert said.exit_code == 1
    assert "1 commands were planned, and 0 were found" in said.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_export_is_of_one_moment_while_a_batch_is_being_delivered(
    world: World, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "PAGE_SIZE", 1)
    world.put(A, B)
    (batch,) = world.planned().batches
    with closing(connect(ledger.writer_conninfo, is_read_only=True)) as reader, exports.one_moment(reader):
        pages = exports.stream_outcomes(reader, world.interval_id())
        first = next(pages)
        world.delete(batch)
        rest = list(pages)
    assert [row["outcome"] for page in [first, *rest] for row in page] == ["pending", "pending"]
