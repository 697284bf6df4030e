"""Finds the chunks that the answering generator read, and how that is known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Final, Literal

from claimspan.text.shown import without_shown
from claimspan_tracing import semconv
from claimspan_tracing.capture.runs import Document
from claimspan_tracing.read.answering import (
    MIN_HANDED_ON,
    Generated,
    answering,
    gave,
    may_have_given,
    was_asked,
)
from claimspan_tracing.read.handwritten import MIN_EVIDENCE, written_evidence
from claimspan_tracing.read.passages import acknowledges
from claimspan_tracing.read.printed_fields import with_printed_fields
from claimspan_tracing.read.prompted import (
    InOrder,
    Row,
    is_made_of,
    read_texts,
    rows_of,
    set_otherwise,
)
from claimspan_tracing.read.unnamed import unnamed_evidence
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

FROM_PROMPT: Final = "prompt"
"""Marks a chunk that is no document, but a text that the prompt has."""

MAX_BEGINNING: Final = 1_000
"""Characters of a text by which it is found in a prompt."""

MAX_CANDIDATES_CHARACTERS: Final = 2 * 1024 * 1024
"""Characters of all of them: twice what is kept of a record. Each is read a few times."""


MIN_SHARED: Final = 0.5
"""Share of a document's rows of words that a text has which holds it, as a whole or cut."""

_PARAGRAPH_END: Final = re.compile(r"\n\s*\n")

_ESCAPE: Final = "\\u"
_ESCAPED: Final = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
"""Letters beyond ASCII, as JSON writes them by default."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the generator read."""

    documents: Sequence[Document] | None
    """In the order of their retrieval; None for all that was retrieved."""

    source: ContextSource
    """How that is known."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a generator may have read, as the runs of a pipeline show it. Read only where needed."""

    named: Sequence[Document] | None
    """What the pipeline itself says that its generator was given; None where it does not."""

    documents: Callable[[], Iterable[Document]]
    """Returns every document that was seen, also more than once."""

    passages: Callable[[], Iterable[str]]
    """Returns the texts that may be evidence, and are no documents."""

    last_given: Callable[[], Sequence[Document] | None]
    """Returns the last list of documents that was handed on before the answer; None where there is
    none, or where it cannot be all that was."""

    is_written_alone: Callable[[], bool]
    """Returns whether code wrote the response without being given a document or other evidence."""

    is_by_hand: Callable[[], bool]
    """Returns whether the prompt may hold evidence that was written there by hand: no retriever and
    no list of documents was seen."""


def find_context(
    candidates: Candidates,
    generations: Sequence[Generated],
    query: str,
    response: str,
    asked: Iterable[str] = (),
) -> Context:
    """Find what the generator read.

    Documents that stand in the prompts which the response rests on were read, and no others. What
    else stands there as evidence, such as the plain text that a tool returned, is a chunk by
    itself. Where these prompts are whole and have neither, nothing was read. Where they are not
    seen, the pipeline's own word counts, or the last list that was handed on, or else all that was
    retrieved.

    Args:
        candidates: What it may have read.
        generations: Those that ended well, in the order in which they started.
        query: What the user asked.
        response: What the pipeline returned.
        asked: What retrievers were asked: the question in other words, or parts of it.
    """
    if "\n" in response.strip():  # the words of passages below an answer are no model's
        seen = [str(document.text) for document in _once(candidates.documents())]
        response = without_shown(response, seen)
    questions = {each.strip() for each in (query, *asked)} - {""} if query.strip() else set[str]()
    found = _context(candidates, generations, query, response, questions)
    # A model that was not asked the question may have prepared documents, so that the prompt of the
    # model that answered has its words and nothing else that is evidence.
    is_empty = found.documents is not None and not found.documents
    return _context(candidates, generations, query, response, ()) if is_empty else found


def _context(
    candidates: Candidates,
    generations: Sequence[Generated],
    query: str,
    response: str,
    questions: Collection[str],
) -> Context:
    if _is_refusal(candidates, generations, response):
        return Context((), "prompt")  # graders read chunks, and gave none of the response
    answers = answering(generations, response, questions)
    found = _named_in_prompt(candidates, generations, answers)
    prompts = _whole(answers)
    if prompts:
        others = _unknown(found, candidates.documents())
        # If a pipeline names its documents, any other one with the words of a completion is the
        # answer to a part of the question. If it names none, it is a chunk that was compressed.
        others = _without_said(generations, others) if candidates.named else others
        found = apart(prompts, [*found, *_others_in(prompts, found, others)])
        # Completions of models that were not asked the question are evidence: prepared documents.
        own = [each for each in generations if was_asked(each, questions)]
        own_words = {query.strip(), *_written(generations, [*own, *answers], response)}
        texts = _unexplained(prompts, answers, candidates.passages(), found, own_words)
        rest = (_without_own(text, own, found) for text in texts)
        found += [_from_prompt(text) for text in dict.fromkeys(chain.from_iterable(rest))]
    # Also where documents were found and none is there: a component may have put them into words
    # of its own.
    is_by_hand = bool(prompts) or (not candidates.named and candidates.is_by_hand())
    if not found and is_by_hand and response.strip():
        told = [text for each in answers for text in each.told or (each.prompt,)]
        found = [*map(_from_prompt, dict.fromkeys(written_evidence(told, query)))]
        if not found and prompts and _is_nothing_seen(candidates):
            system = [text for each in answers for text in each.system]
            found = [*map(_from_prompt, unnamed_evidence(told, system, query))]
    if found:
        told = [text for each in answers for text in _messages(each)] if prompts else []
        return Context(with_printed_fields(found, told, response, query), "prompt")
    if prompts and any(gave(each, response) for each in answers):
        return Context((), "prompt")  # all that it read is seen, and none of it is a chunk
    if candidates.named is not None:
        return Context(_once(candidates.named), "last_documents")
    given = candidates.last_given()
    return Context(None, "retriever") if given is None else Context(_once(given), "last_documents")


def _is_refusal(candidates: Candidates, generations: Sequence[Generated], response: str) -> bool:
    """Whether code has answered because models have dropped all that was found."""
    if not generations or not response.strip():
        return False
    is_given = any(may_have_given(each, response) for each in generations)
    return not is_given and candidates.is_written_alone()


def _is_nothing_seen(candidates: Candidates) -> bool:
    """Whether neither a retriever nor a document is among the runs."""
    return candidates.is_by_hand() and next(iter(candidates.documents()), None) is None


def _named_in_prompt(
    candidates: Candidates, generations: Sequence[Generated], answers: Sequence[Generated]
) -> list[Document]:
    """What the pipeline names and a prompt has."""
    if not candidates.named or not answers:
        return []
    # Drafts that a model refines may leave no words in its prompt: all prompts until the answer
    # count. What reads the documents after it, such as a check, gave none of it.
    until = generations.index(answers[-1]) + 1
    return _read(_whole(generations[:until]), _once(candidates.named))


def _unknown(found: Sequence[Document], documents: Iterable[Document]) -> list[Document]:
    """The documents without those that were found already."""
    known = {(_id_of(document), str(document.text)) for document in found}
    return [document for key, document in _keyed(documents).items() if key not in known]


def _without_said(
    generations: Sequence[Generated], documents: Sequence[Document]
) -> list[Document]:
    """The documents that hold nothing of what models have said, unless the model has quoted it."""
    said = [(each.completion.strip(), each.prompt) for each in generations]
    said = [(text, prompt) for text, prompt in said if len(text) >= MIN_HANDED_ON]
    return [
        document
        for document in documents
        if all(
            _is_in(prompt, str(document.text))
            for text, prompt in said
            if text in str(document.text)
        )
    ]


def _is_in(prompt: str, text: str) -> bool:
    return read_texts([prompt], [text]) != [None] or set_otherwise([prompt], [text], ()) == [True]


def _others_in(
    prompts: Sequence[str], found: Sequence[Document], others: Sequence[Document]
) -> list[Document]:
    """What stands in the prompts beside documents that were found already."""
    if not others:
        return []
    # With those found: what overlaps with one of them was not read for that.
    parts = _parts(prompts, [*found, *others])[len(found) :]
    parts = _with_reworded(prompts, found, others, parts)
    return [part for part in parts if part is not None]


def _with_reworded(
    prompts: Sequence[str],
    found: Sequence[Document],
    others: Sequence[Document],
    parts: Sequence[Document | None],
) -> list[Document | None]:
    """Add the documents that stand in the prompts in other letters, or with marks."""
    pairs = [*zip(others, parts, strict=True)]
    known = [str(each.text) for each in found] + [str(d.text) for d, part in pairs if part is d]
    # Also what seems to be cut: marks between its lines leave its beginning as it is.
    unsure = [str(document.text) for document, part in pairs if part is not document]
    # The words where sentences meet prove nothing for the window that was made of them.
    rows = zip(unsure, set_otherwise(prompts, unsure, known) if unsure else (), strict=True)
    is_there = (is_read and not is_made_of(text, known) for text, is_read in rows)
    return [document if part is document or next(is_there) else part for document, part in pairs]


def _unexplained(
    prompts: Sequence[str],
    answers: Sequence[Generated],
    passages: Iterable[str],
    found: Sequence[Document],
    own_words: set[str],
) -> list[str]:
    """The texts in the prompts that are evidence, and that no document explains.

    Neither is what the user asked or a model wrote.
    """
    results = dict.fromkeys(text for each in answers for text in each.tool_results)
    texts = [text for text in {**results, **dict.fromkeys(passages)} if text.strip()]
    texts = [text for text in texts if not acknowledges(text)]
    texts = [text[:MAX_JOINED] for text in texts[:MAX_PASSAGES] if text.strip() not in own_words]
    # The results of tools are messages of the prompt; any other text has to be found there.
    others = [text for text in texts if text not in results]
    there = {*results, *(text for text in read_texts(prompts, others) if text is not None)}
    explained = Explained([str(document.text) for document in found])
    rest = (explained.rest_of(text) for text in texts if text in there)
    return [*dict.fromkeys(chain.from_iterable(rest))]


def _written(
    generations: Sequence[Generated], own: Sequence[Generated], response: str
) -> Iterator[str]:
    """Yield the response and each completion, without those that a model copied from its prompt.

    Those are evidence: an agent may give back what a tool returned, word for word.
    """
    answer = response.strip()
    gave_it = [each for each in generations if answer in each.completion]
    if not gave_it or not all(_had_read(each, answer) for each in gave_it):
        yield answer
    for each in own:
        said = each.completion.strip()
        if not _had_read(each, said):
            yield said


def _had_read(generation: Generated, said: str) -> bool:
    if any(said == text.strip() for text in generation.tool_results):
        return True
    # What is shorter, such as a grade, may be a word of the prompt.
    return len(said) >= MIN_HANDED_ON and said in generation.prompt


def _messages(generation: Generated) -> Sequence[str]:
    """What a model was told, without what it has said itself before."""
    told = (*generation.told, *generation.tool_results)
    return told or (generation.prompt,)


def _without_own(text: str, own: Sequence[Generated], found: Sequence[Document]) -> Sequence[str]:
    """What of a text is evidence beside what models have said that were asked: answers to parts.

    A text that stood in a model's prompt before the model repeated it was not made of its answer.
    """
    said = [
        completion
        for each in own
        if len(completion := each.completion.strip()) >= MIN_HANDED_ON
        and completion in text
        and not _is_in(each.prompt, text[:MAX_BEGINNING])
    ]
    return Explained([*(str(each.text) for each in found), *said]).rest_of(text) if said else [text]


def _from_prompt(text: str) -> Document:
    return Document(text, metadata={semconv.CHUNK_SOURCE: FROM_PROMPT})


def _whole(generations: Sequence[Generated]) -> list[str]:
    """The prompts; none where one is not seen or was cut: they prove nothing of what they lack."""
    prompts = [each.prompt for each in generations]
    is_whole = all(prompts) and all(len(prompt) < MAX_JOINED for prompt in prompts)
    return prompts if is_whole else []


def _read(prompts: Sequence[str], documents: Sequence[Document]) -> list[Document]:
    """The documents that stand in prompts, each with the part of its text that does."""
    return [part for part in _parts(prompts, documents) if part is not None]


def _parts(prompts: Sequence[str], documents: Sequence[Document]) -> list[Document | None]:
    texts = [str(document.text) for document in documents]
    return [
        part if part is None else document if part == text else replace(document, text=part)
        for document, text, part in zip(documents, texts, read_texts(prompts, texts), strict=True)
    ]


def _once(documents: Iterable[Document]) -> list[Document]:
    return [*_keyed(documents).values()]


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


def apart(prompts: Sequence[str], found: Sequence[Document]) -> list[Document]:
    """Return documents without those that stand in the prompts only within another one.

    Where leaves were merged into their parent, or sentences into a window, that one was read. Of a
    document that was split between prompts, the beginning was found in one, and more in others.

    Args:
        prompts: What the model read.
        found: The documents that stand there, each with the part of its text that does.
    """
    found = _longest(found)
    # Without the white space around them, which a prompt may lack.
    texts = [str(document.text).strip() for document in found]
    return [
        document
        for document, text in zip(found, texts, strict=True)
        if not (around := [t for t in texts if len(t) > len(text) and text in t])
        or any(text in _outside(prompt, around) for prompt in prompts)
    ]


def _longest(found: Sequence[Document]) -> list[Document]:
    """The documents, each in place of the parts of it that it begins with."""
    parts: dict[str, list[Document]] = {}
    for document in found:
        if isinstance(document.id, str):
            parts.setdefault(document.id, []).append(document)
    if all([len(each) == 1 for each in parts.values()]):
        return [*found]
    whole = (_longest_of(each, parts.get(str(each.id), [each])) for each in found)
    return [*{id(each): each for each in whole}.values()]


def _longest_of(part: Document, same: Sequence[Document]) -> Document:
    """The longest part of a document that begins as another part of it does."""
    form = _form(part)
    return max((each for each in same if _form(each).startswith(form)), key=lambda e: len(_form(e)))


def _form(document: Document) -> str:
    return " ".join(str(document.text).split())


def _outside(prompt: str, texts: Iterable[str]) -> str:
    for text in sorted(texts, key=len, reverse=True):
        prompt = prompt.replace(text, "\0")
    return prompt


class Explained:
    """Tells which parts of a text are evidence of their own, beside documents that were read."""

    def __init__(self, known: Sequence[str]) -> None:
        """Take the texts of the documents."""
        self._known = known

    def rest_of(self, text: str) -> list[str]:
        """Return what no document explains of a text: all of it, or whole paragraphs."""
        # Not sought where no escape is: the text may be all documents in a row.
        text = _ESCAPED.sub(_unescaped, text) if _ESCAPE in text else text
        places = InOrder(text)
        inside = [each for each in self._known if places.has(each)]
        if inside and len(text) - sum(map(len, inside)) < MIN_EVIDENCE:
            return []
        if not inside and not self._explain(text):
            return [text]
        paragraphs = (each.strip() for each in _PARAGRAPH_END.split(text))
        rest = (self._beside(p) for p in paragraphs if len(p) >= MIN_EVIDENCE)
        return [p for p in rest if len(p) >= MIN_EVIDENCE]

    def _beside(self, paragraph: str) -> str:
        """What a paragraph has beside the last one of a document, which it goes on from."""
        if self._explain(paragraph):
            return ""
        last = (each for each in self._ends if paragraph.startswith(each))
        return paragraph[len(max(last, key=len, default="")) :].strip()

    def _explain(self, text: str) -> bool:
        """Whether a document stands in a text, or the text in one, also with other signs."""
        stripped = text.strip()
        if any(stripped in each or each in text for each in self._known):
            return True
        rows = {*rows_of(text)}
        # Most texts share no row with any document.
        if not rows or rows.isdisjoint(self._all_rows):
            return False
        shared = ((len(own & rows), len(own)) for own in self._rows if own)
        return any(n >= MIN_SHARED * min(size, len(rows)) for n, size in shared)

    @cached_property
    def _ends(self) -> list[str]:
        """The last paragraphs of documents that have several."""
        parted = (_PARAGRAPH_END.split(each.strip()) for each in self._known)
        return [parts[-1] for parts in parted if len(parts) > 1]

    @cached_property
    def _rows(self) -> list[set[Row]]:
        return [{*rows_of(each)} for each in self._known]

    @cached_property
    def _all_rows(self) -> set[Row]:
        return set[Row]().union(*self._rows)


def _unescaped(found: re.Match[str]) -> str:
    text = str(json.loads(f'"{found[0]}"'))
    return text if text.isprintable() else found[0]
