"""What importing us costs, as a ratio to importing pydantic, process by process in turns.

    python tests/benchmarks/import_cost.py [--rounds N] [--json]

Each round starts a new interpreter for each import, and times the import statement alone.
``import claimspan`` is measured against ``import pydantic``; using a name, which loads pydantic's
models, against ``from pydantic import BaseModel``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys

PAIRS = {
    "import claimspan / import pydantic": ("import claimspan", "import pydantic"),
    "from claimspan import RagRecord / from pydantic import BaseModel": (
        "from claimspan import RagRecord",
        "from pydantic import BaseModel",
    ),
}


def seconds(statement: str) -> float:
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    table = {
        name: statistics.median(seconds(ours) / seconds(theirs) for _ in range(options.rounds))
        for name, (ours, theirs) in PAIRS.items()
    }
    if options.json:
        print(json.dumps(table))
    else:
        for name, ratio in table.items():
            print(f"{ratio:6.2f}  {name}")


if __name__ == "__main__":
    main()
