"""Writes the tables of docs/stores.md from those that the tests try: `python -m tests.stores_page`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.fault_table import DELETE_FAULTS
from tests.faults.listing_table import LISTING_FAULTS
from tests.store_contract import DEVIATIONS, PROMISES, STORES, seen_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.faults.fault_rows import FaultRow, ListingRow, Wait

PAGE = Path(__file__).parents[1] / "docs" / "stores.md"
AS_AWS = "yes"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def contract() -> str:
    """What each store does of what AWS documents."""
    rows = []
    for promise in PROMISES:
        seen = [seen_on(store, promise) for store in STORES]
        cells = [AS_AWS if one == promise.aws else one for one in seen]
        rows.append([promise.asked, f"[{promise.aws}]({promise.source})", *cells])
    return _table(["asked", "AWS documents", *STORES], rows)


def deviations() -> str:
    """What the product does about each deviation."""
    asked = {promise.name: promise.asked for promise in PROMISES}
    return _table(
        ["store", "asked", "it does", "what we do about it"],
        ([one.store, asked[one.promise], one.seen, one.handling] for one in DEVIATIONS),
    )


def _requests(requests: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in requests.items())


def _waits(waits: Iterable[Wait]) -> str:
    texts = [f"{least:g} s" if least == most else f"up to {most:g} s" for least, most in waits]
    return ", ".join(texts) or "none"


def _ending(row: FaultRow) -> str:
    """What becomes of the objects, by the word of each."""
    by_word: dict[str, int] = {}
    for word in row.ledger.values():
        by_word[word] = by_word.get(word, 0) + 1
    for failure in row.waiting.values():
        word = f"in quarantine as `{failure}`"
        by_word[word] = by_word.get(word, 0) + 1
    if row.stopped is not None:
        again = "the task is tried again" if row.may_pass else "the next run goes on"
        return f"batch stopped by `{row.stopped}`, all pending; {again}"
    of = len(row.scene.due)
    return "; ".join(
        f"{'all' if count == of and of > 1 else count} {word if ' ' in word else f'`{word}`'}"
        for word, count in by_word.items()
    )


def delete_faults() -> str:
    """What becomes of a delivery at each fault."""
    return _table(
        ["hits", "the store", "requests", "waits", "ends"],
        (
            [row.scene.operation, row.fault, _requests(row.requests), _waits(row.waits), _ending(row)]
            for row in DELETE_FAULTS
        ),
    )


def _planned(row: ListingRow) -> str:
    if row.error is None:
        return "planned whole"
    again = "the next run tries again" if row.error == "ListingRefusedError" else "the task is tried again"
    return f"`{row.error}`, nothing planned; {again}"


def listing_faults() -> str:
    """What becomes of a plan at each fault of its listing."""
    return _table(
        ["the store", "requests", "waits", "ends"],
        ([row.fault, str(row.num_requests), _waits(row.waits), _planned(row)] for row in LISTING_FAULTS),
    )


TABLES = {
    "contract": contract,
    "deviations": deviations,
    "delete faults": delete_faults,
    "listing faults": listing_faults,
}
_MARKED = re.compile(r"(<!-- table: ([a-z ]+) -->\n).*?\n(<!-- end -->)", re.DOTALL)


def render(page: str) -> str:
    """Give the page with its tables as they must be. Raises ``KeyError`` for a marker that names none."""
    return _MARKED.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}\n{found[3]}", page)


def tables_of(page: str) -> list[str]:
    """The names of the tables that a page has places for."""
    return [found[1] for found in _MARKED.findall(page)]


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
