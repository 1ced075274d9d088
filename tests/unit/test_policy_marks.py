"""The section source.rows of a policy: what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from s3_retention.core.policy_rows import OrphanedSql, Rows

ROWS: dict[str, Any] = {
    "postgres_conn_id": "app_db",
    "table": "mail.attachments",
    "key": {"column": "sfs_key"},
    "orphaned": [{"column": "email_id", "is_null": True}],
    "soft_delete": "deleting_at",
}


@pytest.mark.parametrize(
    "changes",
    [
        {"orphaned": [{"column": "email_id", "is_null": True}, {"column": "deleting_at", "is_null": True}]},
        {
            "orphaned": (),
            "orphaned_sql": OrphanedSql(file="o.sql", text="email_id IS NULL AND Deleting_At IS NULL"),
        },
        {"key": {"template": "sfs/{id}/{deleting_at}"}},
        {"id": "deleting_at"},
    ],
    ids=["a condition", "a file", "the key", "the id"],
)
def test_a_mark_that_decides_what_an_orphan_is_would_let_no_marked_row_go_and_is_refused(
    changes: dict[str, Any],
) -> None:
    with pytest.raises(ValueError, match="is read by orphaned, key or id too"):
        Rows.model_validate(ROWS | changes)


def test_a_file_may_read_a_column_whose_name_only_begins_alike() -> None:
    written = OrphanedSql(file="o.sql", text="deleting_at_night IS NULL")
    Rows.model_validate(ROWS | {"orphaned": (), "orphaned_sql": written})


@pytest.mark.parametrize(
    "name",
    ['id"; DROP TABLE x; --', "id%s", "{id}", "a.b", "", "1st", "x" * 64, "größe", "id\n", " id"],
)
def test_a_name_that_is_no_plain_one_is_refused_wherever_it_stands(name: str) -> None:
    for changes in (
        {"id": name},
        {"detached_at": name},
        {"soft_delete": name},
        {"key": {"column": name}},
        {"key": {"url": name}},
        {"key": {"template": f"sfs/{{{name}}}"}},
        {"table": f"mail.{name}"},
        {"table": f"{name}.attachments"},
        {"orphaned": [{"column": name, "is_null": True}]},
        {"references": [{"table": "mail.drafts", "column": name}]},
        {"references": [{"table": f"mail.{name}", "column": "sfs_key"}]},
    ):
        with pytest.raises(ValueError, match=r"Value error|at least"):
            Rows.model_validate(ROWS | changes)
