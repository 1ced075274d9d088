"""The one error of the sandbox."""

from __future__ import annotations


class SandboxError(Exception):
    """A part of the sandbox could not start, died or gave no answer; the message says which and why."""
