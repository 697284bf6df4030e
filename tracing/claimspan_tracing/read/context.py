"""Finds the chunks that the answering generator read, and how that is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Final, Literal

from claimspan.text.shown import without_shown
from claimspan_tracing import semconv
from claimspan_tracing.capture.runs import Document, Retrieval, Run, RunKind, RunTree
from claimspan_tracing.guard import Guard
from claimspan_tracing.read.answering import (
    MIN_HANDED_ON,
    Generated,
    answering,
    gave,
    is_no_answer,
    is_quoted,
    may_have_given,
)
from claimspan_tracing.read.handwritten import written_evidence
from claimspan_tracing.read.passages import finds_nothing
from claimspan_tracing.read.printed_fields import with_printed_fields
from claimspan_tracing.read.prompts import Prompts, unexplained
from claimspan_tracing.read.values import NOTHING, try_read
from claimspan_tracing.text import MAX_JOINED, MAX_KEY_BYTES, bounded

__all__ = ["Candidates", "Context", "find_context"]

ContextSource = Literal["prompt", "last_documents", "retriever"]
"""The values of ``claimspan.context.source``."""

MAX_CANDIDATES: Final = 1_000
"""Documents that are looked for in a prompt: ten times what is kept of a record."""

MAX_PASSAGES: Final = 100
"""Texts that are no documents and are looked for: as many as chunks are kept of a record."""

MAX_FIELDS: Final = 30
"""Fields of a document's metadata in which a form of its text with more around it is looked for."""

NO_TEXTS: Final[Sequence[str]] = ()
NO_DOCUMENTS: Final[Sequence[Document]] = ()

FROM_PROMPT: Final = "prompt"
"""Marks a chunk that is no document, but a text that the prompt has."""

MAX_CANDIDATES_CHARACTERS: Final = 2 * 1024 * 1024
"""Characters of all of them: twice what is kept of a record. Each is read a few times."""

MAX_PROMPTS_CHARACTERS: Final = 2 * 1024 * 1024
"""Characters of all prompts that an answer rests on; if there are more, they prove nothing."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the generator read."""

    documents: Sequence[Document] | None
    """As they were handed on, and then as they were retrieved; None for all that was retrieved."""

    source: ContextSource
    """How that is known."""

    cut: str = ""
    """Why documents that were read may not be among them; empty if none can be missing."""


def find_context(
    candidates: Candidates,
    generations: Sequence[Generated],
    query: str,
    response: str,
    asked: Iterable[str] = (),
) -> Context:
    """Find the evidence: texts from outside that reached the answer.

    A text did if it stands in a prompt of a generation that gave the answer, or in one of a
    generation whose own words stand in such a prompt in turn. The words of a model are no evidence:
    they are followed to what that model had read. Documents that stand there are chunks; what else
    does, such as the plain text that a tool returned, is a chunk by itself. If neither is seen in
    these prompts, the material that they announce is; if these prompts are whole and have none,
    nothing was read. If they are not seen, the pipeline's own word counts, or the last list that
    was handed on, or else all that was retrieved.

    Args:
        candidates: What it may have read.
        generations: Those that ended well, in the order in which they started.
        query: What the user asked.
        response: What the pipeline returned.
        asked: What retrievers were asked: the question in other words, or parts of it.
    """
    returned = response
    if "\n" in response.strip():  # the words of passages below an answer are no model's
        seen = [str(document.text) for document in _once(candidates.documents())]
        response = without_shown(response, seen)
    is_given = not response.strip() or any(may_have_given(each, response) for each in generations)
    if generations and not is_given and candidates.is_written_alone(returned):
        return Context((), "prompt")  # graders read chunks, and gave none of the response
    questions = {each.strip() for each in (query, *asked)} - {""} if query.strip() else set[str]()
    answers = answering(generations, response, questions)
    told = [each.prompt for each in answers]
    # A prompt that is not seen, or was cut, proves nothing of what it lacks.
    is_whole = bool(told) and all(told) and all(len(each) < MAX_JOINED for each in told)
    told = _longest(told) if is_whole else []
    is_whole = is_whole and sum(map(len, told)) <= MAX_PROMPTS_CHARACTERS
    found: list[Document] = []
    cut = ""
    if is_whole:
        found, cut = _evidence(told, answers, candidates, query)
    # Also if documents were found and none is there: a component may have put them into words of
    # its own.
    is_by_hand = is_whole or (not candidates.named and candidates.is_by_hand)
    if not found and is_by_hand and response.strip():
        texts = [text for each in answers for text in _said_now(each, query)]
        system = [text for each in answers for text in each.system]
        is_all = is_whole and candidates.is_by_hand and next(candidates.documents(), None) is None
        written = written_evidence(texts, query, is_all=is_all, system=system)
        found = [*map(_from_prompt, dict.fromkeys(written))]
    if found:
        texts = [text for each in answers for text in _messages(each)] if is_whole else []
        return Context(with_printed_fields(found, texts, response, query), "prompt", cut)
    if is_whole and any(gave(each, response) for each in answers):
        return Context((), "prompt", cut)  # all that it read is seen, and none of it is a chunk
    if candidates.named is not None:
        return Context(_once(candidates.named), "last_documents")
    given = candidates.last_given()
    return Context(None, "retriever") if given is None else Context(_once(given), "last_documents")


def _longest(prompts: Sequence[str]) -> list[str]:
    """The prompts that are not the beginning of a later one, as in a conversation."""
    return [
        prompt
        for prompt, later in zip(prompts, [*prompts[1:], ""], strict=True)
        if not later.startswith(prompt)
    ]


def _evidence(
    told: Sequence[str], answers: Sequence[Generated], candidates: Candidates, query: str
) -> tuple[list[Document], str]:
    """The texts from outside that stand in prompts, and why there may be more of them."""
    prompts = Prompts(told)
    handed_on = [each for at, each in enumerate(answers[:-1]) if not is_quoted(each, answers[:at])]
    handed_on = [each for each in handed_on if len(each.completion.strip()) >= MIN_HANDED_ON]
    for each in handed_on:
        prompts.write(each.completion, each.words)
    documents = _once(chain(candidates.named or (), candidates.documents()))
    # As they were handed on: a reranker has put the likelier ones first.
    order = candidates.in_order()
    if order and order != [each.text for each in documents]:
        place = {text: at for at, text in enumerate(order)}
        documents.sort(key=lambda each: place.get(each.text, len(order)))
    texts = [str(document.text) for document in documents]
    n_characters = sum(map(len, texts))
    is_cut = len(documents) >= MAX_CANDIDATES or n_characters >= MAX_CANDIDATES_CHARACTERS
    found = [
        document if part == text else replace(document, text=part)
        for document, text, part in zip(documents, texts, prompts.read(texts), strict=True)
        if part is not None
    ]
    results = dict.fromkeys(text for each in answers for text in each.tool_results)
    seen = {**results, **dict.fromkeys(candidates.passages())}
    passages = [text[:MAX_JOINED] for text in seen if not finds_nothing(text)]
    known = [*((str(d.text), None) for d in found), *((e.completion, e.words) for e in handed_on)]
    said, own = answers[-1].completion.strip(), {query.strip()}
    # However short: what a tool returns may be a word that another agent has said.
    own |= {
        each.completion.strip()
        for each in answers[:-1]
        if all(each.completion.strip() != text.strip() for text in each.tool_results)
    }
    if not is_quoted(answers[-1], answers[:-1]) and all(said != text.strip() for text in results):
        own.add(said)
    passages = [
        text
        for text in passages[:MAX_PASSAGES]
        # The results of tools are messages of the prompt; any other text has to be found there.
        if text.strip() not in own and (text in results or prompts.has(text))
    ]
    # A tool may repeat the question in its result; any other text that does is a prompt.
    rest = [*unexplained([text for text in passages if text in results], known)]
    known += [(query, None)] if len(query.strip()) >= MIN_HANDED_ON else []
    rest += unexplained([text for text in passages if text not in results], known)
    cut = f"the first {len(documents):,} documents were looked for" if is_cut else ""
    return [*_without_parts(found), *map(_from_prompt, dict.fromkeys(rest))], cut


def _said_now(generation: Generated, query: str) -> Sequence[str]:
    """What a model was told; of a turn with material of its own that turn alone.

    The turns before it are examples, or answered.
    """
    is_whole = len(generation.turn) == len(generation.told)
    if not is_whole and written_evidence(generation.turn, query):
        return (*generation.system, *generation.turn)
    return generation.told or (generation.prompt,)


def _messages(generation: Generated) -> Sequence[str]:
    """What a model was told, without what it has said itself before."""
    told = (*generation.told, *generation.tool_results)
    return told or (generation.prompt,)


def _from_prompt(text: str) -> Document:
    return Document(text, metadata={semconv.CHUNK_SOURCE: FROM_PROMPT})


def _once(documents: Iterable[Document]) -> list[Document]:
    found = _keyed(documents)
    first: dict[str, str] = {}
    for id_, text in found:
        first.setdefault(text, id_)
    # Of two runs that show one document, one may lack its id: then it is as the first one has it.
    return [
        each for (id_, text), each in found.items() if id_ == first[text] or (id_ and first[text])
    ]


def _keyed(documents: Iterable[Document]) -> dict[tuple[str, str], Document]:
    """The first documents, each text with its id once: they pass through many runs.

    The text of each is one, and no longer than a prompt that is looked at can be. Behind a document
    come forms of it with more around its text, as sentence windows keep them in its metadata.
    """
    found: dict[tuple[str, str], Document] = {}
    seen: dict[tuple[int, int, int], Document] = {}
    room = MAX_CANDIDATES_CHARACTERS
    for document in documents:
        same = id(document.text), id(document.id), id(document.metadata)
        # With the document: what it refers to must live, or its identity may be another's.
        if seen.setdefault(same, document) is not document:
            continue
        text, id_ = document.text, _id_of(document)
        text = text[:MAX_JOINED] if isinstance(text, str) else bounded(text, MAX_JOINED)
        forms = [text]
        # A mapping of another kind may do anything when it is read.
        values = document.metadata.values() if document.metadata.__class__ is dict else ()
        for value in islice(values, MAX_FIELDS):
            if isinstance(value, str) and len(value) > len(text) > 0 and text in value:
                forms.append(value[:MAX_JOINED])
        for form in forms:
            if (id_, form) not in found:
                is_same = form is document.text
                found[id_, form] = document if is_same else replace(document, text=form)
                room -= len(form)
            if len(found) >= MAX_CANDIDATES or room <= 0:
                return found
    return found


def _id_of(document: Document) -> str:
    return document.id if type(document.id) is str else bounded(document.id, MAX_KEY_BYTES)


def _without_parts(found: Sequence[Document]) -> list[Document]:
    """The documents without parts of others with the same id: a draft may have read all of it.

    One without an id may be any with its text.
    """
    ids = [_id_of(document) for document in found]
    if len({*ids}) == len(ids) and "" not in ids:
        return [*found]
    forms = [" ".join(str(document.text).split()) for document in found]
    first = {form: at for at, form in reversed([*enumerate(forms)])}
    same: dict[str, list[str]] = {}
    for id_, form in zip(ids, forms, strict=True):
        same.setdefault(id_, []).append(form)
    return [
        document
        for at, (document, id_, form) in enumerate(zip(found, ids, forms, strict=True))
        if not any(id_ and form != other and form in other for other in same[id_])
        and (first[form] == at or (id_ and ids[first[form]] not in ("", id_)))
    ]


# --- what the runs show ---------------------------------------------------------------------------


class Candidates:
    """What a generator may have read, as the runs of a tree show it. Read only if needed."""

    def __init__(
        self,
        tree: RunTree,
        retrievals: Sequence[tuple[Run, Retrieval]],
        guard: Guard,
        named: Sequence[Document] | None = None,
        *,
        is_by_hand: bool = False,
    ) -> None:
        """Look at the runs that are no part of an attempt that was thrown away.

        Args:
            tree: The runs.
            retrievals: What was retrieved in them.
            guard: Counts the faults of readers.
            named: What the pipeline itself says that its generator was given; None if it does not.
            is_by_hand: Whether no retriever was seen: a prompt may have evidence of its own.
        """
        self.named: Final = named
        self.is_by_hand: Final = is_by_hand
        self._tree: Final = tree
        self._guard: Final = guard
        self._retrievals: Final = [each for run, each in retrievals if not run.was_thrown_away]
        # Nor are those below a retriever: it hands on what they have found.
        self._steps: Final = [
            (run, run.read_by)
            for run in tree.runs
            if not (run.kind is RunKind.RETRIEVER or run.has_ancestor(RunKind.RETRIEVER))
            and not run.was_thrown_away
        ]
        models = tree.of_kind(RunKind.GENERATOR)
        asks = any(run.has_ancestor(RunKind.RETRIEVER) for run in models)
        inner = tree.of_kind(RunKind.RETRIEVER) if asks else ()
        self._inner: Final = [run for run in inner if run.has_ancestor(RunKind.RETRIEVER)]

    @cached_property
    def _given(self) -> list[Sequence[Document]]:
        """The documents that each step was given."""
        return [
            try_read(self._guard, reader.given_documents, run, NO_DOCUMENTS)
            for run, reader in self._steps
        ]

    def documents(self) -> Iterator[Document]:
        """Return every document that was retrieved, given to a run, or returned by one."""
        return chain.from_iterable(self._lists())

    def _lists(self) -> Iterator[Sequence[Document]]:
        for each in self._retrievals:
            yield each.documents
        for (run, reader), given in zip(self._steps, self._given, strict=True):
            yield given
            found = try_read(self._guard, reader.unreported_retrieval, run, None)
            if found is not None:
                yield found.documents
        # What a model within a retriever has put into words of its own.
        for run in self._inner:
            yield try_read(self._guard, run.read_by.retrieval, run, NOTHING).documents

    def passages(self) -> list[str]:
        """Return every text that may be evidence, and is no document."""
        found: list[str] = []
        for run, reader in self._steps:
            found += try_read(self._guard, reader.passages, run, NO_TEXTS)
        return found

    def _handed_on(self) -> list[Sequence[Document]]:
        """The lists of documents that were handed on before the answer."""
        models = self._tree.of_kind(RunKind.GENERATOR)
        outermost = (run.start for run in models if not run.has_ancestor(RunKind.GENERATOR))
        until = max(outermost, default=None)  # without any, a function of the user's has answered
        pairs = zip(self._steps, self._given, strict=True)
        return [given for (run, _), given in pairs if until is None or run.start <= until]

    def in_order(self) -> Sequence[object]:
        """Return the texts of documents, each once, in the order in which they came in the end."""
        texts = [each.text for given in self._handed_on() for each in given]
        # What is no text may do anything if it is compared.
        last = dict.fromkeys([text for text in reversed(texts) if text.__class__ is str])
        return [*last][::-1]

    def last_given(self) -> Sequence[Document] | None:
        """Return the last list of documents that was handed on before the answer.

        None if there is none. A list that lacks everything of one retriever is one of several
        that were handed on side by side, and cannot be all that was read.
        """
        given = next(filter(None, reversed(self._handed_on())), NO_DOCUMENTS)
        texts = {str(document.text) for document in given}
        lists = [{str(each.text) for each in one.documents} for one in self._retrievals]
        return given if given and all(texts & each for each in lists if each) else None

    def is_written_alone(self, response: str) -> bool:
        """Whether code put the response together from nothing that was found, as a refusal is.

        No model has said it. The run that did is the first one that returned it. It was given no
        evidence, and of what it has found itself models have said no more than how good it is.
        """
        said = response.strip()
        kinds = RunKind.CHAIN, RunKind.TOOL
        steps = zip(self._steps, self._given, strict=True)
        chains = [(*e, given) for e, given in steps if e[0].kind in kinds and e[0].is_completed]
        nothing: object = ""
        for run, reader, given in sorted(chains, key=lambda each: each[0].end or 0):
            if str(try_read(self._guard, reader.response, run, nothing)).strip() == said:
                texts = try_read(self._guard, reader.passages, run, NO_TEXTS)
                is_given = bool(given) or any(t.strip() != said for t in texts)
                return not is_given and self._has_graded(run)
        return False

    def _has_graded(self, run: Run) -> bool:
        """Whether models said grades alone of what a run has found itself, if it has found any."""
        inner = [run, *run.below()]
        found = max((each.start for each in inner if each.kind is RunKind.RETRIEVER), default=None)
        models = [each for each in inner if each.kind is RunKind.GENERATOR]
        later = [each for each in models if found is None or each.start >= found]
        said = [try_read(self._guard, each.read_by.generation, each, None) for each in later]
        grades = [is_no_answer(str(each.completion)) for each in said if each is not None]
        return all(grades) and (found is None or bool(grades))
