"""What is unfinished in a batch, a request's worth at a time, each when its turn at the store has come."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from s3_retention.steps.decide_again import Delivery, GroupOfPlan
from s3_retention.store import (
    chunks,
    command_rows,
    legal_holds,
    quarantine,
    request_rates,
    tenant_pauses,
    watermarks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.objects import ObjectRef
    from s3_retention.store.batches import ClaimedBatch
    from s3_retention.store.connection import Connection
    from s3_retention.store.request_rates import PacedStore


@dataclass(slots=True)
class Feed:
    """The deliveries of one batch. ``max_rate`` is the policy's own, in keys per second; ``clock`` is in seconds.

    ``has_rows``: the policy is one of rows.
    """

    conn: Connection
    batch: ClaimedBatch
    store: PacedStore
    max_rate: float | None
    clock: Callable[[], float]
    has_rows: bool = False
    _upcoming: Delivery | None = None
    _holds: str | None = None
    _pauses: str | None = None
    _turn_at: float = 0.0
    _todo: Iterator[Delivery] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with the first delivery; nothing is loaded yet."""
        self._todo = _deliveries(self.conn, self.batch, has_rows=self.has_rows)

    def load(self) -> Delivery | None:
        """Load the next delivery and reserve its turn, unless that is done; None where nothing is left."""
        if self._upcoming is None:
            loaded = next(self._todo, None)
            if loaded is None:
                return None
            self._upcoming = self._under_levers(loaded)
            # One statement by itself: the turn is taken when it ends.
            seconds = request_rates.reserve(
                self.conn, self.store, num_keys=len(self._upcoming.commands), max_rate=self.max_rate
            )
            self._turn_at = self.clock() + seconds
        return self._upcoming

    def heed(self, *, holds: str | None, pauses: str | None) -> None:
        """Heed the holds and pauses in force, known by their sums: what changed reaches what is loaded already."""
        is_new = (holds, pauses) != (self._holds, self._pauses)
        self._holds, self._pauses = holds, pauses
        if is_new and self._upcoming is not None:
            self._upcoming = self._under_levers(self._upcoming)

    def _under_levers(self, delivery: Delivery) -> Delivery:
        """Look up what is held and who is paused; where nothing is in force, nothing is asked."""
        held, paused = frozenset[bytes](), frozenset[str]()
        if self._holds is not None:
            places = legal_holds.find_held(self.conn, [command.ref for command in delivery.commands])
            held = frozenset(delivery.commands[place].command_id for place in places)
        if self._pauses is not None:
            tenants = {command.tenant for command in delivery.commands if command.tenant is not None}
            if tenants:
                paused = tenant_pauses.find_paused(self.conn, policy=self.batch.policy, tenants=tenants)
        return replace(delivery, held=held, paused=paused)

    def take(self) -> Delivery | None:
        """Give the delivery that is loaded; None where there is none, or its turn has not come."""
        if self.seconds_to_turn > 0:
            return None
        taken, self._upcoming = self._upcoming, None
        return taken

    @property
    def has_upcoming(self) -> bool:
        """True where a delivery is loaded and waits for its turn."""
        return self._upcoming is not None

    @property
    def seconds_to_turn(self) -> float:
        """In how many seconds the turn of the upcoming delivery comes; 0.0 where it has come."""
        return max(0.0, self._turn_at - self.clock())


def _deliveries(conn: Connection, batch: ClaimedBatch, *, has_rows: bool) -> Iterator[Delivery]:
    """Load what is unfinished, each request's worth in a short transaction of its own."""
    if batch.kind == "redrive":
        after_id = 0
        while True:
            commands = quarantine.list_redriven(conn, batch_id=batch.batch_id, after_id=after_id)
            if not commands:
                return
            after_id = max(command.quarantine_id or 0 for command in commands)
            yield load_delivery(conn, commands, chunk_id=None, has_rows=has_rows)
    for chunk_id in chunks.list_open(conn, batch_id=batch.batch_id):
        commands = chunks.list_unfinished(conn, chunk_id=chunk_id, fence=batch.fence)
        if commands:
            yield load_delivery(conn, commands, chunk_id=chunk_id, has_rows=has_rows)


def load_delivery(
    conn: Connection, commands: Sequence[DeleteCommand], *, chunk_id: int | None, has_rows: bool = False
) -> Delivery:
    """Load what the second decision needs from the ledger."""
    wanted: dict[tuple[int, int], set[str]] = {}
    for command in commands:
        if command.group_key is not None:
            wanted.setdefault((command.interval_id, command.generation), set()).add(command.group_key)
    keepers: dict[GroupOfPlan, list[ObjectRef]] = {}
    for (interval_id, generation), group_keys in wanted.items():
        found = chunks.list_keepers(
            conn, interval_id=interval_id, generation=generation, group_keys=group_keys
        )
        keepers |= {(interval_id, generation, key): refs for key, refs in found.items()}
    rows = command_rows.list_of(conn, commands) if has_rows else None
    return Delivery(commands, keepers, chunk_id, watermarks.read_clock(conn), rows=rows)
