"""Faults of a policy file, as lines for the person who writes it: file, field, value and fix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]
MAX_SHOWN = 80
_MISSING = object()
# Pydantic's words for what a YAML author calls otherwise.
_MESSAGES = {
    "missing": "is missing; add it",
    "string_type": "must be a text; put it in quotes",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "bool_type": "must be true or false, without quotes",
    "int_type": "must be a whole number, without quotes",
    "float_type": "must be a number, without quotes",
    "string_too_short": "is empty; fill it in or remove it",
    "too_short": "is empty; fill it in or remove it",
    "string_too_long": "is too long; shorten it",
    "too_long": "is too long; leave some of it out",
    "timezone_aware": "has no zone; write for example 2026-01-01T00:00:00Z",
    "model_type": "must be a mapping of fields",
    "invalid_key": "the name of a field must be a text; put it in quotes or remove it",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: the path of its field, and a message that names the fix."""

    path: Path
    message: str


class FaultsError(ValueError):
    """Several faults that one validator found. Pydantic carries it; ``faults_of`` takes it apart again."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        """Take at least one fault; the paths are relative to the model that raises."""
        super().__init__("; ".join(fault.message for fault in faults))
        self.faults = tuple(faults)


def faults_of(error: ValidationError, fields: Mapping[Path, Sequence[str]]) -> list[Fault]:
    """Translate what pydantic found. ``fields`` names the known fields of each section, by its path."""
    return [fault for detail in error.errors(include_url=False) for fault in _translate(detail, fields)]


def _translate(detail: ErrorDetails, fields: Mapping[Path, Sequence[str]]) -> Iterable[Fault]:
    path, kind = detail["loc"], detail["type"]
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, FaultsError):
        return [Fault((*path, *fault.path), fault.message) for fault in cause.faults]
    if kind == "value_error":
        return [Fault(path, str(cause))]
    if kind == "extra_forbidden":
        section = tuple(part for part in path[:-1] if isinstance(part, str))
        close = get_close_matches(str(path[-1]), fields.get(section, ()), n=1)
        hint = f"did you mean '{close[0]}'?" if close else "remove it"
        return [Fault(path, f"unknown field; {hint}")]
    default = detail["msg"].replace("Input should be", "must be")
    return [Fault(path, _MESSAGES.get(kind, default))]


def format_faults(where: str, data: object, faults: Iterable[Fault]) -> str:
    """Write one line per fault, each fault once: ``file: field = value: message``.

    The value is looked up in ``data`` (the parsed file), so that it is shown as it was written.
    """
    return "\n".join(_format(where, data, fault) for fault in dict.fromkeys(faults))


def _format(where: str, data: object, fault: Fault) -> str:
    shown = _show(_value_at(data, fault.path)) if fault.path else ""
    field = _name(fault.path)
    return f"{where}: {field}{shown}: {fault.message}" if field else f"{where}: {fault.message}"


def _value_at(data: object, path: Path) -> object:
    for part in path:
        if not isinstance(data, Mapping | list):
            return _MISSING
        try:
            data = data[part]  # type: ignore[index]
        except (LookupError, TypeError):
            return _MISSING
    return data


def clip(text: str) -> str:
    """Cut a text that may hold parts of a value, so that no message grows with what stands in the file."""
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def _show(value: object) -> str:
    # Lists and mappings are left out: a file with aliases can hold one that is endless when printed.
    if value is _MISSING or isinstance(value, Mapping | list | tuple | set | frozenset):
        return ""
    return f" = {_print(value)}"


def _print(value: object) -> str:
    try:
        text = repr(value[:MAX_SHOWN] if isinstance(value, str | bytes) else value)
    except ValueError:  # Python prints no integer of more than 4,300 digits
        text = "a very large number"
    return clip(text)


def _name(path: Path) -> str:
    name = ""
    for part in path:
        if isinstance(part, int):
            name += f"[{part}]"
        else:
            # A field's name comes from the file too: a line break in it must not forge a second line.
            text = part if part.isidentifier() and len(part) <= MAX_SHOWN else _print(part)
            name += f".{text}" if name else text
    return name
