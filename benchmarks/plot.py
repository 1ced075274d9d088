"""Draws what was measured. Run by the interpreter of the peers, which has matplotlib: `plot.py series.json out.svg`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "s3-retention"  # the same picture for the same figures

from matplotlib import pyplot as plt  # noqa: E402 - the back end comes first

MILLION = 1e6


def draw(measured: dict[str, Any], file: Path) -> None:
    """Draw wall times, cost and memory by size, and the ledger's rate as it grows."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.2), layout="constrained")
    names = list(dict.fromkeys(row["name"] for row in measured["rows"]))
    walls = [median(row["wall"] for row in measured["rows"] if row["name"] == name) for name in names]
    bars = left.barh(
        names, walls, color=["#1f77b4" if name.startswith("ours") else "#b0b0b0" for name in names]
    )
    left.bar_label(bars, fmt="%.0f s", padding=3)
    left.invert_yaxis()
    left.set_title("Wall time, 100,000 objects")
    left.set_xlabel("seconds")
    sizes = measured["sizes"]
    counts = [size["num_objects"] for size in sizes]
    middle.plot(counts, [_peak(size) for size in sizes], "o-", color="#1f77b4", label="peak memory, MB")
    middle.plot(counts, [_cost(size) for size in sizes], "s--", color="#d62728", label="CPU, us per object")
    middle.set_xscale("log")
    middle.set_ylim(bottom=0)
    middle.set_title("Cleanups by size")
    middle.set_xlabel("objects")
    middle.legend()
    for name, points in measured["ledger"].items():
        rows = [point["num_rows"] / MILLION for point in points]
        right.plot(rows, [point["rate"] / 1000 for point in points], ".-", label=name)
    right.set_ylim(bottom=0)
    right.set_title("Ledger: settled rows per second")
    right.set_xlabel("million rows in the ledger")
    right.set_ylabel("thousand rows per second")
    right.legend()
    figure.suptitle(measured["machine"], fontsize=9)
    figure.savefig(file, metadata={"Date": None})


def _peak(size: dict[str, Any]) -> float:
    return float(max(step["peak"] for step in size["steps"].values()))


def _cost(size: dict[str, Any]) -> float:
    total = sum(step["cpu"] + step["postgres"] for step in size["steps"].values())
    return float(total / size["num_objects"] * MILLION)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))
