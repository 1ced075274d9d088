"""What the fields of each form refuse, and what they take: no field is without its row."""

from __future__ import annotations

from typing import Any, NamedTuple

HOLD, REDRIVE, RESTORE = "s3_retention_hold", "s3_retention_redrive", "s3_retention_restore"
AUDIT = "s3_retention_audit"
ID = "0b" * 32
KEY = "cleanup:guarded:1970-01-01T00:00:00+00:00:2026-06-01T11:58:00.000005+00:00"


class Field(NamedTuple):
    """Values of one field."""

    bad: list[Any]
    good: list[Any]


DRY_RUN = Field([None, "", "no", 0, []], [True, False])
TEXT = Field(
    [3, ["a"], "k" * 1025, "a\0b"], [None, "", "k" * 1024, " \n", '%20/\\"ü\U0001f5d1\ufffe\x01\u2028']
)
NOTE = Field([3, ["a"], "k" * 1025, "a\0b", " \n\t"], [None, "", "Why,\nin two lines.\n", "k" * 1024])
REASON = Field([*NOTE.bad, None, ""], NOTE.good[2:])
POLICY = Field(
    [3, ["guarded"], "Weekly Digests", "guarded\n", "_", "a" * 64], [None, "", "a", "a" * 63, "guarded_2"]
)
IDS = Field(
    ["", ID, 3, [""], [3], [ID[1:]], [ID + "0"], [ID, "z" * 64]], [None, [], [ID], [ID.upper(), f" {ID}\n"]]
)
INTERVAL = Field(
    [
        3,
        [KEY],
        " ",
        "guarded",
        "cleanup:guarded:a:b",
        KEY.replace("guarded", "Guarded"),
        KEY.replace("+00:00", "Z"),
        f"{KEY}:{KEY}",
    ],
    [None, "", KEY, f" {KEY}\n"],
)
BUCKET = Field(
    [
        3,
        ["guarded"],
        "s3://guarded/data",
        "Not A Bucket",
        "guarded\n",
        "ab",
        "a" * 64,
        "a..b",
        "10.0.0.1",
        "xn--a",
        "a--x-s3",
    ],
    [None, "", "abc", "a" * 63, "a.b-c", "10.0.0.1a", "axn--b"],
)
TIME = Field(
    [
        20270131,
        "tomorrow",
        "2027-01-31",
        "2027-01-31T00:00:00",
        "2027-13-31T00:00:00Z",
        "2027-01-31T24:00:00Z",
        "2027-01-31T00:00:00Z\n",
        "\u0662027-01-31T00:00:00Z",
    ],
    [
        None,
        "",
        "2027-01-31T00:00:00Z",
        "2027-01-31 00:00+14:00",
        "2027-01-31T23:59:59.999-05:30",
        "2027-01-31T23:59:59.999999+00:00",
    ],
)
COUNT = Field([None, "", "ten", 1.5, True, 0, 100_001], [1, 100_000])
CLASSES = Field(["", "permission", ["gone"], [3], [""]], [None, [], ["permission", "transient"]])
# Weeks, days, hours, minutes, seconds, in that order.
AGE = Field(
    [2, ["2d"], "2", "soon", "-2d", "12h2d", "2d\n", "2 d", "P", "P1DT", "P1Y", "\u0662d", f"{'0' * 40}d"],
    [None, "", "2d", "1w2d3h4m5s", "P1DT12H", "PT5M", f"{'0' * 38}2d"],
)
CONNECTION = Field(
    [3, ["aws"], "an aws", "aws\n", "a" * 251, "a\0b"], [None, "", "aws_restore", "team/aws#1!"]
)

FORMS: dict[str, dict[str, Field]] = {
    HOLD: {
        "action": Field(
            ["erase", "", None, 3], ["place", "lift", "stop", "resume", "pause_tenant", "resume_tenant"]
        ),
        "reason": REASON,
        "bucket": BUCKET,
        "scope": Field(["folder", "", None, 3], ["key", "prefix", "bucket"]),
        "name": TEXT,
        "ends_at": TIME,
        "hold_id": Field([0, -1, "one", "", 1.5, True, 2**63], [None, 1, 10**15]),
        "policy": POLICY,
        "tenant": TEXT,
    },
    REDRIVE: {
        "dry_run": DRY_RUN,
        "action": Field(["delete", "", None, 3], ["redrive", "waive"]),
        "policy": POLICY,
        "failure_classes": CLASSES,
        "code": TEXT,
        "operation_ids": IDS,
        "tenant": TEXT,
        "interval": INTERVAL,
        "older_than": AGE,
        "max_commands": COUNT,
        "note": NOTE,
        "replay_interval": INTERVAL,
    },
    AUDIT: {
        "policy": POLICY,
        "quarantine": DRY_RUN,
        "note": NOTE,
    },
    RESTORE: {
        "dry_run": DRY_RUN,
        "operation_ids": IDS,
        "interval_key": INTERVAL,
        "bucket": BUCKET,
        "prefix": TEXT,
        "deleted_from": TIME,
        "deleted_before": TIME,
        "max_objects": COUNT,
        "aws_conn_id": CONNECTION,
        "note": NOTE,
    },
}
