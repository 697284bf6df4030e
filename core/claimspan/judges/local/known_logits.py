"""Remembers what the cross-encoder said of text pairs: one pair is computed once for many records.

Chunks come back with every question about the same matter, and claims with every answer that
repeats them. The logits of a pair depend on the model and on the two texts alone, so what was
computed once holds for as long as the model is loaded.
"""

from __future__ import annotations

import hashlib
import struct
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

__all__ = ["KNOWN_BYTES", "KnownLogits", "PairCounts", "PairLogits"]

KNOWN_BYTES: Final = 8 * 2**20
"""Memory for logits: some 28,000 pairs, which is about 700 records of ten chunks."""

# A key and a value of bytes, with a link of the ordered dictionary (CPython 3.11, 64 bits).
_ENTRY_BYTES: Final = 300


class PairLogits(NamedTuple):
    """What a cross-encoder says of one pair."""

    logits: list[float]
    """One number for each output."""

    cut: bool
    """Whether the pair was longer than the model reads."""


class PairCounts(NamedTuple):
    """How many pairs of a claim and a reference a judge has had so far."""

    asked: int
    """Pairs that a verdict was asked for."""

    read: int
    """Pairs that words left open, so that the model's logits were needed."""

    run: int
    """Pairs that the model has computed; the logits of the others were known."""


class KnownLogits:
    """The logits of the pairs that were read last, by a digest of their texts.

    It holds no text. Threads may share it.
    """

    def __init__(self, max_bytes: int = KNOWN_BYTES) -> None:
        """Remembers nothing yet.

        Args:
            max_bytes: Memory to use at most; the pairs that were not asked for the longest time are
                forgotten first. At 0 nothing is remembered.
        """
        self._max_entries = max_bytes // _ENTRY_BYTES
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, bytes] = OrderedDict()

    def get(self, pair: tuple[str, str]) -> PairLogits | None:
        """Returns what is known of a pair; None where it was not read, or is forgotten."""
        key = _digest(pair)
        with self._lock:
            packed = self._known.get(key)
            if packed is None:
                return None
            self._known.move_to_end(key)
        cut, *logits = struct.unpack(f"<{len(packed) // 4}f", packed)
        return PairLogits(logits, bool(cut))

    def put(self, pair: tuple[str, str], logits: Sequence[float], *, cut: bool) -> None:
        """Remembers the logits of a pair, which the model computes in 32 bits."""
        if not self._max_entries:
            return
        key, packed = _digest(pair), struct.pack(f"<{len(logits) + 1}f", cut, *logits)
        with self._lock:
            self._known[key] = packed
            if len(self._known) > self._max_entries:
                self._known.popitem(last=False)

    def __len__(self) -> int:
        """The number of pairs that are known."""
        return len(self._known)


def _digest(pair: tuple[str, str]) -> bytes:
    first, second = (text.encode("utf-8", "surrogatepass") for text in pair)
    # With the length of the first text: no two pairs are one sequence of bytes.
    return hashlib.blake2b(b"%d:" % len(first) + first + second, digest_size=16).digest()
