"""Runs code in a process of its own: Airflow is imported fresh, and nothing of the caller's settings is seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]


def result_of(
    code: str,
    *arguments: str,
    home: Path,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout: float = 120,
) -> Any:
    """Run code that prints ``RESULT`` and a JSON document on one line, and give the document."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        input=stdin,
        env={
            "PATH": os.environ["PATH"],
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
            **(env or {}),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    raise AssertionError(done.stdout[-4_000:] + done.stderr[-4_000:])
