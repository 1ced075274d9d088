from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from s3_retention.__main__ import app
from s3_retention.core.policy import policy_schema
from s3_retention.errors import LedgerUnavailableError, PolicyError
from s3_retention.policy_files import PolicyFile, load_policy, overlaps, read_policy_files

if TYPE_CHECKING:
    from collections.abc import Callable

DAY = timedelta(days=1)
SHIPPED = Path(__file__).parents[2] / "include" / "policies"


def text(name: str, *, bucket: str = "weekly-digests", prefix: str = "exports/", retain: str = "30d") -> str:
    return (
        f"name: {name}\nversion: v1\nsource: {{type: s3_listing, bucket: {bucket}, prefix: {prefix}}}\n"
        f"select: {{include: ['{prefix}**']}}\nage: {{from: last_modified, retain: {retain}}}\n"
    )


def write(folder: Path, file: str, content: str | bytes) -> Path:
    path = folder / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(folder: Path) -> list[PolicyFile]:
    return read_policy_files(folder, min_retention=DAY)


def error_of(folder: Path, content: str | bytes) -> str:
    path = write(folder, "x.yaml", content)
    (file,) = read(folder)
    assert file.policy is None
    assert file.error is not None
    assert all(line.startswith(f"{path}: ") for line in file.error.split("\n")), file.error
    return file.error


def test_the_shipped_policies_are_good_and_only_simulate() -> None:
    files = read(SHIPPED)
    assert [file.error for file in files] == [None] * len(files)
    assert [file.policy.mode.value for file in files if file.policy] == ["simulate"] * len(files)
    assert load_policy(SHIPPED, "weekly_digests", min_retention=DAY).version == "retain-30d-v2"
    first = (SHIPPED / "weekly_digests.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=policy.schema.json"


def test_files_are_read_in_the_order_of_their_names_and_hidden_and_other_files_are_left_out(
    tmp_path: Path,
) -> None:
    for file in ("b.yml", "a.yaml", "c.yaml"):
        write(tmp_path, file, text(file[0]))
    for file in ("policy.schema.json", "README.md", ".a.yaml", "d.yaml~"):
        write(tmp_path, file, "[")
    assert [(file.path.name, file.error) for file in read(tmp_path)] == [
        ("a.yaml", None),
        ("b.yml", None),
        ("c.yaml", None),
    ]


def test_a_broken_file_leaves_the_others_alone(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", text("a"))
    write(tmp_path, "b.yaml", "name: [")
    write(tmp_path, "c.yaml", b"\xff\xfe\x00")
    (tmp_path / "d.yaml").mkdir()
    (tmp_path / "e.yaml").symlink_to("nowhere")
    write(tmp_path, "f.yaml", text("f"))
    assert [file.policy is not None for file in read(tmp_path)] == [True, False, False, False, False, True]


def test_a_name_that_is_not_the_stem_is_refused_together_with_all_else(tmp_path: Path) -> None:
    lines = error_of(tmp_path, text("other", retain="1h")).split("\n")
    assert len(lines) == 2
    assert "name = 'other': is not the file's name; write name: x, or rename the file" in lines[0]
    assert "age.retain = '1h': retention is under the floor" in lines[1]


def test_two_files_of_one_name_are_both_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", text("a"))
    write(tmp_path, "a.yml", text("a"))
    assert ["another file holds a policy named a too" in (file.error or "") for file in read(tmp_path)] == [
        True,
        True,
    ]
    with pytest.raises(PolicyError, match="another file holds a policy named a too"):
        load_policy(tmp_path, "a", min_retention=DAY)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (text("x") + "version: v2\n", "line 6, column 1: the key 'version' is given twice"),
        (text("x") + "window: {lease: 1m, lease: 2m}\n", "the key 'lease' is given twice"),
        ("", "holds nothing; write fields, beginning with name: x"),
        ("- a\n", "holds a list; write fields"),
        ("30d\n", "holds a single value; write fields"),
        ("name: [\n", "is not YAML: line 2"),
        ("name: x\n---\nname: x\n", "is not YAML: line"),
        ("name: !!python/object/apply:os.system ['true']\n", "could not determine a constructor"),
        ("start_at: 2026-13-45\n", "is not YAML"),
        ("a: " + "9" * 5000 + "\n", "is not YAML"),
        ("a: !!int ''\n", "is not YAML"),
        ("a: !!timestamp x\n", "is not YAML"),
        ("a: !!bool x\n", "is not YAML"),
        ("? [a]\n: b\n", "is not YAML"),
        ("a: " + "[" * 5000, "is nested too deeply"),
        (b"name: \xff\n", "is not YAML"),
        ("name: \x01\n", "is not YAML"),
        ("? 1\n: 2\n", "the name of a field must be a text"),
        ("on: true\n", "the name of a field must be a text"),
    ],
)
def test_what_is_no_good_yaml_is_refused_with_its_place(
    tmp_path: Path, content: str | bytes, words: str
) -> None:
    error = error_of(tmp_path, content)
    assert words in error
    assert all(len(line) < len(str(tmp_path)) + 250 for line in error.split("\n"))


def test_a_file_of_endless_aliases_is_refused_in_a_short_message(tmp_path: Path) -> None:
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    assert len(error_of(tmp_path, f"a0: &a0 [x]\n{levels}")) < 10_000


def test_a_merge_key_may_be_overridden(tmp_path: Path) -> None:
    content = text("x") + "window: &w {lease: 1m}\nbatch: {<<: {size: 10}, size: 20}\n"
    write(tmp_path, "x.yaml", content)
    (file,) = read(tmp_path)
    assert file.error is None
    assert file.policy is not None
    assert file.policy.batch.size == 20


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.binary(max_size=60) | st.text(alphabet="a:-[]{}&*!|>'\"%@`#,? \n<12.~", max_size=40).map(str.encode)
)
def test_no_content_whatsoever_breaks_the_reading(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, "x.yaml", content)
    (file,) = read(tmp_path)
    assert file.policy is None
    assert file.error


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="the policy folder cannot be read: No such file"):
        read(tmp_path / "none")


def test_one_policy_is_loaded_without_reading_the_others(tmp_path: Path) -> None:
    write(tmp_path, "a.yml", text("a"))
    write(tmp_path, "b.yaml", "name: [")
    assert load_policy(tmp_path, "a", min_retention=DAY).name == "a"
    with pytest.raises(PolicyError, match="is not YAML"):
        load_policy(tmp_path, "b", min_retention=DAY)
    with pytest.raises(PolicyError, match="there is no such policy file"):
        load_policy(tmp_path, "c", min_retention=DAY)


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "", "a.b", "A", "a" * 500])
def test_a_path_is_never_taken_for_the_name_of_a_policy(tmp_path: Path, name: str) -> None:
    with pytest.raises(PolicyError, match="must be 1 to 63"):
        load_policy(tmp_path, name, min_retention=DAY)


def test_policies_over_the_same_objects_are_warned_of(tmp_path: Path) -> None:
    for name, bucket, prefix in (
        ("a", "digests", "exports/"),
        ("b", "digests", "exports/2026/"),
        ("c", "digests", "exports-archive/"),
        ("d", "another", "exports/"),
    ):
        write(tmp_path, f"{name}.yaml", text(name, bucket=bucket, prefix=prefix))
    warnings = overlaps(file.policy for file in read(tmp_path) if file.policy)
    assert len(warnings) == 1
    assert warnings[0].startswith("a and b both look at s3://digests/exports/2026/:")


def test_the_command_prints_one_line_for_each_good_policy(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", text("a"))
    result = CliRunner().invoke(app, ["policies", str(path)])
    assert result.exit_code == 0
    assert result.stdout == (
        f"{path}: ok, version v1, simulate, manual only, s3://weekly-digests/exports/, 30d after last modification\n"
    )
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("replaced", "by", "says"),
    [
        (
            "age: {",
            "pointers: [{key: latest}]\nage: {",
            "30d after last modification, keeps what its pointers name",
        ),
        ("from: last_modified", "from: tag, tag: until, format: '%Y'", "30d after the date in the tag until"),
        (
            "from: last_modified",
            "from: key_date, regex: '(?P<date>[0-9]+)', format: '%Y'",
            "30d after the date in the key",
        ),
    ],
)
def test_the_line_of_a_policy_says_from_when_its_age_counts_and_what_stays(
    tmp_path: Path, replaced: str, by: str, says: str
) -> None:
    assert replaced in text("a")
    path = write(tmp_path, "a.yaml", text("a").replace(replaced, by))
    result = CliRunner().invoke(app, ["policies", str(path)])
    assert result.stdout.endswith(f"s3://weekly-digests/exports/, {says}\n"), result.stderr


def test_the_command_fails_with_the_messages_of_the_broken_files(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", text("a"))
    write(tmp_path, "b.yaml", text("b", retain="1h"))
    result = CliRunner().invoke(app, ["policies", "--folder", str(tmp_path)])
    assert result.exit_code == 1
    assert f"{tmp_path / 'a.yaml'}: ok" in result.stdout
    assert "b.yaml: age.retain = '1h': retention is under the floor of 1 day" in result.stderr


def test_the_command_gives_policies_and_faults_as_json(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", text("a"))
    write(tmp_path, "b.yaml", text("b", retain="1h"))
    result = CliRunner().invoke(app, ["policies", "--folder", str(tmp_path), "--json"])
    assert result.exit_code == 1
    good, broken = json.loads(result.stdout)
    assert (good["policy"]["name"], good["error"], len(good["rules_hash"])) == ("a", None, 64)
    assert (broken["policy"], broken["rules_hash"]) == (None, None)
    assert "age.retain = '1h'" in broken["error"]


def test_the_command_warns_of_overlaps_and_still_succeeds(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path, f"{name}.yaml", text(name))
    result = CliRunner().invoke(app, ["policies", "--folder", str(tmp_path)])
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: a and b both look at")


def test_the_command_takes_the_floor_from_its_option_and_from_the_environment(tmp_path: Path) -> None:
    path = str(write(tmp_path, "a.yaml", text("a", retain="1h")))
    run = CliRunner().invoke
    assert run(app, ["policies", path, "--min-retention", "1h"]).exit_code == 0
    assert run(app, ["policies", path], env={"AIRFLOW__S3_RETENTION__MIN_RETENTION": "30m"}).exit_code == 0
    assert run(app, ["policies", path, "--min-retention", "1"]).exit_code == 2


@pytest.mark.parametrize("folder", [".", "none"])
def test_the_command_fails_where_there_is_nothing_to_check(tmp_path: Path, folder: str) -> None:
    result = CliRunner().invoke(app, ["policies", "--folder", str(tmp_path / folder)])
    assert result.exit_code == 1
    assert str(tmp_path) in result.stderr


def test_the_command_prints_the_json_schema() -> None:
    result = CliRunner().invoke(app, ["policy-schema"])
    assert result.exit_code == 0
    assert result.stdout == policy_schema()
    assert json.loads(result.stdout)["title"] == "RetentionPolicy"


def fake_migrate(monkeypatch: pytest.MonkeyPatch, upgrade: Callable[[str], None]) -> None:
    module = ModuleType("s3_retention.store.migrate")
    module.upgrade = upgrade  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "s3_retention.store.migrate", module)


def test_migrate_upgrades_the_ledger_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    fake_migrate(monkeypatch, asked.append)
    result = CliRunner().invoke(app, ["migrate"], env={"S3_RETENTION_LEDGER_CONNINFO": "dbname=ledger"})
    assert result.exit_code == 0
    assert asked == ["dbname=ledger"]


def test_migrate_fails_with_the_error_and_never_shows_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def upgrade(conninfo: str) -> None:
        del conninfo
        raise LedgerUnavailableError

    fake_migrate(monkeypatch, upgrade)
    result = CliRunner().invoke(app, ["migrate", "--conninfo", "password=secret"])
    assert result.exit_code == 1
    assert "the ledger database cannot be reached" in result.stderr.lower()
    assert "secret" not in result.output


def test_migrate_without_a_connection_says_how_to_give_one() -> None:
    result = CliRunner().invoke(app, ["migrate"], env={"S3_RETENTION_LEDGER_CONNINFO": None})
    assert result.exit_code == 2
    assert "S3_RETENTION_LEDGER_CONNINFO" in result.stderr
