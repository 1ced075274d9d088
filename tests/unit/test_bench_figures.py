"""The figures of the benchmark are what was measured, held against each other round by round; no test measures time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import figures
from benchmarks.contest import OURS, OURS_CONDITIONAL, Row
from benchmarks.figures import TARGETS, Target
from benchmarks.ledger import Point
from benchmarks.page import write_page

if TYPE_CHECKING:
    from pathlib import Path


def row(number: int, name: str, wall: float, *, cpu: float = 1.0, postgres: float = 0.0) -> Row:
    return Row(number, name, wall, cpu, postgres, peak=1.0)


def contest(*walls: dict[str, float]) -> list[Row]:
    """A row for each contestant of each round."""
    return [row(number, name, wall) for number, one in enumerate(walls) for name, wall in one.items()]


ALL = {OURS: 10.0, OURS_CONDITIONAL: 20.0, "s5cmd": 11.0, "operator": 30.0, "rclone": 50.0, "awscli": 90.0}


def test_a_peer_is_held_against_the_run_of_its_own_round() -> None:
    slow_round = {name: wall * 3 for name, wall in ALL.items()} | {"s5cmd": 66.0}
    found = figures.of_contest(contest(ALL, slow_round, ALL))
    assert found["wall_vs_s5cmd"] == pytest.approx(1.1)  # the median of 1.1, 2.2 and 1.1
    assert found["wall_vs_s5cmd_conditional"] == pytest.approx(0.55)
    assert found["wall_vs_awscli"] == pytest.approx(9.0)


def test_a_peer_that_took_part_in_one_round_is_held_against_that_round() -> None:
    quick = {name: wall for name, wall in ALL.items() if name not in ("operator", "rclone", "awscli")}
    found = figures.of_contest(contest(ALL, {name: wall / 2 for name, wall in quick.items()}))
    assert found["wall_vs_operator"] == pytest.approx(3.0)
    assert found["wall_vs_rclone"] == pytest.approx(5.0)


def test_cpu_is_that_of_client_and_postgres() -> None:
    rows = [row(0, name, wall) for name, wall in ALL.items() if name not in (OURS, "s5cmd")]
    rows += [row(0, OURS, 10, cpu=2.0, postgres=1.0), row(0, "s5cmd", 10, cpu=4.0)]
    assert figures.of_contest(rows)["cpu_vs_s5cmd"] == pytest.approx(0.75)


def test_a_ledger_is_held_against_its_own_first_rows() -> None:
    points = [Point(100_000, 100.0), Point(5_000_000, 10.0), Point(10_000_000, 90.0)]
    assert figures.of_ledger(points) == {"ledger_10m_vs_100k": pytest.approx(0.9)}


def test_a_run_through_airflow_is_held_against_the_run_outside_it_that_was_beside_it() -> None:
    pairs = [(20.0, 25.0), (30.0, 33.0), (10.0, 90.0)]
    assert figures.of_airflow(pairs) == {"airflow_overhead": pytest.approx(1.25)}


@pytest.mark.parametrize(
    ("is_least", "met", "missed"), [(True, (0.7, 0.8), (0.69,)), (False, (0.7, 0.6), (0.71,))]
)
def test_a_figure_is_met_at_its_bound_and_on_its_good_side(
    is_least: bool, met: tuple[float, ...], missed: tuple[float, ...]
) -> None:
    target = Target("what", 0.7, is_least=is_least)
    assert all(target.is_met(value) for value in met)
    assert not any(target.is_met(value) for value in missed)


MEASURED: dict[str, Any] = {
    "machine": "one core",
    "figures": dict.fromkeys(TARGETS, 1.0),
    "rows": [{"name": OURS, "wall": 2.0, "cpu": 1.0, "postgres": 0.5, "peak": 80.0}],
    "sizes": [
        {
            "num_objects": 10,
            "steps": {
                step: {"wall": 1.0, "cpu": 1.0, "postgres": 1.0, "peak": 9.0}
                for step in ("plan", "delete", "report")
            },
        }
    ],
    "ledger": {
        "one": [{"num_rows": num, "rate": num / 10} for num in (10**5, 10**6, 2 * 10**6, 5 * 10**6, 10**7)]
    },
}
PLACES = "".join(
    f"<!-- {name} -->\nold\n<!-- end of {name} -->\n" for name in ("machine", "figures", "rows", "sizes")
)


def test_the_page_has_each_figure_with_what_it_must_be_and_keeps_its_words(tmp_path: Path) -> None:
    page, series = tmp_path / "page.md", tmp_path / "series.json"
    series.write_text(json.dumps(MEASURED), encoding="utf-8")
    page.write_text(f"words\n{PLACES}<!-- ledger -->\n<!-- end of ledger -->\nmore words\n", encoding="utf-8")
    write_page(page, series)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("words\n")
    assert text.endswith("more words\n")
    assert "old" not in text
    assert "| `cpu_vs_s5cmd` | <= 0.7 | 1.00 | NO |" in text
    assert "| `memory_growth` | <= 1.2 | 1.00 | yes |" in text
    write_page(page, series)
    assert page.read_text(encoding="utf-8") == text


def test_a_page_without_a_place_for_a_table_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    page, series = tmp_path / "page.md", tmp_path / "series.json"
    series.write_text(json.dumps(MEASURED), encoding="utf-8")
    page.write_text(PLACES, encoding="utf-8")
    with pytest.raises(ValueError, match=r"page.md has no place for ledger"):
        write_page(page, series)
    assert page.read_text(encoding="utf-8") == PLACES
