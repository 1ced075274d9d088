"""Buckets full of objects, made once: each measured run gets a copy."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.bucket import BUCKET, as_worker, count_objects, key_of
from benchmarks.peers import PEERS
from sandbox.errors import SandboxError
from sandbox.s3 import s3_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sandbox.s3 import S3Server

BODY = b"x" * 100
"""The content of each object."""


@dataclass(frozen=True)
class Seed:
    """The data folder of a server that was stopped, with ``num_objects`` in its bucket."""

    num_objects: int
    data: Path

    @contextmanager
    def server(self, folder: Path) -> Iterator[S3Server]:
        """Start a server on a copy, in ``folder``, and remove both at the end."""
        shutil.copytree(self.data, folder / "data")
        try:
            with s3_server(folder, worker_buckets=(BUCKET,)) as server:
                yield server
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def make_seed(folder: Path, num_objects: int) -> Seed:
    """Fill a bucket, unless ``folder`` has it from before. Raises ``SandboxError`` when it holds too little."""
    done = folder / "done"
    if done.exists():
        return Seed(num_objects, folder / "data")
    shutil.rmtree(folder, ignore_errors=True)
    files = folder / "files"
    for number in range(num_objects):
        file = files / key_of(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(BODY)
    with s3_server(folder, worker_buckets=(BUCKET,)) as server:
        server.admin_client().create_bucket(Bucket=BUCKET)
        upload: list[str | Path] = [
            PEERS / "s5cmd",
            "--numworkers",
            "32",
            "--log",
            "error",
            "cp",
            f"{files}/",
            f"s3://{BUCKET}/",
        ]
        subprocess.run(upload, env=as_worker(server), check=True)
        found = count_objects(server)
    shutil.rmtree(files)
    done.touch()
    if found != num_objects:
        raise SandboxError(f"the bucket was to hold {num_objects:,} objects and holds {found:,}")
    return Seed(num_objects, folder / "data")
