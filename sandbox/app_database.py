"""The database of a made-up application of the sandbox: e-mails, and attachments whose files are in a bucket."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from typing_extensions import Self

    from sandbox.postgres import Postgres

TRIGGERS = Path(__file__).resolve().parent.parent / "include" / "sql" / "optional" / "orphaned_rows.sql"
NAME = "app_db"
ROLE = "retention_rows"
SCHEMA = """
CREATE SCHEMA mail;
CREATE TABLE mail.emails (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
CREATE TABLE mail.attachments (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email_id bigint REFERENCES mail.emails (id) ON DELETE SET NULL,
    sfs_key text,
    account text NOT NULL DEFAULT 'acme',
    state text NOT NULL DEFAULT 'stored',
    orphaned_at timestamptz,
    deleting_at timestamptz
);
CREATE INDEX attachments_key ON mail.attachments (sfs_key);
CREATE TABLE mail.drafts (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, sfs_key text, attachment_id bigint);
"""
GRANTS = """
GRANT USAGE ON SCHEMA mail TO retention_rows;
GRANT SELECT ON ALL TABLES IN SCHEMA mail TO retention_rows;
GRANT DELETE ON mail.attachments TO retention_rows;
GRANT UPDATE (deleting_at) ON mail.attachments TO retention_rows;
"""


ATTACHED_TRIGGERS = """
CREATE TRIGGER attachments_note_detach BEFORE INSERT OR UPDATE ON mail.attachments
FOR EACH ROW EXECUTE FUNCTION s3_retention_rows.note_detach('email_id', 'orphaned_at');
CREATE TRIGGER attachments_refuse_change BEFORE UPDATE ON mail.attachments
FOR EACH ROW EXECUTE FUNCTION s3_retention_rows.refuse_change('deleting_at');
CREATE TRIGGER attachments_refuse_twin BEFORE INSERT OR UPDATE OF sfs_key ON mail.attachments
FOR EACH ROW EXECUTE FUNCTION s3_retention_rows.refuse_reference(
    'sfs_key', 'mail.attachments', 'sfs_key', 'deleting_at'
);
CREATE TRIGGER drafts_refuse_reference BEFORE INSERT OR UPDATE ON mail.drafts
FOR EACH ROW EXECUTE FUNCTION s3_retention_rows.refuse_reference(
    'sfs_key', 'mail.attachments', 'sfs_key', 'deleting_at'
);
"""


@dataclass(frozen=True)
class AppDatabase:
    """One database of it. The package logs in by ``conninfo``, with no more rights than it needs."""

    postgres: Postgres
    database: str

    @classmethod
    def create(cls, postgres: Postgres, database: str) -> Self:
        """Make an empty one."""
        postgres.create_database(database)
        app = cls(postgres, database)
        app.run(
            "DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'retention_rows') THEN "
            "CREATE ROLE retention_rows LOGIN; END IF; END $$"
        )
        app.run(SCHEMA)
        app.run(GRANTS)
        return app

    def attach_triggers(self) -> None:
        """Attach the optional triggers that come with the package."""
        self.run(TRIGGERS.read_text(encoding="utf-8"))
        self.run(ATTACHED_TRIGGERS)

    def drop(self) -> None:
        """Drop it, with whoever is connected to it."""
        self.postgres.drop_database(self.database)

    @property
    def conninfo(self) -> str:
        """By which the package logs in."""
        return self.postgres.conninfo(ROLE, self.database)

    def connect(self) -> psycopg.Connection[Any]:
        """Open it as its owner, in autocommit."""
        return psycopg.connect(self.postgres.superuser_conninfo(self.database), autocommit=True)

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Do something as the application does; the rows that come of it."""
        with closing(self.connect()) as conn:
            cursor = conn.execute(sql.SQL(statement), values or None)
            return cursor.fetchall() if cursor.description else []

    def add(
        self, *keys: str | None, age: timedelta | None = timedelta(days=90), account: str = "acme"
    ) -> list[int]:
        """Add a row for each key, orphaned for ``age``, or attached where that is None: their ids."""
        with closing(self.connect()) as conn:
            email = None
            if age is None:
                (email,) = conn.execute("INSERT INTO mail.emails DEFAULT VALUES RETURNING id").fetchone() or (
                    None,
                )
            rows = conn.execute(
                "INSERT INTO mail.attachments (email_id, sfs_key, orphaned_at, account) "
                "SELECT %s, key, now() - %s::interval, %s FROM unnest(%s::text[]) WITH ORDINALITY AS k (key, n) "
                "ORDER BY n RETURNING id",
                [email, age, account, list(keys)],
            ).fetchall()
        return [row[0] for row in rows]

    def attach(self, *ids: int) -> None:
        """Give rows a parent again."""
        self.run(
            "WITH email AS (INSERT INTO mail.emails DEFAULT VALUES RETURNING id) "
            "UPDATE mail.attachments SET email_id = email.id, orphaned_at = NULL FROM email "
            "WHERE attachments.id = ANY(%s)",
            list(ids),
        )

    def detach(self, *ids: int, age: timedelta = timedelta(days=90)) -> None:
        """Take rows their parent, so long ago."""
        self.run(
            "UPDATE mail.attachments SET email_id = NULL, orphaned_at = now() - %s::interval WHERE id = ANY(%s)",
            age,
            list(ids),
        )

    def left(self) -> dict[int, str | None]:
        """The key of each row that is there, by its id."""
        return dict(self.run("SELECT id, sfs_key FROM mail.attachments ORDER BY id"))
