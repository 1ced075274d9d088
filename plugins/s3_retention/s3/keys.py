"""Which keys the XML of DeleteObjects can carry."""

from __future__ import annotations

import re

# XML 1.0 section 2.2 (https://www.w3.org/TR/xml/#charsets) allows tab, line feed, carriage return and
# U+0020 to U+D7FF, U+E000 to U+FFFD and beyond. A carriage return is allowed and yet goes alone: some stores
# answer it as a line feed, and then nobody can tell which of two keys was deleted.
_NOT_CARRIED = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_can_carry(key: str) -> bool:
    """Say whether a key may go into a DeleteObjects request with others."""
    return _NOT_CARRIED.search(key) is None
