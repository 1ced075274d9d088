"""What is known of the store that a batch deletes from, and what its answers teach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from s3_retention.core.outcome import FailureClass
from s3_retention.steps import probe
from s3_retention.store import request_rates, store_probes
from s3_retention.store.connection import transaction
from s3_retention.store.request_rates import PacedStore
from s3_retention.store.store_probes import ProbedStore

if TYPE_CHECKING:
    from s3_retention.core.condition import EtagCondition
    from s3_retention.core.policy import RetentionPolicy
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.steps.attempt import Attempt
    from s3_retention.store.connection import Connection


@dataclass(slots=True)
class TargetStore:
    """The store of one policy under its identity; ``condition`` is None until it is known."""

    probed: ProbedStore
    paced: PacedStore
    max_rate: float | None
    condition: EtagCondition | None

    @classmethod
    def open(cls, conn: Connection, gateway: S3Gateway, policy: RetentionPolicy) -> TargetStore:
        """Ask store and ledger what is known; no transaction is open meanwhile."""
        source, max_rate = policy.source, policy.batch.rate
        probed = ProbedStore(
            gateway.endpoint,
            source.aws_conn_id,
            source.bucket,
            gateway.read_versioning(source.bucket) or "",
        )
        paced = PacedStore(gateway.endpoint, source.bucket, source.prefix)
        with transaction(conn):
            if max_rate is not None:
                request_rates.start(conn, paced, max_rate=max_rate)
            return cls(probed, paced, max_rate, store_probes.find(conn, probed))

    def learn(self, conn: Connection, came: Attempt) -> None:
        """Write down what an answer tells of the store; the caller holds the fence of its batch."""
        if self.condition is None and came.condition is not None:
            store_probes.remember(conn, self.probed, came.condition, valid_for=probe.VALID_FOR)
            self.condition = came.condition
        if came.num_failed_by_class[FailureClass.THROTTLED.value]:
            request_rates.slow_down(conn, self.paced, max_rate=self.max_rate)
