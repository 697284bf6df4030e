"""A file of results about which people can be asked, and what they would say."""

from __future__ import annotations

from pathlib import Path

from claimspan import Chunk, Claim, Evaluation, Label, RagRecord, Verdict, VerdictMatrix
from claimspan.results import ResultRow
from claimspan.verdicts import VerdictMatrices

from result_files import write_results

__all__ = ["EVIL", "write_traffic"]

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='o'\">"
"""Markup that must be shown as text."""


def write_traffic(path: Path, n: int = 40, *, judge: str = "lexical") -> Path:
    """Write results of records with one claim each, whose text says whether people support it.

    The judge is too strict: it calls a claim entailed from 0.5 on, people do so from 0.3 on.
    """
    return write_results(path, (_row(index, n, judge) for index in range(n)))


def _row(index: int, n: int, judge: str) -> ResultRow:
    # Spread over all probabilities, with neighbours in records far from each other.
    entailed = (index * 7 % n + 0.5) / n
    word = "right" if entailed >= 0.3 else "wrong"
    claim = Claim(text=f"Answer {index} is {word}.")
    verdict = Verdict(
        label=Label.ENTAILED if entailed >= 0.5 else Label.NEUTRAL,
        entailed=entailed,
        neutral=1 - entailed,
        contradicted=0.0,
    )
    chunk = Chunk(id="c", text=f"Answer {index} is known. {EVIL} Čmrlj 🐝. More follows.")
    record = RagRecord(
        query=f"Question {index}?", response=claim.text, id=f"r{index}", chunks=(chunk,)
    )
    found = Evaluation(
        metrics={"faithfulness": 1.0},
        response_claims=(claim,),
        matrices=VerdictMatrices(response_vs_chunks=VerdictMatrix.of([[verdict]])),
        judge_name=judge,
    )
    return ResultRow.of(index, record, found)
