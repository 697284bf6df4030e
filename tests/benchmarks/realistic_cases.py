r"""Measures judges on short, realistic answers: support bots, policies, products, short truths.

    python tests/benchmarks/realistic_cases.py FILE --judge lexical --judge local [--failures]

Each line of FILE is a case: ``id``, ``kind``, ``question``, ``answer``, what the answer is judged
against (``chunk`` or ``ground_truth``), and ``expect``. A case is right where the claims of the
answer say so:

* ``supported``: the chunk entails every claim, and there is one.
* ``unsupported``, ``contradicted``: the chunk does not entail every claim, and there is one.
* ``no_claim``: the answer makes no claim.
* ``right``: the ground truth entails a claim of the answer, and the answer one of the ground truth.
* ``wrong``: neither entails any claim of the other.

A case with a claim that the judge leaves undecided is left out of the shares, and counted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from claimspan import Evaluation, evaluate_many
from claimspan.judges import default_judge

from realistic_answers import Case, is_right, read_cases

__all__ = ["main"]


class Outcome(NamedTuple):
    """What a judge made of a case."""

    case: Case
    evaluation: Evaluation
    is_right: bool


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the share of right cases, by judge, by what is expected, and by kind."""
    parser = argparse.ArgumentParser(description="Measure judges on realistic answers.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--judge", action="append", help="lexical (the default), local, ...")
    parser.add_argument("--failures", action="store_true", help="Show what was judged wrongly.")
    options = parser.parse_args(arguments)
    cases = read_cases(options.file)
    for name in options.judge or ["lexical"]:
        judge = default_judge(name)
        found = evaluate_many([case.record for case in cases], judge=judge, progress=False)
        outcomes = [
            Outcome(case, evaluation, is_right(case, evaluation))
            for case, evaluation in zip(cases, found, strict=True)
        ]
        print("\n".join(_table(name, outcomes)))
        if options.failures:
            print("\n".join(_failures(outcomes)))


def _table(judge: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    decided = [each for each in outcomes if not each.evaluation.undecided_claims]
    yield _row(judge, [outcome.is_right for outcome in decided])
    yield f"  undecided{len(outcomes) - len(decided):44}"
    for title in ("expect", "kind", "language"):
        groups: dict[str, list[bool]] = defaultdict(list)
        for outcome in decided:
            groups[str(getattr(outcome.case, title))].append(outcome.is_right)
        yield from (_row(f"  {title} {name}", groups[name]) for name in sorted(groups))


def _row(name: str, right: Sequence[bool]) -> str:
    return f"{name:48} {sum(right):4} of {len(right):4}  {sum(right) / len(right):.3f}"


def _failures(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for case, evaluation, right in outcomes:
        if not right and not evaluation.undecided_claims:
            against = case.ground_truth if case.chunk is None else case.chunk
            yield json.dumps(
                {
                    "id": case.id,
                    "expect": case.expect,
                    "question": case.question,
                    "answer": case.answer,
                    "against": against,
                    "claims": [claim.text for claim in evaluation.response_claims],
                    "labels": _labels(evaluation),
                },
                ensure_ascii=False,
                indent=1,
            )


def _labels(evaluation: Evaluation) -> list[str]:
    matrix = evaluation.response_vs_chunks
    if matrix is None or not matrix.n_references:
        matrix = evaluation.response_vs_ground_truth
    return [] if matrix is None else [str(label) for label in matrix.merged]


if __name__ == "__main__":
    main()
