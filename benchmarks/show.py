"""Shows what was measured: tables for a terminal, and a file of JSON from which the plot is drawn."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any

import psutil
from rich.table import Table

from benchmarks.figures import TARGETS, Figures

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from benchmarks.contest import Row
    from benchmarks.growth import Size
    from benchmarks.ledger import Point


def machine() -> str:
    """Describe this machine in a line."""
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}"
    )


def show_rows(console: Console, rows: Sequence[Row], num_objects: int) -> None:
    """Print what each contestant took, as medians of its runs."""
    table = Table(title=f"{num_objects:,} objects, medians")
    for heading in ("", "runs", "wall, s", "client CPU, us/object", "Postgres, us/object", "peak, MB"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name in dict.fromkeys(row.name for row in rows):
        mine = [row for row in rows if row.name == name]
        per_object = 1e6 / num_objects
        table.add_row(
            name,
            str(len(mine)),
            f"{median(row.wall for row in mine):.1f}",
            f"{median(row.cpu for row in mine) * per_object:.1f}",
            f"{median(row.postgres for row in mine) * per_object:.1f}",
            f"{median(row.peak for row in mine):.0f}",
        )
    console.print(table)


def show_figures(console: Console, figures: Figures) -> bool:
    """Print each figure and what it must be; True when all are as they must be."""
    table = Table(title="Figures")
    for heading in ("figure", "name", "must be", "is", ""):
        table.add_column(heading)
    for name, target in TARGETS.items():
        if name in figures:
            is_met = target.is_met(figures[name])
            mark = "[green]yes[/green]" if is_met else "[bold red]NO[/bold red]"
            table.add_row(target.what, name, str(target), f"{figures[name]:.2f}", mark)
    console.print(table)
    return all(TARGETS[name].is_met(value) for name, value in figures.items())


def save(
    file: Path,
    series: Path,
    figures: Figures,
    *,
    rows: Sequence[Row],
    sizes: Sequence[Size] = (),
    points: dict[str, list[Point]] | None = None,
) -> None:
    """Write the figures by name, and beside them all that was measured."""
    file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    measured: dict[str, Any] = {
        "machine": machine(),
        "figures": figures,
        "rows": [asdict(row) for row in rows],
        "sizes": [{"num_objects": size.num_objects, "steps": size.steps} for size in sizes],
        "ledger": {name: [asdict(point) for point in some] for name, some in (points or {}).items()},
    }
    series.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
