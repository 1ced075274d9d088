"""The tables of docs/performance.md, out of what was measured: no figure is typed by hand."""

from __future__ import annotations

import json
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.figures import TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def write_page(page: Path, series: Path) -> None:
    """Write the tables between the markers of the page; what stands around them is left alone."""
    measured = json.loads(series.read_text(encoding="utf-8"))
    text = page.read_text(encoding="utf-8")
    for name, table in tables(measured).items():
        before, begin, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->\n")
        if not end:
            raise ValueError(f"{page.name} has no place for {name}")
        text = f"{before}{begin}{table}\n{end}{after}"
    page.write_text(text, encoding="utf-8")


def tables(measured: dict[str, Any]) -> dict[str, str]:
    """Make each table, by the name of its markers."""
    return {
        "machine": f"{measured['machine']}.",
        "figures": _figures(measured["figures"]),
        "rows": _rows(measured["rows"]),
        "sizes": _sizes(measured["sizes"]),
        "ledger": _ledger(measured["ledger"]),
    }


def _figures(figures: dict[str, float]) -> str:
    lines = [
        (
            target.what,
            f"`{name}`",
            str(target),
            f"{figures[name]:.2f}",
            "yes" if target.is_met(figures[name]) else "NO",
        )
        for name, target in TARGETS.items()
        if name in figures
    ]
    return _table(("figure", "name", "must be", "is", "met"), lines)


def _rows(rows: list[dict[str, Any]]) -> str:
    lines = []
    for name in dict.fromkeys(row["name"] for row in rows):
        mine = [row for row in rows if row["name"] == name]
        walls = sorted(row["wall"] for row in mine)
        lines.append(
            (
                name,
                str(len(mine)),
                f"{median(walls):.1f}",
                f"{walls[0]:.1f} to {walls[-1]:.1f}",
                f"{median(row['cpu'] for row in mine) * 10:.0f}",
                f"{median(row['postgres'] for row in mine) * 10:.0f}",
                f"{median(row['peak'] for row in mine):.0f}",
            )
        )
    headings = (
        "who",
        "runs",
        "wall, s",
        "from, to",
        "client CPU, us/object",
        "Postgres CPU, us/object",
        "peak, MB",
    )
    return _table(headings, lines)


def _sizes(sizes: list[dict[str, Any]]) -> str:
    lines = []
    for size in sizes:
        num, steps = size["num_objects"], size["steps"]
        lines.append(
            (
                f"{num:,}",
                *(f"{steps[step]['wall']:.1f}" for step in ("plan", "delete", "report")),
                f"{sum(step['cpu'] for step in steps.values()) / num * 1e6:.0f}",
                f"{sum(step['postgres'] for step in steps.values()) / num * 1e6:.0f}",
                f"{max(step['peak'] for step in steps.values()):.0f}",
            )
        )
    headings = (
        "objects",
        "plan, s",
        "delete, s",
        "report, s",
        "client CPU, us/object",
        "Postgres CPU, us/object",
        "peak, MB",
    )
    return _table(headings, lines)


def _ledger(series: dict[str, list[dict[str, Any]]]) -> str:
    shown = (100_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000)
    lines = []
    for name, points in series.items():
        rates = {point["num_rows"]: point["rate"] for point in points}
        lines.append((name, *(f"{rates[num]:,.0f}" for num in shown)))
    return _table(("rows settled per second, by rows in the ledger", *(f"{num:,}" for num in shown)), lines)


def _table(headings: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    heads = list(headings)
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rule, *lines))
