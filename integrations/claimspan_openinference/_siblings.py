"""Joins retrieval and answer that stand side by side, below a span of no AI application.

OpenInference's documentation puts a span of kind ``CHAIN`` around the functions of a pipeline.
Where nobody did, only what the models have read says which answer belongs to which retrieval. A
question never gets the answer to another one, and what cannot be told is not judged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from claimspan_openinference._evidence import written_in
from claimspan_openinference._groups import Group
from claimspan_openinference._kinds import kind_of
from claimspan_openinference._messages import answered, prompted
from claimspan_tracing import semconv

__all__ = ["join"]

MAX_LATER: Final = 32
"""Answers after a retrieval that may have read it, the next ones."""

MAX_LOOKED_FOR: Final = 10
"""Documents of a retrieval that are looked for in a prompt."""

PIECE: Final = 40
"""Characters of a document by which it is looked for."""

_ESCAPED: Final = re.compile(r"[\"\\\n\r\t<>&]")
"""What JSON or HTML writes in another way."""

MIN_HANDED_ON: Final = 20
"""Characters of an answer from which on its words in a later prompt are no coincidence."""


def join(groups: list[Group], name: str) -> tuple[list[Group], list[Group]]:
    """Join retrievals with the answers that rest on them.

    Args:
        groups: What has ended side by side, in that order.
        name: Name of the span that they stand below.

    Returns:
        The records, and what belongs to none.
    """
    evidence = [each for each in groups if each.retrieves and not each.generates]
    given = [each for each in groups if each.generates and not each.retrieves]
    if not evidence or not given or any(each.is_lost for each in (*evidence, *given)):
        return [], groups
    answers = [*map(_read, given)]
    unclear: list[_Answer] = []
    for found in evidence:
        readers = _readers(found, answers)
        if len(readers) == 1:
            readers[0].evidence.append(found)
        else:
            unclear += readers
    others = [each for each in answers if not each.evidence]
    records = [
        each.joined(name)
        for each in answers
        if each.evidence and each not in unclear and not any(map(each.is_handed_on_to, others))
    ]
    gone = {id(span) for record in records for span in record.spans}
    return records, [each for each in groups if id(each.top) not in gone]


@dataclass(slots=True, eq=False)
class _Answer:
    """What stands for an answer, with what its models have read and said."""

    group: Group
    prompt: str
    said: list[str]
    evidence: list[Group] = field(default_factory=list[Group])
    """The retrievals that it rests on."""

    @property
    def started(self) -> int:
        return self.group.top.start_time or 0

    def is_handed_on_to(self, later: _Answer) -> bool:
        """Whether a later one was made of this one: rewrites it, checks it, or goes on from it."""
        if later.started < (self.group.top.end_time or 0):
            return False
        return any(len(text) >= MIN_HANDED_ON and text in later.prompt for text in self.said)

    def joined(self, name: str) -> Group:
        record = Group(self.group.top, joined_below=name)
        for each in (*self.evidence, self.group):
            record.add(each)
        return record


def _read(group: Group) -> _Answer:
    kinds = [(span.attributes or {}, kind_of(span.attributes or {})) for span in group.spans]
    models = [attributes for attributes, kind in kinds if kind == semconv.KIND_LLM]
    said = [text.strip() for each in models if (text := answered(each))]
    return _Answer(group, "\n".join(map(prompted, models)), said)


def _readers(found: Group, answers: list[_Answer]) -> list[_Answer]:
    """The answers that may rest on a retrieval; several where it cannot be told."""
    ended = found.top.end_time or 0
    later = [each for each in answers if each.started >= ended][:MAX_LATER]
    texts = islice((text for span in found.spans for text in written_in(span)), MAX_LOOKED_FOR)
    pieces = [_piece(text) for text in texts if text]
    asked = str((found.top.attributes or {}).get(semconv.INPUT_VALUE, "")).strip()
    # How many of the documents are in the prompt, and whether the query is.
    shares = [
        (sum(piece in each.prompt for piece in pieces), bool(asked) and asked in each.prompt)
        for each in later
    ]
    if len(answers) == 1 and not any(each.has_moved for each in (found, answers[0].group)):
        # Below one request: the prompt may be hidden, but must not speak against it.
        return [each for each in later if not each.prompt or any(shares[0])]
    best = max(shares, default=(0, False))
    if not best[0]:  # two models may be asked the same, and one of them was given nothing
        return []
    first, *others = (each for each, share in zip(later, shares, strict=True) if share == best)
    # A check of an answer reads the same documents, and so does the next turn of a talk.
    return [first] if all(map(first.is_handed_on_to, others)) else [first, *others]


def _piece(text: str) -> str:
    """The beginning of a text, up to what a prompt may write in another way."""
    beginning = _ESCAPED.split(text.strip(), maxsplit=1)[0][:PIECE]
    return beginning or text[:PIECE]
