"""A plan of a million objects under a keep rule holds no group in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.ledger import Ledger

ROOT = Path(__file__).parents[2]
MAX_MB = 250


def test_a_plan_of_a_million_objects_in_groups_stays_under_250_mb(ledger: Ledger) -> None:
    program = [sys.executable, "-m", "tests.integration.plan_a_million", ledger.writer_conninfo]
    said = subprocess.run(program, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    scanned, due, megabytes = said.split()
    assert int(scanned) == 1_000_000
    assert int(due) > 900_000
    assert float(megabytes) < MAX_MB
