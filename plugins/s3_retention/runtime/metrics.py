"""Sends figures by Airflow's own metrics: StatsD or OpenTelemetry, or nowhere, as the deployment has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from airflow.providers.common.compat.sdk import Stats

if TYPE_CHECKING:
    from collections.abc import Mapping

log = structlog.get_logger("s3_retention")


def send(figures: Mapping[str, float]) -> None:
    """Send each figure as a gauge. What cannot be sent is a warning: a collector never stops a run."""
    try:
        for name, value in figures.items():
            Stats.gauge(name, value)
    except Exception as error:  # noqa: BLE001 - whatever a collector's client raises
        log.warning("metrics were not sent", why=f"{type(error).__name__}: {error}")
