"""The bucket of the demo: weekly digests of a thousand customers, five generations of which have expired.

A real server stamps an object when it is written, so nothing can be made old by its stamp. These objects are old by
the month in their key, and the policy reads their age from there.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from botocore.config import Config

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.s3 import S3Server

BUCKET = "weekly-digests"
CUSTOMERS = range(1001, 2001)
EXPIRED_MONTHS = ("2026-02", "2026-03", "2026-04", "2026-05", "2026-06")
ODD_CUSTOMER = "2000\x01"
"""A control character, which S3 takes and the XML of a bulk delete cannot carry."""
DENIED = ("exports/2026-05/customer-1007.json", "exports/2026-06/customer-1842.json")
THREADS = 16


@dataclass(frozen=True)
class Digests:
    """The keys of the bucket: what must go and what must stay."""

    expired: tuple[str, ...]
    current: tuple[str, ...]
    bystanders: tuple[str, ...]

    @property
    def everything(self) -> tuple[str, ...]:
        """All keys."""
        return self.expired + self.current + self.bystanders


def weekly_digests(now: datetime | None = None) -> Digests:
    """Name the objects: 5,000 expired ones, the generation of this month, and bystanders.

    One of the expired has a key that XML cannot carry; it has a newer sibling too, so that no keep rule saves it.
    """
    this_month = (now or datetime.now(timezone.utc)).strftime("%Y-%m")
    expired = [_key(month, customer) for month in EXPIRED_MONTHS for customer in CUSTOMERS]
    expired[-1] = _key(EXPIRED_MONTHS[-1], ODD_CUSTOMER)
    current = [_key(this_month, customer) for customer in (*CUSTOMERS, ODD_CUSTOMER)]
    bystanders = (
        "exports-archive/2026-02/customer-1001.json",  # a sibling of the prefix
        "exports/2026-02/README.txt",  # not selected
        "exports/2026-02/customer-1001.json.bak",  # nearly selected
        "exports/2026-03/customer-9001.json",  # long due, and the newest of its customer
        "exports/undated/customer-1001.json",  # its age cannot be told
        "invoices/2026-02/customer-1001.json",
    )
    return Digests(tuple(expired), tuple(current), bystanders)


def seed(server: S3Server, digests: Digests, progress: Callable[[], None]) -> None:
    """Make the bucket and write every object; ``progress`` is called after each."""
    client = server.admin_client(Config(max_pool_connections=THREADS))
    client.create_bucket(Bucket=BUCKET)

    def put(key: str) -> None:
        client.put_object(Bucket=BUCKET, Key=key, Body=b'{"digest": "weekly"}')
        progress()

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(put, digests.everything))


def listing(server: S3Server) -> set[str]:
    """List the bucket with plain boto3 as its admin: nothing of the product is asked."""
    pages = server.admin_client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    return {entry["Key"] for page in pages for entry in page.get("Contents", [])}


def _key(month: str, customer: int | str) -> str:
    return f"exports/{month}/customer-{customer}.json"
