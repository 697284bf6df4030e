"""Picks the claims that are worth labelling, and renders the page on which people label them.

Doubtful claims say most about where a threshold lies. Taken alone they would say that the judge is
worse than it is, so the others are drawn by chance, and each label is weighted by how many claims
it stands for. A label finds its claim by the key of its record and by a digest of its text: a file
of labels then holds no text of users, and can be kept beside code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from claimspan.errors import ConfigError
from claimspan.report import ReportClaim, ReportEntry
from claimspan.report.page import html_environment
from claimspan.text.closest import SearchedSentences
from claimspan.text.percentages import percent_hint
from claimspan.text.visible import visible

__all__ = [
    "COLUMNS",
    "DOUBTFUL_SHARE",
    "MOST_CLAIMS",
    "PickedClaim",
    "Share",
    "claim_digest",
    "pick_claims",
    "record_key",
    "render_label_page",
]

COLUMNS: Final = ("record", "claim_number", "claim_digest", "label", "share", "share_claims")


def record_key(entry: ReportEntry) -> str:
    """The trace id of a record, else its own id, else a digest of question and response."""
    return entry.trace_id or entry.record_id or claim_digest(f"{entry.query}\n{entry.response}")


def claim_digest(text: str) -> str:
    """The digest of a claim's text."""
    # 64 bits: among a million claims two alike are not to be expected.
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


MOST_CLAIMS: Final = 200
"""About an hour and a half of one person, and intervals of some six points to either side."""

DOUBTFUL_SHARE: Final = 0.5

Share = Literal["doubtful", "random"]


@dataclass(frozen=True, slots=True)
class PickedClaim:
    """A claim of a response that people are to label."""

    entry: ReportEntry
    number: int
    """Its place in the response, from 1."""

    claim: ReportClaim
    share: Share = "random"
    """Whether it was picked for its doubt or by chance."""

    share_claims: int = 0
    """Number of claims of the file out of which its share was picked."""

    @property
    def record(self) -> str:
        """The key of its record."""
        return record_key(self.entry)

    @property
    def digest(self) -> str:
        """The digest of its text."""
        return claim_digest(self.claim.text)


def pick_claims(
    entries: Sequence[ReportEntry],
    n: int = MOST_CLAIMS,
    *,
    doubtful: float = DOUBTFUL_SHARE,
    seed: int = 0,
) -> list[PickedClaim]:
    """Pick claims of responses that have a verdict by chunks, the same ones every time.

    A share of them, ``doubtful`` from 0 to 1, are those that the judge is least sure of. The claims
    of one record are together, in an order that does not tell why each was picked.

    Raises:
        ConfigError: ``doubtful`` is not between 0 and 1, or there is no claim to label.
    """
    if not 0 <= doubtful <= 1:
        hint = percent_hint(doubtful)
        raise ConfigError(f"doubtful is {doubtful!r}: give a share between 0 and 1{hint}")
    candidates = list(_candidates(entries))
    if not candidates:
        raise ConfigError(
            "no response has a claim with a verdict and a chunk: there is nothing to label; "
            "evaluate records with retrieved chunks first, with their content captured"
        )
    # By a digest, not a random generator: the order does not depend on that of the file.
    drawn = sorted(candidates, key=lambda each: _draw(seed, each.record, each.digest))
    unsure = [each for each in drawn if each.claim.confidence is not None]
    unsure.sort(key=lambda each: each.claim.confidence or 0.0)
    # All of them are labelled anyway if there are few.
    n_doubtful = round(n * doubtful) if len(candidates) > n else 0
    first = unsure[:n_doubtful]
    taken = {id(each) for each in first}
    rest = [each for each in drawn if id(each) not in taken]
    picked = [
        *(replace(each, share="doubtful", share_claims=len(first)) for each in first),
        *(replace(e, share="random", share_claims=len(rest)) for e in rest[: n - len(first)]),
    ]
    return sorted(picked, key=lambda each: (_draw(seed, each.record, ""), each.number))


def _candidates(entries: Sequence[ReportEntry]) -> Iterator[PickedClaim]:
    seen: set[tuple[str, str]] = set()
    for entry in entries:
        # Without captured content the chunks are there, and say nothing.
        if not any(chunk.text.strip() for chunk in entry.chunks):
            continue
        for number, claim in enumerate(entry.response_claims, start=1):
            picked = PickedClaim(entry, number, claim)
            # One that an answer says twice is labelled once.
            if claim.label is not None and (picked.record, picked.digest) not in seen:
                seen.add((picked.record, picked.digest))
                yield picked


def _draw(seed: int, record: str, digest: str) -> bytes:
    return hashlib.sha256(f"{seed}|{record}|{digest}".encode("utf-8", "replace")).digest()


def render_label_page(picked: Sequence[PickedClaim], *, title: str = "Label claims") -> str:
    """Render one self-contained page. It makes no request and opens from a file.

    The page does not show what the judge said, which would lead people. Texts are data that the
    script puts into the page as text: markup in a chunk is shown and never runs.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    return (
        html_environment("labelling")
        .get_template("label.html.j2")
        .render(title=title, n=len(picked), data=_data(picked))
    )


def _data(picked: Sequence[PickedClaim]) -> dict[str, object]:
    records = {each.record: each.entry for each in picked}
    places = {record: place for place, record in enumerate(records)}
    searched = {
        record: [SearchedSentences(visible(chunk.text)) for chunk in entry.chunks]
        for record, entry in records.items()
    }

    keys = "\n".join(f"{each.record}|{each.number}|{each.digest}" for each in picked)
    return {
        # Under this name the browser keeps the labels: another choice of claims has another one.
        "id": claim_digest(keys),
        "columns": COLUMNS,
        "records": [
            {
                "question": visible(entry.query),
                "response": visible(entry.response),
                "chunks": [visible(chunk.text) for chunk in entry.chunks],
                "left_out": entry.chunks_left_out,
            }
            for entry in records.values()
        ],
        "claims": [
            {
                # Of the columns of the file, all but the label.
                "cells": [each.record, each.number, each.digest, each.share, each.share_claims],
                "place": places[each.record],
                "text": visible(each.claim.text),
                "sentence": visible(each.claim.sentence or ""),
                # Of each chunk the beginning and the end of its closest sentence, in code points.
                "closest": [one.closest(each.claim.text) for one in searched[each.record]],
            }
            for each in picked
        ],
    }
