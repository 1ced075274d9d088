"""What a policy says of the tags of an object, which no listing tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from s3_retention.core.policy_parts import Select

ANY = "*"
"""In a policy: any value. No tag of S3 can have it for its own
(https://docs.aws.amazon.com/AmazonS3/latest/API/API_Tag.html)."""


class TagRule:
    """The compiled tags of ``select``."""

    __slots__ = ("_excluded", "_wanted")

    def __init__(self, select: Select) -> None:
        """Take what must be there, and what must not."""
        self._wanted = _compiled(select.tags)
        self._excluded = _compiled(select.exclude_tags)

    def selects(self, tags: Mapping[str, str]) -> bool:
        """Tell whether an object with these tags is selected: it has each that is wanted, and none that is excluded."""
        return all(_has(tags, *one) for one in self._wanted) and not any(
            _has(tags, *one) for one in self._excluded
        )


def _compiled(tags: Mapping[str, tuple[str, ...]] | None) -> list[tuple[str, frozenset[str] | None]]:
    return [(name, None if ANY in values else frozenset(values)) for name, values in (tags or {}).items()]


def _has(tags: Mapping[str, str], name: str, values: frozenset[str] | None) -> bool:
    return name in tags and (values is None or tags[name] in values)
