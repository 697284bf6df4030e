"""Tells which of several questions an answer is to, where a run asks one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from claimspan.text.shapes import is_list, is_mapping
from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.read.answering import Generated, answering, gave

__all__ = ["asked_of"]

MIN_QUESTION: Final = 8
"""Characters of a text that may be a question; a language or a name of a mode is shorter."""

MAX_ITEMS: Final = 1_000
"""Values of an input that are looked at."""

MAX_QUESTIONS: Final = 100
"""Questions of one run that are told apart."""


def asked_of(
    query: str,
    response: str,
    tree: RunTree,
    generations: Sequence[Generated],
    searches: Sequence[str] = (),
) -> str:
    """Return the question that a response answers.

    A run that is given several questions may ask a model one after the other and return the last
    answer alone. That one is to the question which stands in its prompt, and in none before it.

    Args:
        query: The question that was found: the first one, or all of them, a line each.
        response: What the run has returned.
        tree: The runs.
        generations: Those that ended well, in the order in which they started.
        searches: What the retrievers were asked, where the run was given no question.

    Returns:
        The query itself where it cannot be told, or where another model was asked no other one.
    """
    spoken = [each for each in generations if each.completion.strip()]
    # Most runs go no further: nothing was asked before.
    if len(spoken) < 2:
        return query
    last = answering(spoken, response)[-1]
    if not gave(last, response):
        return query
    before = [each.prompt for each in spoken[: spoken.index(last)]]
    found = (_only_own(each, last.prompt, before) for each in _given(query, tree, searches))
    return next((question for question in found if question), query)


def _only_own(questions: Sequence[str], prompt: str, before: Sequence[str]) -> str:
    """The one question that a prompt has first, where those before it have another; else empty."""
    asked = [each for each in dict.fromkeys(questions) if len(each) >= MIN_QUESTION]
    own = [each for each in asked if each in prompt and not _is_in(each, before)]
    return own[0] if len(own) == 1 and any(_is_in(each, before) for each in asked) else ""


def _is_in(question: str, prompts: Sequence[str]) -> bool:
    return any(question in prompt for prompt in prompts)


def _given(query: str, tree: RunTree, searches: Sequence[str]) -> Iterator[Sequence[str]]:
    """The questions that may have been given together: lines, searches, or the items of a list."""
    lines = [line.strip() for line in query.splitlines()[:MAX_QUESTIONS]]
    if searches or len(lines) > 1:
        yield searches or lines
    yield from (texts for texts in _lists(tree) if searches or query.strip() in texts)


def _lists(tree: RunTree) -> Iterator[list[str]]:
    """The lists of texts that the root was given."""
    waiting, left = [tree.root.inputs], MAX_ITEMS
    while waiting and left:
        item, left = waiting.pop(), left - 1
        if is_mapping(item):
            waiting += item.values()
        elif is_list(item):
            texts = [each.strip() for each in item[:MAX_QUESTIONS] if isinstance(each, str)]
            if len(texts) == len(item):
                yield texts
            else:
                waiting += item[:MAX_ITEMS]
        elif not isinstance(item, str):
            waiting += tree.reader.parts(item)
