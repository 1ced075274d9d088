"""The task bodies of the redrive DAG: what it selects, quarantined commands or one interval, and its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from s3_retention import errors
from s3_retention.core.redrive import RedriveAction, parse_form
from s3_retention.runtime.connections import open_ledger, open_rows, open_source, open_store
from s3_retention.runtime.context import holder, triggering_user
from s3_retention.runtime.environment import load_policy, max_map_length, read_policies
from s3_retention.runtime.failing import airflow_errors
from s3_retention.runtime.tasks import for_xcom, report_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from s3_retention.core.redrive import RedriveForm, Selection
    from s3_retention.steps.redrive import Preview
    from s3_retention.store.connection import Connection

log = structlog.get_logger("s3_retention")
MAX_SHOWN = 20


def select_commands(params: Mapping[str, Any]) -> list[dict[str, int]]:
    """Do what the form asks for, with quarantined commands or one interval: the batches of this run.

    A dry run shows what is selected and gives none; neither does a waiver.
    """
    with airflow_errors():
        form = parse_form(params)
        if params["replay_interval"]:
            return _replay(params, form)
        return _waive(form) if form.action is RedriveAction.WAIVE and not form.is_dry_run else _redrive(form)


def _redrive(form: RedriveForm) -> list[dict[str, int]]:
    from s3_retention.steps import redrive

    max_redrives = {
        file.policy.name: file.policy.limits.max_redrives for file in read_policies() if file.policy
    }
    with open_ledger() as conn:
        selection = _reread(conn, form)
        if form.is_dry_run:
            limits = {} if form.action is RedriveAction.WAIVE else max_redrives
            preview = redrive.look(conn, form.selection, max_redrives=limits)
            _show(preview, f"dry run: nothing was done; untick it to {form.action.value} these")
            return []
        selected = redrive.run(
            conn,
            selection,
            holder(),
            acted_by=triggering_user(),
            max_batches=max_map_length(),
            max_redrives=max_redrives,
            note=form.note,
        )
    if selected.preview is not None:
        _show(selected.preview, "redriving")
    log.info("selected for redrive", count=selected.num_selected, policy=form.selection.policy)
    return for_xcom(selected.batches)


def _reread(conn: Connection, form: RedriveForm) -> Selection:
    """Let commands whose row was corrected make room for those that it is for now; the selection that names them.

    A dry run says so and changes nothing, as does a waiver, which closes what waits as it is.
    """
    from s3_retention.sources.row_source import RowSource
    from s3_retention.steps import redrive, reread

    if form.action is RedriveAction.WAIVE:
        return form.selection
    for name, quarantine_ids in redrive.list_selected(conn, form.selection).items():
        try:
            policy = load_policy(name)
            if policy.source.rows is None:
                continue
            source = RowSource(open_rows(policy), open_store(policy))
            found = reread.find(conn, source, policy, quarantine_ids)
        except (errors.PolicyError, errors.SettingsError, errors.RowsError) as error:
            # The delivery says so, too, and stops; the other policies have nothing to do with it.
            log.warning("rows were not read anew", policy=name, why=str(error))
            continue
        for one in found[:MAX_SHOWN]:
            log.info("corrected", policy=name, correction=str(one))
        if found and not form.is_dry_run:
            count = reread.supersede(conn, found, holder(), acted_by=triggering_user(), note=form.note)
            log.info("superseded by commands of corrected rows", policy=name, count=count)
    return reread.with_successors(conn, form.selection)


def _show(preview: Preview, what: str) -> None:
    log.info(what, count=preview.num_selected)
    for line in str(preview).splitlines():
        log.info(line)


def _waive(form: RedriveForm) -> list[dict[str, int]]:
    from s3_retention.steps import redrive

    with open_ledger() as conn:
        count = redrive.waive(
            conn, form.selection, holder(), acted_by=triggering_user(), note=form.note or ""
        )
    log.info("waived: closed undeleted, for good", count=count, policy=form.selection.policy)
    return []


def _replay(params: Mapping[str, Any], form: RedriveForm) -> list[dict[str, int]]:
    from s3_retention.steps import replay

    interval_key = params["replay_interval"]
    narrowing = ("policy", "failure_classes", "operation_ids", "tenant", "interval", "older_than", "code")
    others = [name for name in narrowing if params[name]]
    others += ["action"] if form.action is RedriveAction.WAIVE else []
    if others:
        raise errors.ReplayRefusedError(
            f"replay_interval and {' and '.join(others)} are both given: an interval is replayed whole, and "
            "quarantined commands are redriven; leave one of the two empty"
        )
    with open_ledger() as conn:
        policy = load_policy(replay.find_policy_name(conn, interval_key))
        source = open_source(policy)
        if form.is_dry_run:
            planned = replay.look(conn, source, policy, interval_key)
        else:
            planned = replay.run(
                conn,
                source,
                policy,
                interval_key,
                holder(),
                acted_by=triggering_user(),
                max_batches=max_map_length(),
            )
    log.info(
        "dry run: nothing was done; untick it to replay this" if form.is_dry_run else "replay planned",
        plan=str(planned),
        policy=policy.name,
        interval=interval_key,
        count=planned.num_discovered,
    )
    return for_xcom(planned.batches)


def report_redrive(batches: Any) -> dict[str, Any]:
    """Report a redrive or a replay. Fails when it does not balance, anything was stopped, or nothing was selected."""
    with airflow_errors():
        reported = report_run(None, None)
        if batches is None:
            raise errors.NotPlannedError("select_commands failed, so nothing was redriven: see its log")
        return reported
