"""`include/sql/schema.sql`: what the migrations make, in one file to read, and to review a change by.

`python -m sandbox.snapshot` writes it anew; `--check` only says whether it is up to date (exit code 1 if not).
"""

from __future__ import annotations

import argparse
import difflib
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.errors import SandboxError
from sandbox.ledger import create_ledger
from sandbox.postgres import postgres

if TYPE_CHECKING:
    from sandbox.postgres import Postgres

FILE = Path(__file__).parents[1] / "include" / "sql" / "schema.sql"
SCHEMA = "s3_retention"
HEADING = """\
-- The ledger schema as the migrations make it. Nothing runs this file: it is written by
-- `python -m sandbox.snapshot`, and a test holds it against the migrations.
"""
# What pg_dump says about itself and its session. Only from the first column: bodies of functions are indented.
_NOISE = re.compile(r"^(--.*|SET .*;|SELECT pg_catalog\.set_config\(.*|\\(un)?restrict .*)$\n", re.MULTILINE)


def snapshot(server: Postgres, database: str) -> str:
    """The schema of the ledger in `database`, free of what changes from one pg_dump to the next."""
    dump: list[str | Path] = [server.programs / "pg_dump", "--schema-only", "--no-owner"]
    dump += [f"--schema={SCHEMA}", server.superuser_conninfo(database)]
    done = subprocess.run(dump, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SandboxError(f"pg_dump of {database} failed: {done.stderr.strip()}")
    statements = re.sub(r"\n{3,}", "\n\n", _NOISE.sub("", done.stdout)).strip()
    return f"{HEADING}\n{statements}\n"


def main() -> int:
    """Write the file, or check it."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.snapshot", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 if it is out of date"
    )
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder, postgres(Path(folder)) as server:
        new = snapshot(server, create_ledger(server).database)
    old = FILE.read_text(encoding="utf-8") if FILE.exists() else ""
    if not check:
        FILE.write_text(new, encoding="utf-8")
        print(f"{FILE}: {'unchanged' if new == old else 'written'}")
        return 0
    if new == old:
        return 0
    print(f"{FILE} is out of date; run `python -m sandbox.snapshot`", file=sys.stderr)
    before, now = (text.splitlines(keepends=True) for text in (old, new))
    sys.stderr.writelines(difflib.unified_diff(before, now, "in the repository", "migrated"))
    return 1


if __name__ == "__main__":
    sys.exit(main())
