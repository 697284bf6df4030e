"""Makes a data set out of documents: golden chunks of each, noisy chunks of the others."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import ceil
from typing import Final, Literal, NamedTuple, get_args

from claimspan.errors import ConfigError
from claimspan.records import Chunk
from claimspan.text.markdown import every_sentence
from claimspan_bench.context_coverage.documents import Document
from claimspan_bench.context_coverage.items import CoverageItem
from claimspan_bench.context_coverage.nearness import Nearness

__all__ = ["CHUNK_WORDS", "GOLDEN", "NOISY", "Built", "Noise", "build_items"]

GOLDEN: Final = 4
NOISY: Final = 3
"""Golden and noisy chunks of an item: with 4 and 3 there are 120 combinations."""

CHUNK_WORDS: Final = 120
"""Words of a chunk at most, but for a sentence that is longer."""

Noise = Literal["hard", "random"]
"""``hard``: the chunks of other documents that are nearest by BM25; ``random``: any of them."""


class Built(NamedTuple):
    """A data set made from documents."""

    items: list[CoverageItem]
    """The items, in the order of the documents."""

    left_out: tuple[str, ...]
    """Ids of documents with fewer than two sentences, which make no two golden chunks."""


class _Piece(NamedTuple):
    """A chunk, the document that it is from, and its sentences with single spaces."""

    document: str
    chunk: Chunk
    sentences: frozenset[str]


def build_items(
    documents: Sequence[Document],
    *,
    golden: int = GOLDEN,
    noisy: int = NOISY,
    chunk_words: int = CHUNK_WORDS,
    items_per_document: int = 1,
    noise: Noise = "hard",
    seed: int = 0,
) -> Built:
    """Make a data set out of documents, without a model.

    A document is split into chunks of whole sentences and of about the same length. A run of
    neighbouring chunks is the golden ones of an item, and their text is its text, so that it is
    known which chunk holds a fact: the one that its sentence stands in. The score of a chunk is its
    BM25 score for the question.

    Args:
        documents: The documents. The question of one is its ``question``, else its ``title``, else
            its first sentence.
        golden: Golden chunks of an item, fewer where the document has fewer sentences.
        noisy: Noisy chunks of an item, fewer where the other documents have fewer.
        chunk_words: Words of a chunk at most; a document that is too short for ``golden`` chunks
            of this length gets shorter ones.
        items_per_document: Items made from one document at most.
        noise: Which chunks of other documents are the noisy ones. A hard one is near to the
            question and the text of the item, and may by chance hold one of its facts.
        seed: Draws the random ones, and orders the hard ones that are equally near.

    Raises:
        ConfigError: A number is too small, there is nothing to draw noisy chunks from, or no
            document makes an item.
        MissingExtraError: bm25s is not installed.
    """
    _check_settings(golden, noisy, chunk_words, items_per_document, noise)
    if noisy and len(documents) < 2:
        raise ConfigError("there is no other document to draw noisy chunks from: give two or more")
    split = {document.id: _split(document, golden, chunk_words) for document in documents}
    pieces = [
        _Piece(name, chunk, _sentences(chunk)) for name, chunks in split.items() for chunk in chunks
    ]
    # One index over all chunks, since the weight of a word follows from all documents.
    nearness = Nearness([piece.chunk.text for piece in pieces])
    items: list[CoverageItem] = []
    for document in documents:
        runs = _runs(split[document.id], golden)[:items_per_document]
        for number, run in enumerate(runs, start=1):
            name = document.id if number == 1 else f"{document.id}#{number}"
            # By the name, so that a new document does not change the noise of the others.
            generator = random.Random(f"{seed}:{name}")  # noqa: S311 - no secret
            others = _noise(document, run, pieces, nearness, noise, noisy, generator)
            items.append(_item(document, name, run, others, nearness, pieces))
    if not items:
        raise ConfigError("no document has two sentences: give longer documents")
    left_out = tuple(name for name, chunks in split.items() if not _runs(chunks, golden))
    return Built(items, left_out)


def _check_settings(
    golden: int, noisy: int, chunk_words: int, items_per_document: int, noise: str
) -> None:
    if golden < 2:
        raise ConfigError(f"golden is {golden!r}: give 2 or more, so that there are combinations")
    if noisy < 0:
        raise ConfigError(f"noisy is {noisy!r}: give 0 or more")
    if chunk_words < 1:
        raise ConfigError(f"chunk_words is {chunk_words!r}: give 1 or more")
    if items_per_document < 1:
        raise ConfigError(f"items_per_document is {items_per_document!r}: give 1 or more")
    if noise not in get_args(Noise):
        raise ConfigError(f"noise is {noise!r}: give 'hard' or 'random'")


def _split(document: Document, golden: int, chunk_words: int) -> list[Chunk]:
    """Chunks of whole sentences, at least ``golden`` where there are as many sentences."""
    sentences = [each.strip() for each in every_sentence(document.text, "en") if each.strip()]
    lengths = [len(sentence.split()) for sentence in sentences]
    n_parts = max(golden, ceil(sum(lengths) / chunk_words))
    parts = _parts(lengths, n_parts)
    # Whole sentences make some parts longer than others. With a part for each word every sentence
    # has one of its own, so this comes to an end.
    while any(len(part) > 1 and sum(lengths[n] for n in part) > chunk_words for part in parts):
        n_parts += 1
        parts = _parts(lengths, n_parts)
    texts = [" ".join(sentences[n] for n in part) for part in parts]
    return [Chunk(id=f"{document.id}:{n}", text=text) for n, text in enumerate(texts, start=1)]


def _parts(lengths: Sequence[int], n_parts: int) -> list[list[int]]:
    """Places of sentences, in parts of about the same length; fewer where one would be empty."""
    parts: dict[int, list[int]] = {}
    total, done = sum(lengths), 0
    for place, length in enumerate(lengths):
        # A sentence belongs to the part that its middle falls into.
        parts.setdefault(int((done + length / 2) * n_parts / total), []).append(place)
        done += length
    return list(parts.values())


def _sentences(chunk: Chunk) -> frozenset[str]:
    sentences = every_sentence(chunk.text, "en")
    return frozenset(" ".join(each.split()) for each in sentences if each.strip())


def _runs(chunks: Sequence[Chunk], golden: int) -> list[Sequence[Chunk]]:
    """Neighbouring chunks, ``golden`` at a time; a rest of one chunk makes no item."""
    runs = [chunks[start : start + golden] for start in range(0, len(chunks), golden)]
    return [run for run in runs if len(run) > 1]


def _question(document: Document) -> str:
    given = document.question or document.title
    return given or next(each.strip() for each in every_sentence(document.text, "en"))


def _noise(
    document: Document,
    golden: Sequence[Chunk],
    pieces: Sequence[_Piece],
    nearness: Nearness,
    noise: Noise,
    n: int,
    generator: random.Random,
) -> list[Chunk]:
    # A sentence of the text in another document, such as in a copy, would make its chunk golden.
    taken = frozenset[str]().union(*map(_sentences, golden))
    places = [
        place
        for place, piece in enumerate(pieces)
        if piece.document != document.id and taken.isdisjoint(piece.sentences)
    ]
    # Shuffled before it is sorted: the sort is stable, so equally near ones come in a drawn order.
    generator.shuffle(places)
    if noise == "hard":
        query = " ".join((_question(document), *(chunk.text for chunk in golden)))
        scores = nearness.scores(query)
        places.sort(key=lambda place: -scores[place])
    return [pieces[place].chunk for place in places[:n]]


def _item(
    document: Document,
    name: str,
    golden: Sequence[Chunk],
    noisy: Sequence[Chunk],
    nearness: Nearness,
    pieces: Sequence[_Piece],
) -> CoverageItem:
    question = _question(document)
    by_place = zip(pieces, nearness.scores(question), strict=True)
    scores = {piece.chunk.id: round(score, 4) for piece, score in by_place}

    def scored(chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
        return tuple(each.model_copy(update={"score": scores[each.id]}) for each in chunks)

    return CoverageItem(
        id=name,
        question=question,
        text="\n\n".join(chunk.text for chunk in golden),
        golden=scored(golden),
        noisy=scored(noisy),
    )
