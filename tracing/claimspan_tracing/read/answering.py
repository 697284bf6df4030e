"""Finds the generations that gave the answer, among all that ran below a root."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from claimspan.text.structured import structured_text
from claimspan_tracing.grades import says_grade
from claimspan_tracing.read.prompts import Prompts
from claimspan_tracing.text import MAX_JOINED

__all__ = [
    "MAX_PROMPT_BYTES",
    "MIN_HANDED_ON",
    "Generated",
    "answering",
    "gave",
    "is_handed_on",
    "is_no_answer",
    "is_quoted",
    "may_have_given",
]

MIN_HANDED_ON: Final = 20
"""Characters of a completion from which on its words in a later prompt are no coincidence."""

MAX_PROMPT_BYTES: Final = 4 * MAX_JOINED
"""Bytes of a prompt that is looked into: whatever its characters are, as many as are joined."""

MAX_GENERATIONS: Final = 100
"""Generations of one query that are looked at, the last ones: each is compared with each."""

MIN_GRADE: Final = 0.2
"""Share of a response that a "no" makes up if it is the answer, as in "Answer: no"."""

MIN_SHARED: Final = 0.5
"""Share of the words of a response that a completion has which was put into other words."""

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True)
class Generated:
    """One generation that ended well."""

    prompt: str
    """What the model read."""

    completion: str
    """What it answered."""

    tool_results: tuple[str, ...] = ()
    """What tools had returned, as the prompt has it."""

    told: tuple[str, ...] = ()
    """What the system and the user say in the prompt; nothing if it is a plain text."""

    system: tuple[str, ...] = ()
    """What the system says of that."""

    turn: tuple[str, ...] = ()
    """What is said of that behind the last word of the model: the turn that it answers."""

    is_in_retriever: bool = False
    """Whether a retriever asked the model: then its words are no answer, but may be retrieved."""

    @cached_property
    def words(self) -> Prompts:
        """The prompt, in which the words of others are looked for."""
        return Prompts([self.prompt])


def gave(generation: Generated, response: str) -> bool:
    """Whether a completion is part of the response, or the response part of it."""
    return _share(generation.completion, response) > 0


def may_have_given(generation: Generated, response: str) -> bool:
    """Whether a completion may have become the response, also with other words around and in it.

    Not a grade, nor what has few of its words, as a question that was rewritten. What a model fills
    the call of a tool with is no text, and may become anything.
    """
    completion = generation.completion.strip()
    if is_no_answer(completion):
        # A grade stands in a refusal as well, as "no" does in "nothing".
        return not completion or _share(completion, response) >= MIN_GRADE
    if gave(generation, response):
        return True
    words = {*_WORD.findall(response.casefold())}
    shared = words.intersection(_WORD.findall(completion.casefold()))
    return len(shared) >= MIN_SHARED * len(words)


def answering(
    generations: Sequence[Generated], response: str, asked: Collection[str] = ()
) -> list[Generated]:
    """Return the generations that the response rests on.

    The generation whose completion is nearest to the response gave it, with those before and after
    it whose completion is another part of the response. Each one before these whose own words stand
    in the prompt of one of them took part: the notes of a map-reduce, the first draft of a
    refinement, a rewritten question, what a compressor or another agent has made of its sources.
    Graders, titles and rejected drafts did not, nor did a model that only repeats what it was told.

    Args:
        generations: In the order in which they started.
        response: What the pipeline returned.
        asked: The question, in its own words and in those that retrievers were asked; if none is
            known, each prompt may have it. A completion of a few words takes part only if its model
            was asked: they may stand in a later prompt by chance.

    Returns:
        In the same order. All of them if no completion is part of the response: then it cannot be
        told which one gave it.
    """
    generations = generations[-MAX_GENERATIONS:]
    may_answer = [each for each in generations if not each.is_in_retriever]
    shares = [_share(each.completion, response) for each in may_answer]
    if not any(shares):
        # By the words that both have in a row: its marks or citations may have been edited.
        words = Prompts([response])
        shares = [words.share_of(each.completion) for each in may_answer]
    if not any(shares):
        return may_answer
    nearest = _unchecked(max(range(len(shares)), key=lambda at: (shares[at], at)), may_answer)
    last = may_answer[nearest]
    found: list[Generated] = []
    for index, each in reversed([*enumerate(generations)]):
        is_part = each is last or (not each.is_in_retriever and _is_part(each, last, response))
        if is_part or (
            any(_handed_on(each, later, asked) for later in found)
            and not is_quoted(each, generations[:index])
        ):
            found.append(each)
    return found[::-1]


def _handed_on(each: Generated, later: Generated, asked: Collection[str]) -> bool:
    """Whether a later prompt has what a model has said."""
    text = each.completion.strip()
    if len(text) >= MIN_HANDED_ON:
        return later.words.has(text)
    if text and any(text == result.strip() for result in later.tool_results):
        return all(text != result.strip() for result in each.tool_results)
    if each.is_in_retriever:  # a word such as "none", which the prompts of its like have as well
        return False
    was_asked = not asked or any(question in each.prompt for question in asked)
    return was_asked and is_handed_on(text, later.prompt)


def is_quoted(generation: Generated, before: Sequence[Generated]) -> bool:
    """Whether a model has only repeated what it was told from outside, and not by another model."""
    text = generation.completion.strip()
    is_long = len(text) >= MIN_HANDED_ON and text in generation.prompt
    return is_long and not any(text in each.completion for each in before)


def _unchecked(index: int, generations: Sequence[Generated]) -> int:
    """The place of an answer; of a short one, not that of a check which says the same word.

    The prompt of the check has the answer.
    """
    said = generations[index].completion.strip()
    if not is_no_answer(said):
        return index
    same = (i for i in range(index) if generations[i].completion.strip() == said)
    first = next(same, index)
    word = re.compile(rf"(?<!\w){re.escape(said)}")
    is_check = all(word.search(each.prompt) for each in generations[first + 1 : index + 1])
    return first if is_check else index


def _share(completion: str, response: str) -> float:
    """How much of the longer text is the shorter one; 0 if it is no part of it."""
    said = completion.strip()
    # A structure is returned as the text of its fields.
    return _part_of(said, response.strip()) or _part_of(structured_text(said), response.strip())


def _part_of(said: str, response: str) -> float:
    short, long = sorted((said, response), key=len)
    return len(short) / len(long) if short and short in long else 0.0


def _is_part(each: Generated, last: Generated, response: str) -> bool:
    """Whether a response was joined of completions, and this one is another part of it."""
    text = each.completion.strip()
    if text == last.completion.strip():  # models may have said the same of different documents
        return response.count(text) > 1
    if text in last.completion:
        return False
    is_short = len(text) < MIN_HANDED_ON
    return (
        not is_no_answer(text) and _fills_a_place(text, response) if is_short else text in response
    )


def is_handed_on(completion: str, prompt: str) -> bool:
    """Whether a model was given what another one has said; a grade only if that fills a place."""
    text = completion.strip()
    if len(text) >= MIN_HANDED_ON:
        return text in prompt
    if not re.search(r"\w", text):
        return False
    if is_no_answer(text):
        return _fills_a_place(text, prompt)
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", prompt) is not None


def _fills_a_place(text: str, around: str) -> bool:
    """Whether a text is a line of another one, or all that stands in a line behind its label."""
    return re.search(rf"(?:^|:)[ \t]*{re.escape(text)}[ \t]*$", around, re.MULTILINE) is not None


def is_no_answer(completion: str) -> bool:
    """Whether a completion is no part of an answer: a grade, a number, or nothing in words."""
    is_said = re.search(r"\w", completion) is not None
    return not is_said or says_grade(completion) or completion.strip().isdigit()
