"""What chunks say together: the context column of judges that need no language model."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claimspan import Chunk, RagRecord, evaluate
from claimspan.judges import LexicalJudge
from claimspan.judges.lexical.cells import Block, blocks_of
from claimspan.judges.local.judge import LocalJudge
from claimspan.judges.protocol import Cell, ContextJudge, SparseJudge
from claimspan.verdicts import Claim, Label, VerdictMatrix

LEXICAL, LOCAL = LexicalJudge(sure_from=0.5), LocalJudge()

SENTENCES = (
    "The Danube rises in the Black Forest of Germany.",
    "The Danube flows for 2,850 km.",
    "Ten countries share the course of the river.",
    "Vienna and Budapest lie on the Danube.",
    "The Sava meets the Danube in Belgrade.",
    "The Zois prize of 1986 went to Ana Kos.",
    "Ana Kos was born in Celje, a town in Slovenia.",
    "Bananas are rich in potassium.",
    "The Danube does not flow through France.",
    "We cannot say how long it is.",
)

FAR_APART = (
    "Ana Kos founded Helvar in a small workshop near the river.",
    "The greenhouse lamps of the firm were sold in Celje from the spring of 1986.",
    "Bananas are rich in potassium, and grow where it is warm.",
)


def _claims(*texts: str) -> list[Claim]:
    return [Claim(text=text) for text in texts]


def _context(
    judge: ContextJudge, claims: Sequence[Claim], chunks: Sequence[str]
) -> tuple[VerdictMatrix, list[Label | None]]:
    """The verdicts by each chunk, and the labels by all of them together."""
    width = len(chunks)
    cells = {(i, j) for i in range(len(claims)) for j in range(width + 1)}
    whole = asyncio.run(judge.check_context(claims, chunks, cells, context=range(width)))
    assert whole.shape == (len(claims), width + 1)
    single = VerdictMatrix.of([row[:width] for row in whole.rows], width)
    return single, [labels[width] for labels in whole.labels]


@pytest.mark.parametrize("judge", [LEXICAL, LOCAL], ids=["lexical", "local"])
def test_both_judges_read_chunks_together(judge: LexicalJudge | LocalJudge) -> None:
    assert isinstance(judge, SparseJudge)
    assert isinstance(judge, ContextJudge)


@settings(max_examples=60)
@given(
    claims=st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4),
    chunks=st.lists(
        st.lists(st.sampled_from(SENTENCES), min_size=0, max_size=3).map(" ".join),
        min_size=2, max_size=4,
    ),
)  # fmt: skip
def test_what_one_chunk_entails_all_together_entail_by_words(
    claims: list[str], chunks: list[str]
) -> None:
    single, together = _context(LexicalJudge(sure_from=0.5), _claims(*claims), chunks)

    assert None not in together
    for alone, joint in zip(single.merged, together, strict=True):
        assert alone != Label.ENTAILED or joint == Label.ENTAILED


def test_what_one_chunk_entails_all_together_entail_by_the_model() -> None:
    chunks = [" ".join(SENTENCES[at : at + 3]) for at in range(0, len(SENTENCES), 2)]
    single, together = _context(LOCAL, _claims(*SENTENCES), chunks)

    assert Label.ENTAILED in single.merged
    for alone, joint in zip(single.merged, together, strict=True):
        assert alone != Label.ENTAILED or joint == Label.ENTAILED


@pytest.mark.parametrize("judge", [LEXICAL, LOCAL], ids=["lexical", "local"])
def test_a_claim_whose_halves_are_in_two_chunks_is_entailed_by_both_together(
    judge: LexicalJudge | LocalJudge,
) -> None:
    claim = "Ana Kos founded Helvar near the river, and sold greenhouse lamps in Celje in 1986."
    single, together = _context(judge, _claims(claim), FAR_APART)

    assert single.merged != [Label.ENTAILED]
    assert together == [Label.ENTAILED]


@pytest.mark.parametrize("judge", [LEXICAL, LOCAL], ids=["lexical", "local"])
def test_a_claim_that_no_chunk_speaks_of_is_not_entailed_by_all_together(
    judge: LexicalJudge | LocalJudge,
) -> None:
    _, together = _context(judge, _claims("The library opens at noon on Sundays."), FAR_APART)

    assert together == [Label.NEUTRAL]


@pytest.mark.parametrize("judge", [LEXICAL, LOCAL], ids=["lexical", "local"])
def test_an_evaluation_is_at_least_as_grounded_as_it_is_faithful(
    judge: LexicalJudge | LocalJudge,
) -> None:
    record = RagRecord(
        query="What did Helvar sell?",
        chunks=tuple(Chunk(id=str(at), text=text) for at, text in enumerate(FAR_APART)),
        response="Helvar was founded by Ana Kos. Ana Kos sold bananas in Vienna. It sold a lamp.",
    )
    found = evaluate(record, judge=judge).metrics

    assert found["groundedness"] >= found["faithfulness"]


@pytest.mark.parametrize("judge", [LEXICAL, LOCAL], ids=["lexical", "local"])
def test_cells_that_were_not_asked_for_stay_open(judge: LexicalJudge | LocalJudge) -> None:
    cells: Collection[Cell] = {(0, 1), (1, 0)}
    found = asyncio.run(judge.check_cells(_claims(*SENTENCES[:2]), FAR_APART, cells))

    assert found.shape == (2, 3)
    assert {(i, j) for i in range(2) for j in range(3) if found[i][j]} == cells


@pytest.mark.parametrize("judge", [LEXICAL, LOCAL], ids=["lexical", "local"])
def test_all_cells_are_what_a_check_of_the_whole_matrix_gives(
    judge: LexicalJudge | LocalJudge,
) -> None:
    claims = _claims(*SENTENCES[:3])
    cells = {(i, j) for i in range(3) for j in range(3)}

    found = asyncio.run(judge.check_cells(claims, FAR_APART, cells))

    assert found == asyncio.run(judge.check(claims, FAR_APART))


def test_nothing_to_check_gives_an_empty_matrix() -> None:
    for judge in (LEXICAL, LOCAL):
        found = asyncio.run(judge.check_context([], FAR_APART, set(), context=range(3)))
        assert found.shape == (0, 4)


@pytest.mark.parametrize("judge", [LEXICAL, LOCAL], ids=["lexical", "local"])
def test_a_context_of_no_references_decides_nothing(judge: LexicalJudge | LocalJudge) -> None:
    cells = {(0, 0), (0, 3)}
    claims = _claims("Ana Kos sold bananas in Vienna.")

    found = asyncio.run(judge.check_context(claims, FAR_APART, cells, context=()))

    assert found.shape == (1, 4)
    assert found[0][0] is not None
    assert found[0][3] is None


def test_references_of_the_same_claims_are_one_block() -> None:
    chunks = {(i, j) for i in range(3) for j in (0, 1)}
    ground_truth, response = {(0, 2), (1, 2)}, {(2, 3)}

    assert blocks_of(chunks | ground_truth | response) == [
        Block((0, 1, 2), [0, 1]),
        Block((0, 1), [2]),
        Block((2,), [3]),
    ]
