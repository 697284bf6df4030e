"""Joins retrieval and answer that stand side by side, below a span of no AI application.

OpenInference's documentation puts a span of kind ``CHAIN`` around the functions of a pipeline.
Where nobody did, only what the models have read says which answer belongs to which retrieval. A
question never gets the answer to another one, and what cannot be told is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from claimspan_openinference._evidence import written_in
from claimspan_openinference._groups import Group
from claimspan_openinference._kinds import Attributes, kind_of
from claimspan_openinference._messages import answered, prompted
from claimspan_tracing import semconv

__all__ = ["join"]

MAX_LATER: Final = 8
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
    answers = [each for each in groups if each.generates and not each.retrieves]
    if any(each.is_lost for each in (*evidence, *answers)):
        return [], groups
    read_by: dict[int, list[Group]] = {}
    unclear: set[int] = set()
    for found in evidence:
        readers = _readers(found, answers)
        if len(readers) == 1:
            read_by.setdefault(id(readers[0]), []).append(found)
        else:
            unclear.update(map(id, readers))
    records = [
        _joined(answer, read_by[id(answer)], name)
        for answer in answers
        if id(answer) in read_by
        and id(answer) not in unclear
        and not _is_draft(answer, [each for each in answers if id(each) not in read_by])
    ]
    gone = {id(span) for record in records for span in record.spans}
    return records, [each for each in groups if id(each.top) not in gone]


def _readers(found: Group, answers: list[Group]) -> list[Group]:
    """The answers that may rest on a retrieval; several where it cannot be told."""
    ended = found.top.end_time or 0
    later = [each for each in answers if (each.top.start_time or 0) >= ended][:MAX_LATER]
    if len(answers) == 1 and not any(each.has_moved for each in (found, *later)):
        # Below one request: the prompt may be hidden, but must not speak against it.
        return [each for each in later if not _prompt(each) or any(_shares(found, _prompt(each)))]
    shares = [_shares(found, _prompt(each)) for each in later]
    best = max(shares, default=(0, False))
    if not any(best):
        return []
    first, *others = (each for each, share in zip(later, shares, strict=True) if share == best)
    # A check of an answer reads the same documents, and so does the next turn of a talk.
    return [first] if all(_is_handed_on(first, each) for each in others) else [first, *others]


def _shares(found: Group, prompt: str) -> tuple[int, bool]:
    """How many of the documents of a retrieval are in a prompt, and whether its query is."""
    texts = islice((text for span in found.spans for text in written_in(span)), MAX_LOOKED_FOR)
    asked = str((found.top.attributes or {}).get(semconv.INPUT_VALUE, "")).strip()
    return sum(_piece(text) in prompt for text in texts if text), bool(asked) and asked in prompt


def _piece(text: str) -> str:
    """The beginning of a text, up to what a prompt may write in another way."""
    beginning = _ESCAPED.split(text.strip(), maxsplit=1)[0][:PIECE]
    return beginning or text[:PIECE]


def _prompt(answer: Group) -> str:
    return "\n".join(prompted(attributes) for attributes in _models(answer))


def _is_draft(answer: Group, others: list[Group]) -> bool:
    """Whether a later answer, which read nothing else, was made of this one."""
    return any(_is_handed_on(answer, each) for each in others)


def _is_handed_on(answer: Group, later: Group) -> bool:
    said = [text.strip() for each in _models(answer) if (text := answered(each))]
    prompt = _prompt(later)
    is_later = (later.top.start_time or 0) >= (answer.top.end_time or 0)
    return is_later and any(len(text) >= MIN_HANDED_ON and text in prompt for text in said)


def _models(group: Group) -> Iterator[Attributes]:
    for span in group.spans:
        attributes = span.attributes or {}
        if kind_of(attributes) == semconv.KIND_LLM:
            yield attributes


def _joined(answer: Group, evidence: list[Group], name: str) -> Group:
    record = Group(answer.top, joined_below=name)
    for each in (*evidence, answer):
        record.add(each)
    return record
