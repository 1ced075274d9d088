"""Which chunk of a batch comes next, where a tenant may have only so many requests at the store."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from s3_retention.steps.decide_again import Delivery


@dataclass(slots=True)
class ChunkQueue:
    """Ids of chunks with their tenants, in order; none of them is loaded yet.

    ``max_per_tenant``: what comes next is the first chunk of which no more requests are in flight by its tenant. One
    that is passed over keeps its place before those behind it. None is no limit.
    """

    ahead: deque[tuple[int, str | None]]
    max_per_tenant: int | None
    _passed: deque[tuple[int, str | None]] = field(default_factory=deque)

    def take(self, in_flight: Iterable[Delivery]) -> int | None:
        """Give the id of the chunk that comes next; None where there is none, or each waits for its own tenant."""
        if self.max_per_tenant is None:
            return self.ahead.popleft()[0] if self.ahead else None
        sent = Counter(delivery.tenant for delivery in in_flight)
        full = {tenant for tenant, num in sent.items() if tenant is not None and num >= self.max_per_tenant}
        for place, (chunk_id, tenant) in enumerate(self._passed):
            if tenant not in full:
                del self._passed[place]
                return chunk_id
        while self.ahead:
            chunk_id, tenant = self.ahead.popleft()
            if tenant not in full:
                return chunk_id
            self._passed.append((chunk_id, tenant))
        return None
