"""What a store does with the ETag to which a delete is held."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class EtagCondition(str, Enum):
    """Found out by a probe (``steps/probe.py``); where it is not known, it is not relied on."""

    HONOURED = "honoured"
    """An object with another ETag survives the delete."""
    IGNORED = "ignored"
    """The delete is carried out whatever its ETag is (Ceph RGW 16, moto)."""
    REFUSED = "refused"
    """A request with an ETag is refused as a whole."""


@dataclass(frozen=True, slots=True)
class Guard:
    """How a delete is held to the incarnation that was planned: by its ETag, by a look just before it, or by both.

    A version that is named is held to by its id; ``bypasses_governance`` deletes it in spite of a retention in
    that mode.
    """

    sends_etag: bool = True
    looks_first: bool = False
    bypasses_governance: bool = False

    @classmethod
    def of(
        cls,
        condition: EtagCondition | None,
        *,
        rechecks_time: bool = False,
        bypasses_governance: bool = False,
    ) -> Guard:
        """Give the guard for a store; None is a store of which it is not known.

        ``rechecks_time``: the policy wants a look in any case, since an identical upload has the same ETag.
        """
        return cls(
            sends_etag=condition is not EtagCondition.REFUSED,
            looks_first=rechecks_time or condition is not EtagCondition.HONOURED,
            bypasses_governance=bypasses_governance,
        )
