"""Names for executions: 48 bits of time, then 80 random bits, in Crockford's base 32, lower case (the ULID layout).

Ids sort by the time they were made. They name; they do not authorise: that is the run folder's token.
"""

from __future__ import annotations

__all__ = ["ID_LENGTH", "is_id", "is_id_prefix", "make_id", "milliseconds_of"]

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: https://www.crockford.com/base32.html
ID_LENGTH = 26
RANDOM_BYTES = 10
_LETTERS = frozenset(ALPHABET)


def make_id(milliseconds: int, entropy: bytes) -> str:
    """Return the 26-character id for a time (ms since 1970, below 2**48) and 10 random bytes."""
    if not 0 <= milliseconds < 1 << 48 or len(entropy) != RANDOM_BYTES:
        msg = "an id takes a time below 2**48 ms and exactly 10 random bytes"
        raise ValueError(msg)
    number = milliseconds << 80 | int.from_bytes(entropy, "big")
    return "".join(ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def is_id(text: str) -> bool:
    """Tell whether ``text`` is a whole id."""
    return len(text) == ID_LENGTH and _LETTERS.issuperset(text) and text[0] in "01234567"


def is_id_prefix(text: str) -> bool:
    """Tell whether ``text`` could be the beginning of an id."""
    return 0 < len(text) <= ID_LENGTH and _LETTERS.issuperset(text)


def milliseconds_of(execution_id: str) -> int:
    """Return the time inside an id, in ms since 1970."""
    number = 0
    for letter in execution_id[:10]:
        number = number << 5 | ALPHABET.index(letter)
    return number
