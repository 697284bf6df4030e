"""How often the free judges are right about cases of authors who knew nothing of them.

    python tests/benchmarks/blind_cases.py

Three authors wrote 201 claims on passages of 40 to 200 words, and 21 long answers on some chunks
each (``blind/``): half of the claims faithful in other words, half wrong by one thing, and 21 that
give one thing the value of another (``swap``). A fourth labelled all of them anew without seeing
the labels, and gave each the same. No judge was trained or fitted on them. They were looked at when
written claims were given more weight in the fit of ``LocalJudge``, which they spoke for.

For each judge: the claims by kind, the share that is decided, and the share of these that is right;
of the decided ones, the share of true claims that is refused, and of wrong ones that is passed; and
of the long answers the mean distance of ``faithfulness`` from the share of true sentences, and how
many of the wholly right ones have less than .7.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel

from claimspan import Chunk, RagRecord, evaluate_many
from claimspan.judges import LexicalJudge, LocalJudge
from claimspan.verdicts import Claim, Label

_BLIND: Final = Path(__file__).parent / "blind"
_LOW: Final = 0.7
_NOTHING: Final = "none"
"""The label of a sentence that asserts nothing."""


class Case(BaseModel):
    """A claim on a passage."""

    kind: str
    passage: str
    claim: str
    label: Label


class Sentence(BaseModel):
    """A sentence of an answer."""

    text: str
    label: Label | Literal["none"]


class Answer(BaseModel):
    """A long answer with its chunks."""

    question: str
    chunks: list[str]
    sentences: list[Sentence]

    @property
    def truth(self) -> float:
        """The share of its sentences that is true, of those that assert anything."""
        asserted = [each for each in self.sentences if each.label != _NOTHING]
        return fmean(each.label == Label.ENTAILED for each in asserted)

    @property
    def record(self) -> RagRecord:
        """The answer as it is judged."""
        chunks = tuple(Chunk(id=str(i), text=text) for i, text in enumerate(self.chunks))
        said = " ".join(each.text for each in self.sentences)
        return RagRecord(query=self.question, response=said, chunks=chunks)


class Judged(NamedTuple):
    """What a judge says of a claim."""

    case: Case
    passes: bool | None
    """Whether it calls the claim entailed; None if it is undecided."""

    @property
    def is_true(self) -> bool:
        """Whether the claim is."""
        return self.case.label is Label.ENTAILED


async def judged(judge: LexicalJudge | LocalJudge, cases: Sequence[Case]) -> list[Judged]:
    """Judges each claim against its passage."""
    found: list[Judged] = []
    for case in cases:
        matrix = await judge.check([Claim(text=case.claim)], [case.passage])
        verdict = matrix[0][0]
        found.append(Judged(case, None if verdict is None else verdict.label is Label.ENTAILED))
    return found


def row(title: str, found: Sequence[Judged]) -> str:
    """One line of the table: how many, the share that is decided, and the right ones of these."""
    decided = [each for each in found if each.passes is not None]
    right = [each for each in decided if each.passes == each.is_true]
    shares = len(decided) / len(found), len(right) / max(len(decided), 1)
    return f"{title:<18}{len(found):>5}{shares[0]:8.2f}{shares[1]:6.2f}"


def share_of(found: Sequence[Judged], *, true: bool, passed: bool) -> float:
    """Of the decided claims that are true, or are not, the share that is passed, or is not."""
    said = [each.passes for each in found if each.is_true is true and each.passes is not None]
    return said.count(passed) / max(len(said), 1)


def main() -> None:
    """Print the tables."""
    lines = (_BLIND / "claims.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [Case.model_validate(json.loads(line)) for line in lines]
    lines = (_BLIND / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    answers = [Answer.model_validate(json.loads(line)) for line in lines]
    for judge in (LexicalJudge(), LocalJudge()):
        print(judge.name)
        kinds: dict[str, list[Judged]] = defaultdict(list)
        for each in asyncio.run(judged(judge, cases)):
            kinds["all but swaps" if each.case.kind != "swap" else "swap"].append(each)
            if each.case.kind != "swap":
                kinds[each.case.kind].append(each)
        for kind, found in sorted(kinds.items(), key=lambda item: -len(item[1])):
            print(row(kind, found))
        most = kinds["all but swaps"]
        swaps = [each.passes for each in kinds["swap"]]
        print(
            f"true ones refused {share_of(most, true=True, passed=False):.2f}, wrong ones passed "
            f"{share_of(most, true=False, passed=True):.2f}; of {len(swaps)} swaps "
            f"{swaps.count(False)} refused, {swaps.count(None)} undecided"
        )
        said = evaluate_many([each.record for each in answers], judge=judge, progress=False)
        scores = [
            (answer.truth, evaluation.metrics["faithfulness"])
            for answer, evaluation in zip(answers, said, strict=True)
            if "faithfulness" in evaluation.metrics
        ]
        right = [score for truth, score in scores if truth == 1]
        told = f"{len(answers)} long answers, {len(scores)} with a score"
        if scores:
            error = fmean(abs(truth - score) for truth, score in scores)
            low = sum(score < _LOW for score in right)
            told += f": mean error {error:.3f}; of {len(right)} right ones {low} below {_LOW}"
        print(f"{told}\n")


if __name__ == "__main__":
    main()
