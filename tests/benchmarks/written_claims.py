"""How often the free judges are right on the claims that were written for this project, by kind.

    python tests/benchmarks/written_claims.py

Takes the test part of ``examples/train_local_judge/pairs``, on which no judge was trained or
fitted. For each group of kinds: the number of claims; and for ``LexicalJudge`` and ``LocalJudge``
the share that is decided, and the share of these that is right. Claims in other languages than
English are a group of their own: ``LocalJudge`` judges them by words. Last, of the decided English
ones, the share of true claims that is refused, and of wrong ones that is passed; and the AUROC of
``entailed``.
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from lexical_agreement import auroc

from claimspan.judges import Judge, LexicalJudge, LocalJudge
from claimspan.judges.lexical.cells import SureFrom, checked_sure_from, is_sure
from claimspan.verdicts import Claim

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from train_local_judge.written import passages

_GROUPS: Final = {
    "permission, duty, condition, exception": "permission permission_kept obligation condition "
    "exception exception_kept",
    "negation, opposite, comparison, roles, cause, order": "negation opposite comparison role "
    "cause step_order converse",
    "number, unit, date, percent": "wrong_number wrong_unit wrong_date percent date_range in_range",
    "paraphrase, implied, two facts, copies, code": "paraphrase implied two_facts near_copy code "
    "code_right extract not_stated",
    "planned or done, how sure, who says so": "status status_kept certainty modality hearsay "
    "attribution attributed_right weaker",
    "whose value it is, lists, tables, names": "neighbour_value binding list_item list_kept table "
    "table_right wrong_name wrong_class joined",
    "all, some, only, scope": "quantifier scope exclusive",
    "added details, another subject": "added_detail off_topic place purpose example outdated",
    "sums and counts": "worked_out wrong_sum",
}
_GROUP_OF: Final = {kind: group for group, kinds in _GROUPS.items() for kind in kinds.split()}
_OTHERS: Final = "other languages"


class Judged(NamedTuple):
    """A claim, and how probably it is entailed to each judge."""

    group: str
    is_true: bool
    probabilities: tuple[float, float]


async def judged(judges: Sequence[Judge]) -> list[Judged]:
    """Judges every claim of the test part."""
    found: list[Judged] = []
    for passage in passages():
        if passage.part != "test":
            continue
        claims = [Claim(text=each.text) for each in passage.claims]
        first, second = [await judge.check(claims, [passage.text]) for judge in judges]
        for at, claim in enumerate(passage.claims):
            cells = first[at][0], second[at][0]
            words, local = ((cell.entailed or 0.0) if cell else 0.0 for cell in cells)
            group = _GROUP_OF[claim.kind] if passage.language == "en" else _OTHERS
            found.append(Judged(group, claim.label == "E", (words, local)))
    return found


def by_default(judge: LexicalJudge | LocalJudge) -> SureFrom:
    """From which probability on a judge decides."""
    arguments: Any = judge.arguments()
    return checked_sure_from(arguments["sure_from"])


def shares(claims: Sequence[Judged], judge: int, sure_from: SureFrom) -> str:
    """The share that is decided, and the share of it that is right."""
    said = [(each.probabilities[judge], each.is_true) for each in claims]
    decided = [(p, is_true) for p, is_true in said if is_sure(p, sure_from)]
    right = sum((p >= 0.5) == is_true for p, is_true in decided)
    return f"{len(decided) / len(said):6.2f}, {right / max(len(decided), 1):4.2f}"


def main() -> None:
    """Print the table."""
    decisive = LexicalJudge(sure_from=0.5), LocalJudge(sure_from=0.5)
    sure_from = [by_default(each()) for each in (LexicalJudge, LocalJudge)]
    found = asyncio.run(judged(decisive))
    by_group: dict[str, list[Judged]] = defaultdict(list)
    for each in found:
        by_group[each.group].append(each)
    english = [each for each in found if each.group != _OTHERS]
    for title, claims in {"all English": english, **by_group}.items():
        cells = [shares(claims, judge, least) for judge, least in enumerate(sure_from)]
        print(f"{title:<54}{len(claims):>6}  {'  '.join(cells)}")
    for judge, (name, least) in enumerate(zip(("words", "local"), sure_from, strict=True)):
        said = [(each.probabilities[judge], each.is_true) for each in english]
        sure = [(p >= 0.5, is_true) for p, is_true in said if is_sure(p, least)]
        refused = [not passed for passed, is_true in sure if is_true]
        passed = [passed for passed, is_true in sure if not is_true]
        curve = auroc([p for p, _ in said], [is_true for _, is_true in said])
        print(
            f"{name}: true ones refused {sum(refused) / len(refused):.2f}, "
            f"wrong ones passed {sum(passed) / len(passed):.2f}, AUROC {curve:.3f}"
        )


if __name__ == "__main__":
    main()
