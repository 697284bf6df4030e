"""Kills a service at random moments, many times: python tests/benchmarks/sigkill.py [KILLS] [SEED].

Row F6 of the reliability matrix in its long form. Prints how many records were acknowledged, how
many of them have exactly one visible score and a whole trace, and what is left in the spool.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from spool_runs import WHOLE, kill_and_restart, read_aftermath


def main(kills: int, seed: int) -> int:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        acknowledged = kill_and_restart(
            folder, kills, judge_seconds=0.05, rng=rng, pipeline="langchain"
        )
        aftermath = read_aftermath(folder)
    scored = [key for key in acknowledged if len(aftermath.scored(key)) == 1]
    # Late scores stand on a span more.
    late = {"claimspan.annotations"}
    whole = [k for k in acknowledged if aftermath.names(k) - late == WHOLE["langchain"]]
    print(f"kills           {kills}")
    print(f"acknowledged    {len(acknowledged)}")
    print(f"one score       {len(scored)}")
    print(f"whole traces    {len(whole)}")
    print(f"changed spans   {len(aftermath.conflicting)}")
    print(f"left in spool   {aftermath.left}")
    print(f"integrity       {aftermath.integrity}")
    return int(not len(scored) == len(whole) == len(acknowledged))


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*(arguments + [50, 1][len(arguments) :])))
