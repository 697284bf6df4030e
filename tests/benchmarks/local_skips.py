"""What ``LocalJudge`` leaves unread, and what that costs, on labelled sets with several references.

    python tests/benchmarks/local_skips.py [--data DIR] [--half HALF] [--claims N] [--json]

The judge reads the references of a claim in the order of their promise, and stops after two in a
row that do not entail it. Each claim is judged twice: once with all references read, and once as
the judge is used. Sets, halves and groups are those of ``lexical_agreement.py``; what was chosen
came from the tune halves.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from unittest.mock import patch

from lexical_agreement import DATA, Half, Record, groups, half_of, read
from results import Bar, Results, Table, show

from claimspan.judges import LocalJudge
from claimspan.judges.local import reading
from claimspan.verdicts import Claim, Label, Verdict

SETS: Final = ("refchecker_msmarco", "lfqa_verification")
"""Those in which most claims have several references."""

LEAST: Final = 0.995
"""Share of the entailed pairs that must be found."""


class Found(NamedTuple):
    """What the judge finds in one set, reading all and as it is used."""

    n_claims: int
    n_pairs: int
    n_read: int
    """Pairs read as the judge is used."""

    n_entailed: int
    """Pairs that are entailed where all are read."""

    n_kept: int
    """Of these, the pairs that are entailed as the judge is used."""

    n_entailed_claims: int
    """Claims that a reference entails where all are read."""

    n_kept_claims: int

    @property
    def recall(self) -> float:
        """Share of the entailed pairs that are found."""
        return self.n_kept / self.n_entailed if self.n_entailed else 1.0


async def judged(records: Sequence[Record]) -> Found:
    """Judges each claim twice."""
    # No cache: a pair that was read before would not be counted when it is read again.
    everything, used = (
        LocalJudge(sure_from=0.5, known_bytes=0),
        LocalJudge(sure_from=0.5, known_bytes=0),
    )
    sums = [0] * len(Found._fields)
    for record in records:
        claims = [Claim(text=record.claim)]
        with patch.object(reading, "PATIENCE", len(record.premises)):
            (whole,) = (await everything.check(claims, record.premises)).rows
        (shipped,) = (await used.check(claims, record.premises)).rows
        kept = [_is_entailed(s) for w, s in zip(whole, shipped, strict=True) if _is_entailed(w)]
        row = [1, len(whole), 0, len(kept), sum(kept), bool(kept), any(kept)]
        sums = [one + other for one, other in zip(sums, row, strict=True)]
    return Found(*sums)._replace(n_read=used.pairs.read)


def _is_entailed(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.label is Label.ENTAILED


def chosen(path: Path, half: Half, n_claims: int) -> list[Record]:
    """Claims of one half of a set, spread over it, that have several references."""
    records = read(path)
    pairs = zip(records, groups(path.stem, records), strict=True)
    several = [each for each, group in pairs if half_of(group) == half and len(each.premises) > 1]
    return several[:: max(1, len(several) // n_claims)]


def results(folder: Path, half: Half, n_claims: int) -> Results:
    """Judges the sets, and says what is lost."""
    found = {
        name: asyncio.run(judged(chosen(folder / f"{name}.jsonl", half, n_claims))) for name in SETS
    }
    total = Found(*map(sum, zip(*found.values(), strict=True)))
    rows = [
        [
            name,
            str(each.n_claims),
            str(each.n_pairs),
            f"{each.n_read / each.n_pairs:.0%}",
            f"{each.n_kept} of {each.n_entailed}",
            f"{each.n_kept_claims} of {each.n_entailed_claims}",
        ]
        for name, each in [*found.items(), ("all", total)]
    ]
    columns = ["set", "claims", "pairs", "read", "entailed pairs found", "entailed claims found"]
    return Results(
        title="What the local judge leaves unread",
        command=f"python tests/benchmarks/local_skips.py --half {half} --claims {n_claims}",
        how="Each claim is judged with all references read, and as the judge is used. A pair "
        "counts as found where both say that it is entailed, a claim where one of its pairs is.",
        tables=[Table(caption=f"The {half} halves", columns=columns, rows=rows)],
        bars=[
            Bar(
                promise="of the entailed pairs at least 99.5 % are found",
                measured=f"{total.recall:.2%}",
                is_kept=total.recall >= LEAST,
            )
        ],
        notes=[],
    )


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(description="What LocalJudge leaves unread.")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the labelled sets")
    parser.add_argument("--half", choices=("tune", "test"), default="test")
    parser.add_argument("--claims", type=int, default=400, help="of a set, at most about")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"no folder of labelled sets at {options.data}")
    show(results(options.data, options.half, options.claims), as_json=options.json)


if __name__ == "__main__":
    main()
