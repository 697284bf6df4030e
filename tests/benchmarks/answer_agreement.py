"""How well whole answers are judged: FinanceBench's grades, RAGChecker's human preferences.

    python tests/benchmarks/answer_agreement.py [--data DIR] [--judge local|lexical] [--thin N]

FinanceBench: 16 systems' answers, each graded by people as correct, incorrect or a refusal. "The
answer is right" where the harmonic mean of correctness and completeness over the claims of the gold
answer (Pinecone's alignment, with probabilities in place of labels) reaches a threshold. AUROC of
correct against the rest; false-positive and false-negative rate at thresholds that come from the
questions of the other half: the one with the best balanced accuracy there, and the lowest ones
that at most one in ten and one in twenty of the wrong answers there reach.

RAGChecker's meta-evaluation: two answers to a query, and which one two annotators prefer. Pearson
correlation of their mean preference (positive for the second) with the difference of our F1
(precision over the claims of the answer, recall over those of the ground truth), by label and by
probability.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import correlation, mean
from typing import Final, TypedDict, cast

from lexical_agreement import auroc, balanced_accuracy, best_threshold, half_of

from claimspan.judges import Judge, LexicalJudge
from claimspan.judges.local.judge import LocalJudge
from claimspan.judges.protocol import AnswerText
from claimspan.verdicts import Claim, Label, Verdict

DATA: Final = Path(__file__).resolve().parents[3] / "shared" / "data"
_GRADED: Final = Path("financebench") / "human_labeled_answers.jsonl"
_PREFERRED: Final = Path("ragchecker") / "meta_evaluation" / "human_labeled_data.json"
_LET_PASS: Final = (0.1, 0.05)


class Graded(TypedDict):
    """One answer of FinanceBench."""

    question: str
    gold_answer: str | float
    model_answer: str
    label: str


class Answer(TypedDict):
    """One of the two answers of a pair."""

    model_name: str
    response: str


class Preference(TypedDict):
    """One annotator's word on two answers."""

    instance_id: int
    dataset: str
    query: str
    gt_answer: str
    model1: Answer
    model2: Answer
    overall_label: int


async def claims_of(judge: Judge, text: str, question: str) -> list[Claim]:
    """The claims of a text; a bare value is one claim as it stands."""
    found = await judge.extract_claims(text, question=question)
    return found or ([Claim(text=text.strip())] if text.strip() else [])


async def verdicts(
    judge: Judge, claims: Sequence[Claim], reference: str, question: str
) -> list[Verdict]:
    """The verdict of every claim by one text."""
    matrix = await judge.check(claims, [AnswerText(reference)], question=question)
    return [verdict for verdict in matrix.verdicts() if verdict]


async def alignment(judge: Judge, answer: Graded) -> float:
    """Harmonic mean of correctness and completeness, with probabilities in place of labels."""
    claims = await claims_of(judge, str(answer["gold_answer"]), answer["question"])
    found = await verdicts(judge, claims, answer["model_answer"], answer["question"])
    entailed = sum(each.entailed or 0.0 for each in found)
    contradicted = sum(each.contradicted or 0.0 for each in found)
    return harmonic(entailed / ((entailed + contradicted) or 1.0), entailed / (len(found) or 1))


def harmonic(first: float, second: float) -> float:
    """Harmonic mean, 0 where both are."""
    return 2 * first * second / (first + second) if first + second else 0.0


async def financebench(judge: Judge, answers: Sequence[Graded]) -> str:
    """AUROC, and error rates at the other half's best threshold."""
    scores = [await alignment(judge, answer) for answer in answers]
    is_right = [answer["label"] == "Correct Answer" for answer in answers]
    halves = [half_of(answer["question"]) for answer in answers]
    tune = [at for at, half in enumerate(halves) if half == "tune"]
    test = [at for at, half in enumerate(halves) if half == "test"]
    known = [scores[at] for at in tune], [is_right[at] for at in tune]
    truth = [is_right[at] for at in test]
    lines = [
        f"FinanceBench, {len(test)} answers of the test half: "
        f"AUROC {auroc([scores[at] for at in test], truth):.3f}"
    ]
    thresholds = {"balanced": best_threshold(*known)}
    thresholds |= {f"1 in {round(1 / share)}": careful(*known, share) for share in _LET_PASS}
    for name, threshold in thresholds.items():
        said = [scores[at] >= threshold for at in test]
        wrong = [s for s, t in zip(said, truth, strict=True) if not t]
        right = [s for s, t in zip(said, truth, strict=True) if t]
        lines.append(
            f"  threshold {name}: balanced accuracy {balanced_accuracy(said, truth):.3f}, "
            f"false positives {mean(wrong):.2f}, false negatives {1 - mean(right):.2f}"
        )
    return "\n".join(lines)


def careful(scores: Sequence[float], is_right: Sequence[bool], share: float) -> float:
    """The lowest threshold that at most a share of the wrong answers reach."""
    wrong = sorted((s for s, t in zip(scores, is_right, strict=True) if not t), reverse=True)
    allowed = int(share * len(wrong))
    return next((s for s in sorted(set(scores)) if s > wrong[allowed]), 1.0)


async def f1(judge: Judge, pair: Preference, answer: Answer) -> tuple[float, float]:
    """F1 by label and by probability."""
    said = await claims_of(judge, answer["response"], pair["query"])
    true = await claims_of(judge, pair["gt_answer"], pair["query"])
    precision = await verdicts(judge, said, pair["gt_answer"], pair["query"])
    recall = await verdicts(judge, true, answer["response"], pair["query"])
    by_label = [share([v.label == Label.ENTAILED for v in each]) for each in (precision, recall)]
    by_chance = [share([v.entailed or 0.0 for v in each]) for each in (precision, recall)]
    return harmonic(*by_label), harmonic(*by_chance)


def share(values: Sequence[float]) -> float:
    """Mean, 0 of nothing."""
    return mean(values) if values else 0.0


async def preferences(judge: Judge, words: Sequence[Preference]) -> str:
    """Pearson correlation of the preference with the difference of F1."""
    people: dict[tuple[str, int], list[Preference]] = defaultdict(list)
    for each in words:
        people[each["dataset"], each["instance_id"]].append(each)
    preferred: list[float] = []
    gaps: list[list[float]] = [[], []]
    for annotated in people.values():
        pair = annotated[0]
        first = await f1(judge, pair, pair["model1"])
        second = await f1(judge, pair, pair["model2"])
        preferred.append(mean(each["overall_label"] for each in annotated))
        for gap, one, other in zip(gaps, first, second, strict=True):
            gap.append(other - one)
    by_label, by_chance = (100 * correlation(gap, preferred) for gap in gaps)
    return (
        f"RAGChecker meta-evaluation, {len(people)} pairs, Pearson with people: "
        f"F1 by label {by_label:.1f}, by probability {by_chance:.1f}"
    )


def graded(path: Path) -> Iterator[Graded]:
    """The answers of a file."""
    for line in path.read_text(encoding="utf-8").splitlines():
        yield cast("Graded", json.loads(line))


def main() -> None:
    """Print both lines."""
    parser = argparse.ArgumentParser(description="Agreement on whole answers with people.")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--judge", choices=("local", "lexical"), default="local")
    parser.add_argument("--thin", type=int, default=1, help="take every n-th answer or pair")
    options = parser.parse_args()
    judge = LocalJudge(sure_from=0.5) if options.judge == "local" else LexicalJudge(sure_from=0.5)
    answers = list(graded(options.data / _GRADED))[:: options.thin]
    print(asyncio.run(financebench(judge, answers)), flush=True)
    words = cast("list[Preference]", json.loads((options.data / _PREFERRED).read_text("utf-8")))
    kept = [each for each in words if each["instance_id"] % options.thin == 0]
    print(asyncio.run(preferences(judge, kept)), flush=True)


if __name__ == "__main__":
    main()
