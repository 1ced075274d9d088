"""`import-lifecycle` from the command line."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import yaml
from typer.testing import CliRunner

from s3_retention.__main__ import app
from s3_retention.policy_files import read_policy_files

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

GOOD = {"ID": "old logs", "Status": "Enabled", "Filter": {"Prefix": "logs/"}, "Expiration": {"Days": 30}}
NONCURRENT = {
    "ID": "v",
    "Status": "Enabled",
    "Filter": {"Prefix": "v/"},
    "NoncurrentVersionExpiration": {"NoncurrentDays": 9},
}
MOVED = {"ID": "cold", "Status": "Enabled", "Filter": {}, "Transitions": [{"Days": 30}]}


def run(tmp_path: Path, *arguments: str, rules: Any = (GOOD, NONCURRENT)) -> Result:
    file = tmp_path / "lifecycle.json"
    file.write_text(json.dumps({"Rules": list(rules)}))
    return CliRunner().invoke(app, ["import-lifecycle", str(file), "--bucket", "acme", *arguments])


def test_it_prints_a_document_for_each_policy(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == 0, result.output
    assert [one["name"] for one in yaml.safe_load_all(result.stdout)] == ["old_logs", "v_noncurrent"]
    assert result.stderr == ""


def test_the_files_that_it_writes_are_good_policies_and_are_written_once(tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    assert run(tmp_path, "--to", str(folder)).exit_code == 0
    files = read_policy_files(folder, min_retention=timedelta(days=1))
    assert [(file.path.name, file.error) for file in files] == [
        ("old_logs.yaml", None),
        ("v_noncurrent.yaml", None),
    ]
    before = (folder / "old_logs.yaml").read_bytes()
    again = run(tmp_path, "--to", str(folder), rules=[GOOD | {"Expiration": {"Days": 1}}])
    assert again.exit_code == 1
    assert "old_logs are there already; nothing was written" in again.stderr
    assert (folder / "old_logs.yaml").read_bytes() == before


def test_what_has_no_policy_is_said_and_the_code_is_1(tmp_path: Path) -> None:
    result = run(tmp_path, rules=[GOOD, MOVED])
    assert result.exit_code == 1
    assert yaml.safe_load(result.stdout)["name"] == "old_logs"
    assert result.stderr == "cold: Transitions moves objects to another class; leave that to S3 Lifecycle\n"


def test_as_json_it_gives_both(tmp_path: Path) -> None:
    done = json.loads(run(tmp_path, "--json", rules=[GOOD, MOVED]).stdout)
    assert [one["rule"] for one in done["policies"]] == ["old logs"]
    assert [(one["rule"], one["field"]) for one in done["not_expressed"]] == [("cold", "Transitions")]


def test_standard_input_is_read_for_a_dash() -> None:
    result = CliRunner().invoke(
        app, ["import-lifecycle", "-", "--bucket", "acme"], input=json.dumps({"Rules": [GOOD]})
    )
    assert result.exit_code == 0
    assert "name: old_logs" in result.stdout


def test_what_cannot_be_read_is_named_with_the_fix(tmp_path: Path) -> None:
    for content, words in (
        ("{", "is not JSON"),
        ("[]", "has no list of Rules"),
        ("[" * 100_000, "is not JSON"),
    ):
        file = tmp_path / "x.json"
        file.write_text(content)
        result = CliRunner().invoke(app, ["import-lifecycle", str(file), "--bucket", "acme"])
        assert result.exit_code == 1
        assert words in result.stderr
    missing = CliRunner().invoke(app, ["import-lifecycle", str(tmp_path / "none.json"), "--bucket", "acme"])
    assert "none.json: cannot be read: No such file or directory" in missing.stderr
    assert run(tmp_path, "--to", str(tmp_path / "nowhere")).exit_code == 1
