"""What the pipelines of ``overhead.py`` read and say: real English, and other texts for each query.

Ten chunks of 800 characters are found, and the answer has 400. It is cut from the first chunk and
goes on in the text that follows, so a judge finds some of its claims supported and others not.
Answers differ, as those of an application do: a judge that keeps its verdicts has to judge anew.
"""

from __future__ import annotations

from functools import cache
from pydoc_data.topics import topics
from typing import Final, NamedTuple

__all__ = ["CHUNKS", "Passage", "answer_to", "passages", "places_for", "question"]

CHUNKS: Final = 10
CHUNK_CHARACTERS: Final = 800
ANSWER_CHARACTERS: Final = 400

_STRIDE: Final = 7
"""Between two chunks of one query, so that they come from several pages."""

_LEAP: Final = 7_919
"""Characters between the answers of two queries: a prime, so that hardly any two are the same."""

_QUESTION: Final = "Question "


class Passage(NamedTuple):
    """A chunk as every store has it."""

    id: str
    text: str
    metadata: dict[str, str]


@cache
def prose() -> str:
    """The reference of the language that ``help()`` shows, which every Python has."""
    return " ".join(" ".join(topics[name].split()) for name in sorted(topics))


@cache
def passages() -> list[Passage]:
    """All chunks that there are, some hundreds."""
    text = prose()
    starts = range(0, len(text) - CHUNK_CHARACTERS, CHUNK_CHARACTERS)
    return [
        Passage(
            f"passage-{i}",
            text[start : start + CHUNK_CHARACTERS],
            {"source": f"page-{i % 17}.md", "place": str(i)},
        )
        for i, start in enumerate(starts)
    ]


def question(number: int) -> str:
    """The query with this number."""
    return f"{_QUESTION}{number}: what does the reference say about this?"


def places_for(query: str) -> list[int]:
    """Which passages are found for a query, the best one first."""
    first = _start(query) // CHUNK_CHARACTERS
    return [(first + i * _STRIDE) % len(passages()) for i in range(CHUNKS)]


def answer_to(prompt: str) -> str:
    """The answer to the query that a prompt ends with."""
    start = _start(prompt)
    return prose()[start : start + ANSWER_CHARACTERS]


def _start(prompt: str) -> int:
    _, _, rest = prompt.rpartition(_QUESTION)
    number = int(rest.partition(":")[0])
    return number * _LEAP % (len(prose()) - CHUNK_CHARACTERS - ANSWER_CHARACTERS)
