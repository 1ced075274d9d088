"""Which chunk comes next, where a tenant may have only so many requests at the store."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any, cast

import pytest

from s3_retention.steps.chunk_queue import ChunkQueue
from s3_retention.steps.decide_again import Delivery

NOW = datetime(2026, 6, 1, tzinfo=timezone.utc)


def queue_of(tenants: str, max_per_tenant: int | None) -> ChunkQueue:
    """Chunks 0, 1, 2, ... of these tenants; a blank is none."""
    chunks = deque((number, tenant.strip() or None) for number, tenant in enumerate(tenants))
    return ChunkQueue(chunks, max_per_tenant)


def sent(tenants: str) -> list[Delivery]:
    """What is in flight of each of these."""
    commands = (cast("Any", SimpleNamespace(tenant=tenant.strip() or None)) for tenant in tenants)
    return [Delivery([command], {}, number, NOW) for number, command in enumerate(commands)]


def order(queue: ChunkQueue, in_flight: str = "") -> list[int]:
    """All that it gives while this is in flight."""
    return list(iter(lambda: queue.take(sent(in_flight)), None))


@pytest.mark.parametrize("limit", [None, 1, 5])
def test_while_nobody_is_full_the_order_is_that_of_the_plan(limit: int | None) -> None:
    assert order(queue_of("aabcab", limit)) == [0, 1, 2, 3, 4, 5]


def test_without_a_limit_nobody_is_full() -> None:
    assert order(queue_of("aab", None), "aaaaaaaa") == [0, 1, 2]


def test_what_is_of_a_full_tenant_is_passed_over_and_keeps_its_place() -> None:
    queue = queue_of("aaabac", 2)
    assert queue.take(sent("aa")) == 3
    assert queue.take(sent("aa")) == 5
    assert queue.take(sent("aa")) is None
    assert queue.take(sent("a")) == 0
    assert queue.take(sent("aa")) is None
    assert order(queue) == [1, 2, 4]


def test_what_has_no_tenant_is_never_full() -> None:
    assert order(queue_of("  a", 1), "   ") == [0, 1, 2]


def test_a_redrive_fills_no_tenant() -> None:
    redriven = [Delivery(one.commands, {}, None, NOW) for one in sent("aaa")]
    assert queue_of("a", 1).take(redriven) == 0
