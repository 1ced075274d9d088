"""Named queries: each ``-- name:`` of ``include/sql/queries/<table>.sql``, read once."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from s3_retention.errors import SettingsError

if TYPE_CHECKING:
    from typing_extensions import LiteralString

_NAME = re.compile(r"^-- name: ([a-z_]+)$", re.MULTILINE)


def sql_dir() -> Path:
    """Find ``include/sql``: the setting, then ``$AIRFLOW_HOME``, then next to ``plugins/``.

    Raises ``SettingsError`` when it is in none of these places.
    """
    return _find(os.environ.get("AIRFLOW__S3_RETENTION__SQL_DIR"), os.environ.get("AIRFLOW_HOME"))


@lru_cache(maxsize=8)  # it is asked for by each statement
def _find(setting: str | None, home: str | None) -> Path:
    places = []
    if setting:
        places.append(Path(setting))
    if home:
        places.append(Path(home) / "include" / "sql")
    places.append(Path(__file__).resolve().parents[3] / "include" / "sql")
    for place in places:
        if (place / "queries").is_dir():
            return place
    raise SettingsError(
        "include/sql was not found: copy include/ next to plugins/ or into $AIRFLOW_HOME, "
        "or set AIRFLOW__S3_RETENTION__SQL_DIR"
    )


@lru_cache(maxsize=64)
def _read_table(folder: Path, table: str) -> dict[str, str]:
    parts = _NAME.split((folder / "queries" / f"{table}.sql").read_text(encoding="utf-8"))
    return dict(zip(parts[1::2], (text.strip().rstrip(";") for text in parts[2::2]), strict=True))


def names(table: str) -> list[str]:
    """List the names of the queries of one table, in the order of the file."""
    return list(_read_table(sql_dir(), table))


def query(table: str, name: str) -> LiteralString:
    """Give the text of one named query. An unknown name is a fault of the code: ``KeyError``."""
    # psycopg takes only literal strings, so that no SQL is built at run time: these come from files we ship.
    return _read_table(sql_dir(), table)[name]
