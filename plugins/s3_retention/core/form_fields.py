"""Values that several forms ask a person for; each raises ``ValueError`` with the fix."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from s3_retention.core.command import ID_SIZE


def parse_operation_id(text: Any) -> bytes:
    """Read an operation id as tables show it: 64 hex digits, with blanks around them or not."""
    try:
        raw = bytes.fromhex(text.strip())
    except (AttributeError, ValueError):
        raw = b""
    if len(raw) != ID_SIZE or len(text.strip()) != 2 * ID_SIZE:
        raise ValueError(f"is not one: it has {2 * ID_SIZE} hex digits")
    return raw


def parse_time(value: Any) -> datetime | None:
    """Read a time with its zone, ISO 8601; None where the field was left empty."""
    if value in (None, ""):
        return None
    try:
        at = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise ValueError("write a time with its zone, such as 2027-01-31T00:00:00Z, or nothing")
    return at
