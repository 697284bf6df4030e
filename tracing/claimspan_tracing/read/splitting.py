"""Tells the questions and answers of a run apart that has several, so that none gets another's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Final, NamedTuple

from claimspan.text.shapes import is_list, is_mapping
from claimspan_tracing.capture.runs import Reader, Run, RunKind, RunTree
from claimspan_tracing.guard import Guard
from claimspan_tracing.read.answering import (
    MAX_PROMPT_BYTES,
    Generated,
    answering,
    gave,
    is_handed_on,
    is_no_answer,
)
from claimspan_tracing.read.handwritten import announced_question
from claimspan_tracing.read.passages import failures_in, found_by_tools
from claimspan_tracing.read.values import try_read
from claimspan_tracing.text import MAX_TEXT_BYTES, bounded

__all__ = ["Split", "asked_of", "split", "told_question"]

MIN_ANSWER: Final = 3
"""Characters of an answer: "yes" may be one, and what is shorter stands in any text."""

MIN_QUESTION: Final = 8
"""Characters of a text that may be a question; a language or a name of a mode is shorter."""

MAX_ITEMS: Final = 2_000
"""Values of an input or output that are looked at."""

CONVERSATIONS: Final = frozenset({"messages", "chat_history", "history"})
"""Keys of an output whose values say what was said on the way to the answer."""

QUESTIONS: Final = frozenset({"queries", "questions"})
"""Names of inputs that hold several questions."""

MAX_QUERIES: Final = 100
"""Questions and answers of one run that are told apart; a list of more is not evaluated."""


@dataclass(frozen=True, slots=True)
class Split:
    """The several answers of one run."""

    queries: tuple[Run, ...]
    """The root of each query within the run; none if its answers cannot be told apart."""

    answers: tuple[str, ...]
    """What the run has returned, one text an answer."""

    @property
    def reason(self) -> str:
        """What became of the answers, in words."""
        if self.queries:
            return f"{len(self.queries)} answers, each a record of its own below this span"
        return f"{len(self.answers)} answers, and which question each is to cannot be told"


class _Said(NamedTuple):
    """What a generator has read and said."""

    run: Run
    prompt: str
    text: str


def split(tree: RunTree, guard: Guard) -> Split | None:
    """Find the several answers of a run: a chain over a list of questions, or a loop in a function.

    A run has several if what it returned holds the completions of generators that share nothing
    but the root, each below a run with a question and a retrieval of its own, or each made of
    another text that the run was given. What a later generator made one answer of is one: the parts
    of a map-reduce, sub-questions, drafts. It has several as well if it was given a list of
    questions and returned as many texts, and no model has said them all at once.
    """
    generators = [
        run
        for run in tree.of_kind(RunKind.GENERATOR)
        if run.parent is not None
        and run.counts
        and not run.has_ancestor(RunKind.GENERATOR)
        and not run.has_ancestor(RunKind.RETRIEVER)
    ]
    if not generators or not tree.root.counts:
        return None
    reader = tree.reader
    asked, output = reader.values(tree.root)
    asked_at_once = [each for name, each in _lists_in(asked, reader) if _are_asked(name, each)]
    # Few runs go further: to read what each generator said takes a while.
    if len(generators) < 2 and not asked_at_once:
        return None
    said = [_read(run, guard) for run in generators]
    lists = [each for _, each in _lists_in(output, reader)]
    if batch := _batched({len(each) for each in asked_at_once}, lists, said, reader):
        return Split((), batch)
    # The texts that the run was given and that may be questions, each once.
    inputs = islice(_texts(asked, reader), MAX_QUERIES)
    given = [*dict.fromkeys(each for each in inputs if len(each.strip()) >= MIN_QUESTION)]
    may_be = len(tree.of_kind(RunKind.RETRIEVER)) > 1 or any(len(e) <= len(said) for e in lists)
    if not (may_be or is_list(output)) and len(given) < 2:
        return None
    returned = list(islice(_texts(output, reader), MAX_ITEMS))
    spoken = (each for each in said if len(each.text) >= MIN_ANSWER)
    answers = [each for each in spoken if any(each.text in text for text in returned)]
    if len(answers) < 2:
        return None
    texts = tuple(each.text for each in answers)
    queries = _queries(answers, output, tree, guard) if len(answers) <= MAX_QUERIES else []
    if len(queries) >= 2:
        response = bounded(try_read(guard, reader.response, tree.root, None), MAX_TEXT_BYTES)
        others = (e.text for e in answers if not any(map(e.run.is_part_of, queries)))
        # All that the run has answered is what the queries in it have.
        if not any(text in response or response in text for text in others):
            # What the user saw may be one text that was joined of answers to parts of a question.
            is_one = _are_sub_questions(queries, said, tree, given, guard)
            is_joined = is_one and all(text in response for text in texts)
            return None if is_joined else Split(tuple(queries), texts)
    # A list that holds one answer each, and nothing that keeps them apart.
    listed = output if is_list(output) else ()
    is_each = len(texts) >= len(listed) >= 2 and all(isinstance(item, str) for item in listed)
    if is_each or _are_listed(answers, output, reader) or _are_to_several(answers, said, given):
        return Split((), texts)
    return None


def _read(run: Run, guard: Guard) -> _Said:
    read = try_read(guard, run.read_by.generation, run, None)
    if read is None:
        return _Said(run, "", "")
    completion = bounded(read.completion, MAX_TEXT_BYTES).strip()
    return _Said(run, bounded(read.prompt, MAX_PROMPT_BYTES), completion)


def _batched(
    numbers: Set[int], lists: Sequence[Sequence[object]], said: Sequence[_Said], reader: Reader
) -> tuple[str, ...]:
    """The answers of a component that takes a list of questions; nothing if there is none.

    Of one question a model may give several texts to choose from; all that one said to a list of
    questions in its prompt is one answer.
    """
    completions = [each.text for each in said]
    for items in lists if numbers else ():
        texts = [next(_texts(each, reader), "").strip() for each in items[:MAX_QUERIES]]
        # Its run has the first text alone.
        is_first = texts[0] in completions and not any(
            text in each for text in texts[1:] for each in completions
        )
        if len(items) in numbers and len({*texts}) > 1 and is_first:
            return tuple(texts)
    return ()


def _are_asked(name: str, items: Sequence[object]) -> bool:
    """Whether a list in an input has several questions."""
    texts = [each for each in items[:MAX_QUERIES] if isinstance(each, str) and each.strip()]
    are_questions = name in QUESTIONS or all(map(_asks, texts))
    return are_questions and len({*texts}) == min(len(items), MAX_QUERIES)


def _asks(text: str) -> bool:
    return text.rstrip().endswith(("?", "？"))


def _are_listed(answers: Sequence[_Said], output: object, reader: Reader) -> bool:
    """Whether an output has, under a name, a list that consists of answers.

    As below the component that has joined them. A state that also names one of them as its answer
    has one, and so has a list with a draft.
    """
    texts = [each.text for each in answers]

    def holds(item: object) -> bool:
        return any(text in each for each in _texts(item, reader) for text in texts)

    named = [item for _, item in _named_in(output, reader)]
    if any(holds(item) for item in named if not is_list(item)):
        return False
    lists = (item for item in named if is_list(item) and 2 <= len(item) <= len(texts))
    if not any(all(map(holds, items)) for items in lists):
        return False
    return not any(_is_handed_on(each, answers) for each in answers)


def _are_to_several(answers: Sequence[_Said], said: Sequence[_Said], given: Sequence[str]) -> bool:
    """Whether two answers were made of different texts that the run was given.

    Not a grade, nor what another model went on from: a draft, or the summary of one document.
    """
    asked = {
        frozenset(text for text in given if text in each.prompt)
        for each in answers
        if not is_no_answer(each.text) and not _is_handed_on(each, said)
    }
    return any(_are_apart(one, other) for one, other in combinations(asked, 2))


def _is_handed_on(each: _Said, to: Sequence[_Said]) -> bool:
    return any(is_handed_on(each.text, other.prompt) for other in to if other.run is not each.run)


def _are_apart(one: Set[str], other: Set[str]) -> bool:
    """Whether two prompts ask different things, and not one thing in two tones or languages."""
    if not (one - other and other - one):
        return False
    return not one & other or (any(map(_asks, one - other)) and any(map(_asks, other - one)))


def _queries(answers: Sequence[_Said], output: object, tree: RunTree, guard: Guard) -> list[Run]:
    """The runs below the root that each hold one answer, with a question of their own."""
    above = [[each.run, *each.run.around()][:-1] for each in answers]  # without the root
    shares = Counter(id(run) for own in above for run in own)
    found: dict[tuple[str, str], Run] = {}
    for own, answer in zip(above, answers, strict=True):
        # The outermost one that has no part in another answer.
        query = next((run for run in reversed(own) if shares[id(run)] == 1), answer.run)
        asked = _asked(query, tree, guard)
        has_own = _retrieves(query, tree) or _is_told_by_tools(query, tree, guard)
        if query is not answer.run and asked.strip() and has_own:
            # Of two models that answer one question side by side, a text shows but one.
            text = answer.text if is_list(output) or is_mapping(output) else ""
            found.setdefault((" ".join(asked.split()), text), query)
    # Questions each, and not agents that hand one question to one another.
    are_found = all(_retrieves(query, tree) for query in found.values())
    is_whole = are_found or len({asked for asked, _ in found}) == len(found)
    return [*found.values()] if is_whole else []


def _retrieves(query: Run, tree: RunTree) -> bool:
    return any(run.is_part_of(query) for run in tree.of_kind(RunKind.RETRIEVER))


def _is_told_by_tools(query: Run, tree: RunTree, guard: Guard) -> bool:
    """Whether a model in a run was told what tools have returned: an agent searches with those."""
    below = (run for run in tree.of_kind(RunKind.GENERATOR) if run.is_part_of(query))
    found = (try_read(guard, run.read_by.generation, run, None) for run in below)
    failures = failures_in(tree)
    return any(each is not None and found_by_tools(each, failures) for each in found)


def _asked(query: Run, tree: RunTree, guard: Guard) -> str:
    """The question of a run, or what its retriever was asked if its input names no question."""
    named = bounded(try_read(guard, query.read_by.query, query, None), MAX_TEXT_BYTES)
    below = (run for run in tree.of_kind(RunKind.RETRIEVER) if run.is_part_of(query))
    found = (try_read(guard, run.read_by.retrieval, run, None) for run in below)
    return named or next((bounded(each.query, MAX_TEXT_BYTES) for each in found if each), "")


def _are_sub_questions(
    queries: Sequence[Run],
    said: Sequence[_Said],
    tree: RunTree,
    given: Sequence[str],
    guard: Guard,
) -> bool:
    """Whether a model has made the questions, so that they are parts of the one that was given."""
    asked = [_asked(query, tree, guard).strip() for query in queries]
    return all(
        any(each in one.text for one in said) and not any(each in text for text in given)
        for each in asked
    )


# --- what an input or output holds ----------------------------------------------------------------


def _lists_in(value: object, reader: Reader) -> Iterator[tuple[str, Sequence[object]]]:
    """Yield the lists of two items and more in a value, each with its name; not those within."""
    for name, item in _named_in(value, reader):
        if is_list(item) and len(item) > 1:
            yield name, item


def _named_in(value: object, reader: Reader) -> Iterator[tuple[str, object]]:
    """Yield the texts and lists in a value, each with its name, without conversations."""
    waiting = [("", value)]
    for _ in range(MAX_ITEMS):
        if not waiting:
            return
        name, item = waiting.pop()
        if isinstance(item, str) or is_list(item):
            yield name, item
        elif is_mapping(item):
            pairs = ((str(key), each) for key, each in islice(item.items(), MAX_ITEMS))
            waiting += [(key, each) for key, each in pairs if key not in CONVERSATIONS]
        else:
            waiting += [(name, each) for each in reader.parts(item)]


def _texts(value: object, reader: Reader) -> Iterator[str]:
    """Yield the texts in an output, at any depth."""
    waiting = [value]
    seen: set[int] = set()
    for _ in range(MAX_ITEMS):
        if not waiting:
            return
        item = waiting.pop()
        if isinstance(item, str):
            yield item
            continue
        if id(item) in seen:
            continue
        seen.add(id(item))
        if is_mapping(item):
            for key, each in islice(item.items(), MAX_ITEMS):
                # Of a conversation the last word: the question that comes in, or the answer.
                waiting += each[-1:] if key in CONVERSATIONS and is_list(each) else [each]
        else:
            waiting += item[:MAX_ITEMS] if is_list(item) else reader.parts(item)


# --- the question to one answer -------------------------------------------------------------------


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
        searches: What the retrievers were asked, if the run was given no question.

    Returns:
        The query itself if it cannot be told, or if another model was asked no other one.
    """
    spoken = [each for each in generations if each.completion.strip()]
    # Most runs go no further: nothing was asked before.
    if len(spoken) < 2:
        return query
    last = answering(spoken, response)[-1]
    if not gave(last, response):
        return query
    before = [each.prompt for each in spoken[: spoken.index(last)]]
    found = (
        _only_own(each, last.prompt, before) for each in _given_together(query, tree, searches)
    )
    return next((question for question in found if question), query)


def told_question(
    searches: Sequence[str],
    response: str,
    generations: Sequence[Generated],
    found: Sequence[str],
) -> str:
    """Return the question of a run that was given none, as the model was told it that answered.

    What a retriever is asked is the question only if that model was asked it as well: a step may
    have put it into other words, or made several searches of it. So it is the one search that
    stands in the prompt, or else the one question that a label announces there, outside of the
    documents that were found. If no prompt is seen, it is the only search. Empty if it cannot be
    told.
    """
    prompt = answering(generations, response)[-1].prompt if generations else ""
    asked = [*dict.fromkeys(each.strip() for each in searches)]
    told = [each for each in asked if each in prompt] if prompt else asked
    if len(told) == 1:
        return told[0]
    for text in found:
        prompt = prompt.replace(text, "\n")
    return announced_question(prompt)


def _only_own(questions: Sequence[str], prompt: str, before: Sequence[str]) -> str:
    """The one question that a prompt has first, if those before it have another; else empty."""
    asked = [each for each in dict.fromkeys(questions) if len(each) >= MIN_QUESTION]
    was_asked = {each for each in asked if any(each in earlier for earlier in before)}
    own = [each for each in asked if each in prompt and each not in was_asked]
    return own[0] if len(own) == 1 and was_asked else ""


def _given_together(query: str, tree: RunTree, searches: Sequence[str]) -> Iterator[Sequence[str]]:
    """The questions that may have been given together: lines, searches, or the items of a list."""
    lines = [line.strip() for line in query.splitlines()[:MAX_QUERIES]]
    if searches or len(lines) > 1:
        yield searches or lines
    for _, items in _named_in(tree.reader.values(tree.root)[0], tree.reader):
        listed = items[:MAX_QUERIES] if is_list(items) else ()
        texts = [each.strip() for each in listed if isinstance(each, str)]
        if texts and len(texts) == len(listed) and (searches or query.strip() in texts):
            yield texts
