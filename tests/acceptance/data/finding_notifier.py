"""A notifier as an installation writes one: it appends each finding to a file, and fails at its first call."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import BaseNotifier


class FileNotifier(BaseNotifier):  # type: ignore[misc, unused-ignore]
    """Appends findings, one a line."""

    template_fields = ("text",)

    def __init__(self) -> None:
        """Take the sentence of the finding, as a notifier that is templated does."""
        super().__init__()
        self.text = "{{ finding.detail.message }}"

    def notify(self, context: Any) -> None:
        """Take one finding. The first call of all fails, as a pager that is down does."""
        file = Path(os.environ["FINDINGS_FILE"])
        is_first = not file.exists()
        finding = context["finding"]
        with file.open("a") as out:
            if is_first:
                out.write("{}\n")
                raise RuntimeError("the pager is down")
            out.write(json.dumps([finding["policy"], finding["kind"], self.text]) + "\n")
