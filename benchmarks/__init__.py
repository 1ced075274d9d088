"""Measures the package against its peers, each figure as a ratio to a peer in the same run.

Seeds come first (`seeds`), from which each run gets a bed of its own (`bed`); the contest lets the package and its
peers delete the same objects in turns; growth and ledger show what size does; `figures` names what comes of it. No
test depends on a time.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "plugins"))
