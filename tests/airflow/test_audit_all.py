"""An audit of all policies: one that fails does not stand in the way of the others, and is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.airflow.child import result_of

if TYPE_CHECKING:
    from pathlib import Path

POLICY = """
name: {name}
version: v1
source: {{type: s3_listing, bucket: acme, prefix: {name}/}}
select: {{include: ["{name}/**"]}}
age: {{from: last_modified, retain: {retain}}}
"""
AUDIT_ALL = """
    import json
    from types import SimpleNamespace
    import airflow.sdk  # puts the plugins folder on the path
    from s3_retention import errors
    from s3_retention.runtime import auditing

    audited = []

    def audit(policy, note, **_):
        audited.append(policy.name)
        if policy.name == "b":
            raise errors.ListingError("the store would not say")
        if policy.name == "bb":
            raise ValueError("endpoint of a secret place")
        return SimpleNamespace(num_found=3)

    auditing._audit = audit
    try:
        print("RESULT", json.dumps(auditing.audit_policy({"policy": None, "note": None, "quarantine": False})))
    except Exception as error:
        print("RESULT", json.dumps({"audited": audited, "type": type(error).__name__, "error": str(error)}))
"""


def audit_all(tmp_path: Path, **retain_by_name: str) -> dict[str, object]:
    policies = tmp_path / "policies"
    policies.mkdir()
    for name, retain in retain_by_name.items():
        (policies / f"{name}.yaml").write_text(POLICY.format(name=name, retain=retain), encoding="utf-8")
    result: dict[str, object] = result_of(
        AUDIT_ALL, home=tmp_path, env={"AIRFLOW__S3_RETENTION__POLICIES_DIR": str(policies)}
    )
    return result


def test_an_audit_of_all_tells_how_many_policies_and_differences_there_were(tmp_path: Path) -> None:
    assert audit_all(tmp_path, a="30d", c="30d") == {"num_policies": 2, "num_found": 6}


def test_what_fails_is_named_when_all_others_are_audited(tmp_path: Path) -> None:
    told = audit_all(tmp_path, a="30d", b="30d", bb="30d", c="30d", d="soon")
    assert told["audited"] == ["a", "b", "bb", "c"]
    assert "bb: ValueError: see the log" in str(told["error"])
    assert told["type"] == "AirflowFailException"
    assert "b: the store would not say" in str(told["error"])
    assert "d.yaml: age.retain = 'soon'" in str(told["error"])
