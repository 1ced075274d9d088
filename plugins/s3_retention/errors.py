"""Errors that mean "this step cannot go on". What happens to one object is an ``Outcome``, never an error.

The docstring of an error is its default message. None carries a secret or SQL text.
"""

from __future__ import annotations


class S3RetentionError(Exception):
    """S3 retention cannot go on."""

    def __init__(self, message: str | None = None) -> None:
        """Take a full sentence for the operator, or the docstring of the class."""
        super().__init__(message or (type(self).__doc__ or "").strip())


class PolicyError(S3RetentionError):
    """The policy file cannot be used."""


class PolicyChangedError(S3RetentionError):
    """The rules of a policy changed while its version stayed: raise `version` in the policy file."""


class LifecycleError(S3RetentionError):
    """What is to be imported is no lifecycle configuration."""


class SettingsError(S3RetentionError):
    """A setting of [s3_retention] cannot be used."""


class LedgerError(S3RetentionError):
    """The ledger database refused a statement."""


class LedgerUnavailableError(LedgerError):
    """The ledger database cannot be reached; what was under way was rolled back, and the next try resumes."""


class LedgerDuplicateError(LedgerError):
    """What was to be appended is there already. Nothing of its transaction was written."""


class LedgerConflictError(LedgerError):
    """The ledger database broke a transaction off in favour of another one; the next try resumes."""


class SchemaOutdatedError(LedgerError):
    """The ledger schema is not the one that this code needs: run `python -m s3_retention migrate`."""


class ClaimLostError(S3RetentionError):
    """Another worker has taken over this claim; this one stops, and nothing it settles is lost."""


class StoreError(S3RetentionError):
    """The object store gave an answer that cannot be trusted; nothing was decided from it."""


class ListingError(StoreError):
    """The listing broke off, or its answer cannot be trusted: a part of a listing is never planned from."""


class ListingRefusedError(ListingError):
    """The store refuses the listing: no later try can help before its cause is gone."""


class RowsError(S3RetentionError):
    """The database of the rows refused a statement; nothing was decided from it."""


class RowsUnavailableError(RowsError):
    """The database of the rows cannot be reached, or takes too long; nothing was decided from it."""


class PlanRefusedError(S3RetentionError):
    """The plan was refused before its first delete."""


class ReplayRefusedError(S3RetentionError):
    """The interval cannot be replayed; nothing was planned or deleted."""


class RedriveRefusedError(S3RetentionError):
    """The form of the redrive cannot be used; nothing was changed."""


class LeverError(S3RetentionError):
    """The form cannot be used; nothing was changed."""


class AuditRefusedError(S3RetentionError):
    """The form cannot be used; nothing was put into quarantine."""


class AuditUnfinishedError(S3RetentionError):
    """Some policies could not be audited; all others were."""


class RestoreRefusedError(S3RetentionError):
    """The form cannot be used; nothing was restored."""


class RestoreFailedError(S3RetentionError):
    """Some objects could not be brought back; the others were."""


class NotPlannedError(S3RetentionError):
    """The interval has no plan, so nothing was deleted; the next run scans it again."""


class NotApprovedError(S3RetentionError):
    """The plan is over a limit and waits for an answer: nothing of it was dealt."""


class UnfinishedError(S3RetentionError):
    """Some commands of the batch did not end; what may pass by itself is tried again."""


class BatchStoppedError(S3RetentionError):
    """The batch was stopped: its remaining commands stay pending for the next run."""


class UnbalancedError(S3RetentionError):
    """The counts of the run do not balance: the run stays red until every command is accounted for."""


class WatchError(S3RetentionError):
    """A part of the watch could not be done; the other parts were."""
