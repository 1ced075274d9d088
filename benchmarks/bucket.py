"""The bucket of every run: the names of its objects, and the identity that deletes them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sandbox.s3 import REGION

if TYPE_CHECKING:
    from sandbox.s3 import S3Server

BUCKET = "bench"
PREFIX = "exports/"
NUM_MONTHS, NUM_DAYS = 6, 10


def key_of(number: int) -> str:
    """Name an object: its month is long over, and a folder holds a sixtieth of all."""
    month, day = number % NUM_MONTHS + 1, number // NUM_MONTHS % NUM_DAYS
    return f"{PREFIX}2026-{month:02d}/{day:02d}/customer-{number:07d}.json"


def as_worker(server: S3Server) -> dict[str, str]:
    """The environment of a peer: the identity that the package has, and nothing of the caller's."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "AWS_ACCESS_KEY_ID": server.worker.access_key,
        "AWS_SECRET_ACCESS_KEY": server.worker.secret_key,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": server.endpoint,
        "S3_ENDPOINT_URL": server.endpoint,
    }


def count_objects(server: S3Server) -> int:
    """Count what is in the bucket, by an independent listing."""
    pages = server.admin_client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    return sum(len(page.get("Contents", [])) for page in pages)
