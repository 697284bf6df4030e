"""Reads each claim and each reference of a record once, and keeps references for other records."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from threading import Lock
from typing import Final, NamedTuple
from weakref import WeakSet

from claimspan.judges.lexical.coverage import Reference
from claimspan.judges.lexical.rows import Cells, ReadClaim, ReadReference
from claimspan.judges.lexical.short_answers import (
    Asking,
    affirmed,
    answer_and_shown,
    inverted,
)
from claimspan.judges.protocol import AnswerText
from claimspan.quantities import StatedValues
from claimspan.text.languages import languages_of
from claimspan.verdicts import Claim, Verdict

__all__ = ["KeptReferences", "Reading"]

# A retriever gives the same passages for many questions. 1.75 MiB are some sixty chunks.
_MOST_BYTES: Final = 7 << 18
# What is kept of a chunk of 800 characters takes 22 to 28 kB, by how many of its words are
# remembered for other texts as well.
_BYTES_PER_CHARACTER: Final = 36
_TURN_SECONDS: Final = 0.002


class _Kept(NamedTuple):
    """The content of a text, for every question."""

    reference: Reference
    stated: StatedValues


class KeptReferences:
    """The references that were read last, within a bound of memory; threads may share them."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        """Starts with none."""
        self._most = most_bytes
        self.restart_in_child()
        _all.add(self)

    def restart_in_child(self) -> None:
        """Begin with none and a new lock: a thread of the parent may have held the old one."""
        self._bytes = 0
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[KeptReferences], tuple[int]]:
        """A copy in another process starts with none."""
        return KeptReferences, (self._most,)

    async def read(self, text: str, language: str) -> _Kept:
        """Returns a reference, read now or before."""
        key = text, language
        with self._lock:
            found = self._kept.pop(key, None)
            if found is not None:
                self._kept[key] = found  # the last one used is dropped last
                return found
        reference = await Reference.read(text, language)
        read = _Kept(reference, StatedValues(text))
        self._keep(key, read)
        return read

    def _keep(self, key: tuple[str, str], read: _Kept) -> None:
        with self._lock:
            # Answers do not repeat.
            is_answer = isinstance(key[0], AnswerText)
            if is_answer or _bytes(key) > self._most or key in self._kept:
                return
            self._kept[key] = read
            self._bytes += _bytes(key)
            while self._bytes > self._most:
                oldest = next(iter(self._kept))
                del self._kept[oldest]
                self._bytes -= _bytes(oldest)


_all: Final[WeakSet[KeptReferences]] = WeakSet()


def _restart_all_in_child() -> None:
    for each in list(_all):
        each.restart_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_restart_all_in_child)


def _bytes(key: tuple[str, str]) -> int:
    return _BYTES_PER_CHARACTER * len(key[0])


class Reading:
    """The claims and the references of one record, each read once."""

    def __init__(self, question: str | None, language: str | None, kept: KeptReferences) -> None:
        """Reads the question.

        Args:
            question: The question; None if unknown.
            language: Code of the language of all texts; None to detect it.
            kept: References that were read before.
        """
        self._asking = Asking.of(question)
        self._language = language
        self._kept = kept
        self._claims: dict[tuple[str, str | None], ReadClaim] = {}
        self._due = time.perf_counter() + _TURN_SECONDS

    async def verdicts(
        self, claims: Sequence[Claim], references: Sequence[str]
    ) -> list[list[Verdict]]:
        """Returns the verdict of every claim against every reference."""
        claims, denials = affirmed(claims, self._asking.question)
        languages = self._languages(references, [claim.text for claim in claims])
        read: list[ReadReference] = []
        for text, language in zip(references, languages, strict=True):
            await self._pause()
            read.append(await self._reference(text, language))
        own = [self._claim(claim) for claim in claims]
        cells = Cells(read, self._asking)
        rows: list[list[Verdict]] = []
        for i, claim in enumerate(own):
            row: list[Verdict] = []
            for verdict in cells.verdicts(claim):
                row.append(inverted(verdict) if i in denials else verdict)
                if time.perf_counter() > self._due:
                    await self._pause()
            rows.append(row)
        return rows

    async def _pause(self) -> None:
        """Gives the event loop its turn after every two milliseconds of work.

        Other records are evaluated on the same event loop, and other threads wait for the
        interpreter.
        """
        if time.perf_counter() > self._due:
            await asyncio.sleep(0)
            self._due = time.perf_counter() + _TURN_SECONDS

    def _claim(self, claim: Claim) -> ReadClaim:
        key = claim.text, claim.sentence
        if key not in self._claims:
            self._claims[key] = ReadClaim(claim, self._asking)
        return self._claims[key]

    async def _reference(self, text: str, language: str) -> ReadReference:
        short, shown = answer_and_shown(text, self._asking)
        kept = await self._kept.read(shown, language)
        return ReadReference(
            text=text,
            reference=kept.reference,
            stated=kept.stated,
            short=short,
        )

    def _languages(self, texts: Sequence[str], claims: Sequence[str]) -> list[str]:
        """Returns the language by whose rules each of these texts is read."""
        return [self._language] * len(texts) if self._language else languages_of(texts, claims)
