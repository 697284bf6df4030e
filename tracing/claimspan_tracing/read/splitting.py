"""Tells the questions and answers of a run apart that has several, so that none gets another's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Final

from claimspan.text.shapes import is_list, is_mapping
from claimspan_tracing.capture.runs import Reader, Run, RunKind, RunTree
from claimspan_tracing.guard import Guard
from claimspan_tracing.read.answering import Generated, answering, gave, is_handed_on, is_no_answer
from claimspan_tracing.read.candidates import counts, reader_of, try_read
from claimspan_tracing.read.handwritten import announced_question
from claimspan_tracing.read.passages import found_by_tools
from claimspan_tracing.text import MAX_JOINED, MAX_TEXT_BYTES, bounded

__all__ = ["Split", "asked_of", "split", "told_question"]

MIN_ANSWER: Final = 3
"""Characters of an answer: "yes" may be one, and what is shorter stands in any text."""

MIN_QUESTION: Final = 8
"""Characters of a text that may be a question; a language or a name of a mode is shorter."""

MAX_ITEMS: Final = 2_000
"""Values of an output that are looked at."""

CONVERSATIONS: Final = frozenset({"messages", "chat_history", "history"})
"""Keys of an output whose values say what was said on the way to the answer."""

QUESTIONS: Final = frozenset({"queries", "questions"})
"""Names of inputs that hold several questions."""

MAX_PROMPT_BYTES: Final = 4 * MAX_JOINED
"""Bytes of a prompt in which questions are looked for."""

MAX_QUERIES: Final = 100
"""Answers of one run that are told apart; a list of more is not evaluated."""


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


def split(tree: RunTree, guard: Guard) -> Split | None:
    """Find the several answers of a run: a chain over a list of questions, or a loop in a function.

    A run has several if what it returned holds the completions of generators that share nothing
    but the root, each below a run with a question and a retrieval of its own, or each made of
    another text that the run was given. What a later generator made one answer of is one: the parts
    of a map-reduce, sub-questions, drafts. It has several as well if it was given a list of
    questions and returned as many texts, and no model has said them all at once.

    Args:
        tree: Its root has ended.
        guard: Counts the faults of readers.

    Returns:
        None for a run with one answer, or none.
    """
    generators = [
        run
        for run in tree.of_kind(RunKind.GENERATOR)
        if run.parent is not None
        and counts(run)
        and not run.has_ancestor(RunKind.GENERATOR)
        and not run.has_ancestor(RunKind.RETRIEVER)
    ]
    if not generators or not counts(tree.root):
        return None
    asked, output = tree.reader.values(tree.root)
    if batch := _batched(asked, output, generators, tree.reader, guard):
        return Split((), batch)
    # Few runs go further: to read what each generator said takes a while.
    if len(generators) < 2:
        return None
    # The texts that the run was given and that may be questions, each once.
    inputs = islice(_texts(asked, tree.reader), MAX_QUERIES)
    given = [*dict.fromkeys(each for each in inputs if len(each.strip()) >= MIN_QUESTION)]
    may_be = is_list(output) or len(tree.of_kind(RunKind.RETRIEVER)) > 1
    may_be = may_be or _may_list(output, len(generators))
    if not may_be and len(given) < 2:
        return None
    returned = list(islice(_texts(output, tree.reader), MAX_ITEMS))
    said = [(run, _completion(run, guard)) for run in generators]
    spoken = [(run, text) for run, text in said if len(text) >= MIN_ANSWER]
    answers = [(run, text) for run, text in spoken if any(text in each for each in returned)]
    if len(answers) < 2:
        return None
    queries = _queries(answers, output, tree, guard) if len(answers) <= MAX_QUERIES else []
    texts = tuple(text for _, text in answers)
    if len(queries) >= 2 and _are_all(answers, queries, tree, guard):
        # What the user saw may be one text that was joined of answers to parts of a question.
        is_one = _are_sub_questions(queries, said, tree, given, guard)
        is_joined = is_one and all(text in _response(tree, guard) for text in texts)
        return None if is_joined else Split(tuple(queries), texts)
    # A list that holds one answer each, and nothing that keeps them apart.
    is_each = _is_each(output, texts, str) or _are_listed(answers, output, tree, guard)
    is_to_several = is_each or _are_to_several(answers, generators, given, guard)
    return Split((), texts) if is_to_several else None


def _batched(
    asked: object, output: object, generators: Sequence[Run], reader: Reader, guard: Guard
) -> tuple[str, ...]:
    """The answers of a component that takes a list of questions; nothing if there is none.

    Of one question a model may give several texts to choose from; all that one said to a list of
    questions in its prompt is one answer.
    """
    numbers = {len(each) for name, each in _lists_in(asked) if _are_questions(name, each)}
    if not numbers:
        return ()
    said = [_completion(run, guard) for run in generators]
    for _, items in _lists_in(output):
        texts = [next(_texts(each, reader), "").strip() for each in items[:MAX_QUERIES]]
        # Its run has the first text alone.
        is_first = texts[0] in said and not any(text in each for text in texts[1:] for each in said)
        if len(items) in numbers and len({*texts}) > 1 and is_first:
            return tuple(texts)
    return ()


def _lists_in(value: object) -> Iterator[tuple[str, Sequence[object]]]:
    """Yield the lists of two items and more in a value, each with its name; not those within."""
    waiting = [("", value)]
    for _ in range(MAX_ITEMS):
        if not waiting:
            return
        name, item = waiting.pop()
        if is_mapping(item):
            waiting += [(str(key), each) for key, each in islice(item.items(), MAX_ITEMS)]
        elif is_list(item) and len(item) > 1 and name not in CONVERSATIONS:
            yield name, item


def _are_questions(name: str, items: Sequence[object]) -> bool:
    texts = [each for each in items[:MAX_QUERIES] if isinstance(each, str) and each.strip()]
    are_asked = name in QUESTIONS or all(map(_asks, texts))
    return are_asked and len({*texts}) == min(len(items), MAX_QUERIES)


def _is_each(items: object, texts: Sequence[str], kind: type) -> bool:
    """Whether a value is a list of two items or more, of one kind, and not longer than texts."""
    if not is_list(items) or not len(texts) >= len(items) >= 2:
        return False
    return all(isinstance(item, kind) for item in items)


def _may_list(output: object, most: int, depth: int = 2) -> bool:
    """Whether an output has, under a name, a list that may hold what several models have said."""
    if not is_mapping(output) or not depth:
        return False
    named = [value for key, value in output.items() if key not in CONVERSATIONS]
    is_list_of_few = (is_list(value) and 2 <= len(value) <= most for value in named)
    return any(is_list_of_few) or any(_may_list(value, most, depth - 1) for value in named)


def _are_listed(
    answers: Sequence[tuple[Run, str]], output: object, tree: RunTree, guard: Guard
) -> bool:
    """Whether an output has, under a name, a list that consists of answers.

    As below the component that has joined them. A state that also names one of them as its answer
    has one, and so has a list with a draft.
    """
    texts = [text for _, text in answers]
    waiting, lists = [output], list[Sequence[object]]()
    for _ in range(MAX_ITEMS):
        if not waiting:
            break
        item = waiting.pop()
        if is_mapping(item):
            waiting += [value for key, value in item.items() if key not in CONVERSATIONS]
        elif is_list(item):
            lists += [item] if _is_each(item, texts, object) else []
        elif _holds(item, texts, tree.reader):
            return False
    found = (items for items in lists if all(_holds(each, texts, tree.reader) for each in items))
    if next(found, None) is None:
        return False
    prompts = [(run, _prompt(run, guard)) for run, _ in answers]
    others = ((text, p) for own, text in answers for run, p in prompts if run is not own)
    return not any(is_handed_on(text, prompt) for text, prompt in others)


def _holds(item: object, texts: Sequence[str], reader: Reader) -> bool:
    return any(text in each for each in _texts(item, reader) for text in texts)


def _are_to_several(
    answers: Sequence[tuple[Run, str]],
    generators: Sequence[Run],
    given: Sequence[str],
    guard: Guard,
) -> bool:
    """Whether two answers were made of different texts that the run was given.

    Not a grade, nor what another model went on from: a draft, or the summary of one document.
    """
    prompts = {id(run): _prompt(run, guard) for run in generators}
    asked = {
        frozenset(each for each in given if each in prompts[id(run)])
        for run, text in answers
        if not is_no_answer(text)
        and not any(is_handed_on(text, p) for key, p in prompts.items() if key != id(run))
    }
    return any(_are_apart(one, other) for one, other in combinations(asked, 2))


def _are_apart(one: Set[str], other: Set[str]) -> bool:
    """Whether two prompts ask different things, and not one thing in two tones or languages."""
    if not (one - other and other - one):
        return False
    return not one & other or (any(map(_asks, one - other)) and any(map(_asks, other - one)))


def _asks(text: str) -> bool:
    return text.rstrip().endswith(("?", "？"))


def _prompt(run: Run, guard: Guard) -> str:
    generation = try_read(guard, reader_of(run).generation, run, None)
    return "" if generation is None else bounded(generation.prompt, MAX_PROMPT_BYTES)


def _completion(run: Run, guard: Guard) -> str:
    generation = try_read(guard, reader_of(run).generation, run, None)
    return "" if generation is None else bounded(generation.completion, MAX_TEXT_BYTES).strip()


def _queries(
    answers: Sequence[tuple[Run, str]], output: object, tree: RunTree, guard: Guard
) -> list[Run]:
    """The runs below the root that each hold one answer, with a question of their own."""
    above = [[run, *run.around()][:-1] for run, _ in answers]  # without the root
    shares = Counter(id(each) for own in above for each in own)
    found: dict[tuple[str, str], Run] = {}
    for own, (run, text) in zip(above, answers, strict=True):
        # The outermost one that has no part in another answer.
        query = next((each for each in reversed(own) if shares[id(each)] == 1), run)
        asked = _asked(query, tree, guard)
        has_own = _retrieves(query, tree) or _is_told_by_tools(query, tree, guard)
        if query is not run and asked.strip() and has_own:
            # Of two models that answer one question side by side, a text shows but one.
            of = text if is_list(output) or is_mapping(output) else ""
            found.setdefault((" ".join(asked.split()), of), query)
    # Questions each, and not agents that hand one question to one another.
    are_found = all(_retrieves(query, tree) for query in found.values())
    is_whole = are_found or len({asked for asked, _ in found}) == len(found)
    return [*found.values()] if is_whole else []


def _is_told_by_tools(query: Run, tree: RunTree, guard: Guard) -> bool:
    """Whether a model in a run was told what tools have returned: an agent searches with those."""
    below = (run for run in tree.of_kind(RunKind.GENERATOR) if run.is_part_of(query))
    found = (try_read(guard, reader_of(run).generation, run, None) for run in below)
    return any(each is not None and found_by_tools(each) for each in found)


def _asked(query: Run, tree: RunTree, guard: Guard) -> str:
    """The question of a run, or what its retriever was asked if its input names no question."""
    named = bounded(try_read(guard, reader_of(query).query, query, None), MAX_TEXT_BYTES)
    below = (run for run in tree.of_kind(RunKind.RETRIEVER) if run.is_part_of(query))
    found = (try_read(guard, reader_of(run).retrieval, run, None) for run in below)
    return named or next((bounded(each.query, MAX_TEXT_BYTES) for each in found if each), "")


def _are_sub_questions(
    queries: Sequence[Run],
    said: Sequence[tuple[Run, str]],
    tree: RunTree,
    given: Sequence[str],
    guard: Guard,
) -> bool:
    """Whether a model has made the questions, so that they are parts of the one that was given."""
    asked = [_asked(query, tree, guard).strip() for query in queries]
    return all(
        any(each in text for _, text in said) and not any(each in text for text in given)
        for each in asked
    )


def _response(tree: RunTree, guard: Guard) -> str:
    return bounded(try_read(guard, tree.reader.response, tree.root, None), MAX_TEXT_BYTES)


def _retrieves(query: Run, tree: RunTree) -> bool:
    return any(run.is_part_of(query) for run in tree.of_kind(RunKind.RETRIEVER))


def _are_all(
    answers: Sequence[tuple[Run, str]], queries: Sequence[Run], tree: RunTree, guard: Guard
) -> bool:
    """Whether the answer of the run is no other than those of the queries in it."""
    response = _response(tree, guard)
    others = [text for run, text in answers if not any(map(run.is_part_of, queries))]
    return not any(text in response or response in text for text in others)


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
        elif id(item) not in seen:
            seen.add(id(item))
            waiting += _held(item, reader)


def _held(item: object, reader: Reader) -> Sequence[object]:
    if is_mapping(item):
        pairs = islice(item.items(), MAX_ITEMS)
        # Of a conversation the last word: the question that comes in, or the answer that goes out.
        last = [(key, v[-1] if is_list(v) and v else None, v) for key, v in pairs]
        return [said if key in CONVERSATIONS else value for key, said, value in last]
    if is_list(item):
        return item[:MAX_ITEMS]
    return reader.parts(item)


MAX_INPUT_ITEMS: Final = 1_000
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
    have put it into other words, or made several searches of it.

    Args:
        searches: What the retrievers were asked.
        response: What the run has returned.
        generations: Those that ended well, in the order in which they started.
        found: The texts of the documents, which may have questions of their own.

    Returns:
        The one search that stands in the prompt, or else the one question that a label announces
        there. If no prompt is seen, the only search. Empty if it cannot be told.
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
    lines = [line.strip() for line in query.splitlines()[:MAX_QUESTIONS]]
    if searches or len(lines) > 1:
        yield searches or lines
    yield from (texts for texts in _lists(tree) if searches or query.strip() in texts)


def _lists(tree: RunTree) -> Iterator[list[str]]:
    """The lists of texts that the root was given."""
    waiting, left = [tree.reader.values(tree.root)[0]], MAX_INPUT_ITEMS
    while waiting and left:
        item, left = waiting.pop(), left - 1
        if is_mapping(item):
            waiting += item.values()
        elif is_list(item):
            texts = [each.strip() for each in item[:MAX_QUESTIONS] if isinstance(each, str)]
            if len(texts) == len(item):
                yield texts
            else:
                waiting += item[:MAX_INPUT_ITEMS]
        elif not isinstance(item, str):
            waiting += tree.reader.parts(item)
