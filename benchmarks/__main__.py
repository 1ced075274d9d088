"""`make bench`: everything, in about an hour of a quiet machine. `make bench-quick`: 100,000 objects alone."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console

from benchmarks import contest, figures, growth, ledger, seeds, show
from benchmarks.measure import REPOSITORY
from benchmarks.page import write_page
from benchmarks.peers import PEERS
from benchmarks.through_airflow import pair_with_airflow
from sandbox.errors import SandboxError
from sandbox.stack import exit_on_signals, temporary_folder

if TYPE_CHECKING:
    from benchmarks.figures import Figures

HERE = Path(__file__).resolve().parent
LATEST, SERIES = HERE / "latest.json", HERE / "series.json"
PAGE = REPOSITORY / "docs" / "performance.md"
PLOT = REPOSITORY / "docs" / "images" / "performance.svg"
NUM_OBJECTS, SMALL, LARGE = 100_000, 10_000, 1_000_000
NUM_ROWS, PER_INTERVAL = 10_000_000, 100_000
WIDTH = 120
ROUNDS, QUICK_ROUNDS, QUICK_SLOW_ROUNDS, AIRFLOW_PAIRS, LISTINGS = 5, 2, 1, 5, 3


def main() -> int:
    """Measure, print and save: 0 when every figure is as it must be, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the rows of 100,000 objects only")
    parser.add_argument(
        "--rounds", type=int, metavar="N", help=f"{ROUNDS} rounds, and {QUICK_ROUNDS} if quick"
    )
    parser.add_argument(
        "--slow-rounds", type=int, metavar="N", help="rounds in which the slow peers take part (default: all)"
    )
    parser.add_argument(
        "--seeds", type=Path, metavar="DIR", help="keep the filled buckets there, and use them again"
    )
    options = parser.parse_args()
    console = Console(width=WIDTH)
    num = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    rounds = Rounds(num, options.slow_rounds or (QUICK_SLOW_ROUNDS if options.quick else num))
    try:
        with exit_on_signals(), temporary_folder() as folder:
            at = Places(folder, (options.seeds or folder / "seeds").resolve())
            return 0 if _measure(console, at, rounds, is_quick=options.quick) else 1
    except SandboxError as error:
        console.print(f"bench: {error}", style="red", markup=False, highlight=False)
        return 1


class Places(NamedTuple):
    """Where the runs have their data, and where the filled buckets are."""

    work: Path
    seeds: Path


class Rounds(NamedTuple):
    """In how many rounds all take part, and in how many of these the slow peers do."""

    all: int
    slow: int


def _measure(console: Console, at: Places, rounds: Rounds, *, is_quick: bool) -> bool:
    console.print(f"On {show.machine()}. Each run has a server of its own, on a copy of the same data.")
    folder = at.work
    seed = _seed(console, at.seeds, NUM_OBJECTS)
    rows = []
    for row in contest.hold(seed, folder / "contest", num_rounds=rounds.all, num_slow_rounds=rounds.slow):
        _say(console, f"round {row.round_number + 1}: {row.name} took {row.wall:.1f} s")
        rows.append(row)
    show.show_rows(console, rows, NUM_OBJECTS)
    found = figures.of_contest(rows)
    found |= _airflow(console, folder, seed, 1 if is_quick else AIRFLOW_PAIRS)
    # After each part: what was measured is kept, whatever becomes of the next.
    show.save(LATEST, SERIES, found, rows=rows)
    if is_quick:
        return show.show_figures(console, found)
    large, sizes = _seed(console, at.seeds, LARGE), []
    for one in (_seed(console, at.seeds, SMALL), seed, large):
        sizes.append(growth.measure_size(one, folder / "growth"))
        _say(
            console,
            f"{one.num_objects:,}: {sizes[-1].microseconds:.1f} us CPU an object, {sizes[-1].peak:.0f} MB",
        )
    pairs = []
    for _ in range(LISTINGS):
        pairs.append(growth.plan_against_listing(large, folder / "growth"))
        _say(console, f"bare listing {pairs[-1][0]:.1f} s, plan {pairs[-1][1]:.1f} s")
    found |= figures.of_sizes(sizes) | figures.of_listings(pairs)
    show.save(LATEST, SERIES, found, rows=rows, sizes=sizes)
    points = _ledgers(console, folder)
    found |= figures.of_ledger(points["100,000 rows an interval"])
    show.save(LATEST, SERIES, found, rows=rows, sizes=sizes, points=points)
    subprocess.run([PEERS / "python", HERE / "plot.py", SERIES, PLOT], check=True)
    write_page(PAGE, SERIES)
    return show.show_figures(console, found)


def _seed(console: Console, folder: Path, num_objects: int) -> seeds.Seed:
    with console.status(f"  filling a bucket with {num_objects:,} objects ..."):
        return seeds.make_seed(folder / str(num_objects), num_objects)


def _airflow(console: Console, folder: Path, seed: seeds.Seed, num_pairs: int) -> Figures:
    pairs = []
    for number in range(num_pairs):
        pairs.append(pair_with_airflow(seed, folder, number))
        _say(console, f"outside Airflow {pairs[-1][0]:.1f} s, through it {pairs[-1][1]:.1f} s")
    return figures.of_airflow(pairs)


def _ledgers(console: Console, folder: Path) -> dict[str, list[ledger.Point]]:
    points = {}
    for name, per_interval in (
        ("100,000 rows an interval", PER_INTERVAL),
        ("one interval", NUM_ROWS),
    ):
        points[name] = list(
            ledger.measure_ledger(folder / "ledger", num_rows=NUM_ROWS, per_interval=per_interval)
        )
        first, last = points[name][0], points[name][-1]
        _say(
            console,
            f"ledger, {name}: {first.rate:,.0f} rows/s at {first.num_rows:,}, {last.rate:,.0f} at {last.num_rows:,}",
        )
    return points


def _say(console: Console, text: str) -> None:
    console.print(f"  {text}", highlight=False, markup=False)


if __name__ == "__main__":
    sys.exit(main())
