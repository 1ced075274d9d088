"""Who holds a claim: one try of one task of one run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Holder:
    """The identity under which claims are taken and ledger rows are written.

    ``map_index`` is -1 for a task that is not mapped, as Airflow counts.
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1
    try_number: int = 1

    @property
    def run(self) -> str:
        """The run, across all its tasks and tries: what holds an interval."""
        return f"{self.dag_id}/{self.run_id}"

    def __str__(self) -> str:
        """Print one try of one task: what holds a batch."""
        return f"{self.run}/{self.task_id}[{self.map_index}]#{self.try_number}"
