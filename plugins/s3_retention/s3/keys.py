"""Which objects a request can name, and which keys the XML of DeleteObjects can carry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from s3_retention.core.outcome import FailureClass, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from s3_retention.core.objects import ObjectFacts

# XML 1.0 section 2.2 (https://www.w3.org/TR/xml/#charsets) allows tab, line feed, carriage return and
# U+0020 to U+D7FF, U+E000 to U+FFFD and beyond. A carriage return is allowed and yet goes alone: some stores
# answer it as a line feed, and then nobody can tell which of two keys was deleted.
_NOT_CARRIED = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_can_carry(key: str) -> bool:
    """Say whether a key may go into a DeleteObjects request with others."""
    # What can be printed holds no control character, half of a pair or noncharacter; most keys can.
    return key.isprintable() or _NOT_CARRIED.search(key) is None


def is_sendable(key: str) -> bool:
    """Say whether any request can name a key: S3's are UTF-8, which has no lone surrogates (RFC 3629 section 3)."""
    if key.isascii():
        return True
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def can_go_together(targets: Sequence[ObjectFacts]) -> bool:
    """Say of some objects at once that one request may name them all; False says nothing of any of them."""
    keys = "".join([facts.ref.key for facts in targets])
    return bool(targets) and keys.isprintable() and all(is_condition(facts.etag) for facts in targets)


def is_condition(etag: str | None) -> bool:
    """Say whether a delete can be held to an ETag: an empty one is none, and ``*`` is any (RFC 9110 section 13.1.1)."""
    return etag is not None and etag.strip(' "') not in {"", "*"}


_NO_CONDITION = Outcome(
    FailureClass.UNSUPPORTED,
    code="NoETag",
    message="the store listed the object without an ETag, so that a delete could not be held to it",
)

NOT_SENDABLE = Outcome(
    FailureClass.MALFORMED,
    code="KeyNotUTF8",
    message="no request can name the key: keys are UTF-8, and this one holds half of a surrogate pair",
)


def refuse_unsent(facts: ObjectFacts) -> Outcome | None:
    """Say why no request may be made for an object; None where one may."""
    if not is_sendable(facts.ref.key):
        return NOT_SENDABLE
    return None if is_condition(facts.etag) or facts.ref.version_id is not None else _NO_CONDITION
