"""How a value that is made by the million is declared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from typing_extensions import dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Make a slotted dataclass that the type checker holds to be frozen.

    At run time nothing guards it: a frozen one takes five times as long to make, which for two such values an object
    is as much as all else that is decided about it.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
