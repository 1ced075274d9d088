"""What is unfinished in a batch, a request's worth at a time, each when its turn at the store has come."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from s3_retention.steps.chunk_queue import ChunkQueue
from s3_retention.steps.decide_again import Delivery, GroupOfPlan
from s3_retention.store import (
    chunks,
    command_rows,
    legal_holds,
    quarantine,
    request_rates,
    tenant_pauses,
)
from s3_retention.store.kill_switches import NOTHING_SET

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from datetime import datetime

    from s3_retention.core.command import DeleteCommand
    from s3_retention.core.objects import ObjectRef
    from s3_retention.store.batches import ClaimedBatch
    from s3_retention.store.connection import Connection
    from s3_retention.store.kill_switches import SetLevers
    from s3_retention.store.request_rates import PacedStore


@dataclass(slots=True)
class Feed:
    """The deliveries of one batch.

    ``max_rate`` is the policy's own, in keys per second, and ``max_per_tenant`` in requests in flight; ``clock`` is in
    seconds. ``has_rows``: the policy is one of rows.
    """

    conn: Connection
    batch: ClaimedBatch
    store: PacedStore
    max_rate: float | None
    clock: Callable[[], float]
    max_per_tenant: int | None = None
    has_rows: bool = False
    _upcoming: Delivery | None = None
    _levers: SetLevers = NOTHING_SET
    _turn_at: float = 0.0
    _redriven: Iterator[Delivery] = field(init=False)
    _queue: ChunkQueue | None = None

    def __post_init__(self) -> None:
        """Begin with the first delivery; nothing is loaded yet."""
        self._redriven = self._list_redriven()

    def load(self, in_flight: Collection[Delivery] = ()) -> Delivery | None:
        """Load the next delivery and reserve its turn, unless that is done.

        ``in_flight`` is what is at the store. None where nothing is left, or all that is waits for its own tenant.
        """
        if self._upcoming is None:
            loaded = self._next(in_flight)
            if loaded is None:
                return None
            self._upcoming = self._under_levers(loaded)
            # One statement by itself: the turn is taken when it ends.
            seconds = request_rates.reserve(
                self.conn, self.store, num_keys=len(self._upcoming.commands), max_rate=self.max_rate
            )
            self._turn_at = self.clock() + seconds
        return self._upcoming

    def _next(self, in_flight: Collection[Delivery]) -> Delivery | None:
        """Load what is unfinished, each request's worth in a short transaction of its own."""
        if self.batch.kind == "redrive":
            return next(self._redriven, None)
        if self._queue is None:
            listed = chunks.list_open(self.conn, batch_id=self.batch.batch_id)
            self._queue = ChunkQueue(deque(listed.items()), self.max_per_tenant)
        while (chunk_id := self._queue.take(in_flight)) is not None:
            commands = chunks.list_unfinished(self.conn, chunk_id=chunk_id, fence=self.batch.fence)
            if commands:
                return self._load(commands, chunk_id=chunk_id)
        return None

    def _list_redriven(self) -> Iterator[Delivery]:
        after_id = 0
        while commands := quarantine.list_redriven(
            self.conn, batch_id=self.batch.batch_id, after_id=after_id
        ):
            after_id = max(command.quarantine_id or 0 for command in commands)
            yield self._load(commands, chunk_id=None)

    def _load(self, commands: Sequence[DeleteCommand], *, chunk_id: int | None) -> Delivery:
        # By the time of the last look at the levers: an older one only keeps more.
        now = self._levers.read_at
        loaded = load_delivery(self.conn, commands, chunk_id=chunk_id, now=now, has_rows=self.has_rows)
        return replace(loaded, is_again=loaded.is_redrive or self.batch.fence > 1)

    def heed(self, levers: SetLevers) -> None:
        """Heed the holds and pauses in force, known by their sums: what changed reaches what is loaded already."""
        before, self._levers = self._levers, levers
        is_new = (levers.holds, levers.pauses) != (before.holds, before.pauses)
        if is_new and self._upcoming is not None:
            self._upcoming = self._under_levers(self._upcoming)

    def _under_levers(self, delivery: Delivery) -> Delivery:
        """Look up what is held and who is paused; where nothing is in force, nothing is asked."""
        held, paused = frozenset[bytes](), frozenset[str]()
        if self._levers.holds is not None:
            places = legal_holds.find_held(self.conn, [command.ref for command in delivery.commands])
            held = frozenset(delivery.commands[place].command_id for place in places)
        if self._levers.pauses is not None:
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


def load_delivery(
    conn: Connection,
    commands: Sequence[DeleteCommand],
    *,
    chunk_id: int | None,
    now: datetime,
    has_rows: bool = False,
) -> Delivery:
    """Load what the second decision needs from the ledger; ``now`` is by the ledger's clock."""
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
    return Delivery(commands, keepers, chunk_id, now, rows=rows)
