"""Draws the plots of ``RESULTS.md``: reads their JSON from standard input, writes SVG files.

    .venv-bench/bin/python tests/benchmarks/plots.py FOLDER < plots.json

It runs in the environment of ``requirements/bench.txt``, which has matplotlib: it writes SVG that
every page shows, without a browser.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
# Equal figures give an equal file; and letters stay letters, which keeps it small.
mpl.rcParams["svg.hashsalt"] = "claimspan"
mpl.rcParams["svg.fonttype"] = "none"

from matplotlib import pyplot as plt  # noqa: E402 - after the choice of its backend


def draw(plot: dict[str, Any], folder: Path) -> None:
    """Write one plot; both axes are logarithmic."""
    figure, axes = plt.subplots(figsize=(7, 4))
    for curve in plot["curves"]:
        axes.plot(curve["x"], curve["y"], marker="o", markersize=3, label=curve["name"])
    axes.set(xscale="log", yscale="log", xlabel=plot["x_label"], ylabel=plot["y_label"])
    axes.grid(which="major", color="0.9")
    if any(curve["name"] for curve in plot["curves"]):
        axes.legend(fontsize="small")
    figure.savefig(folder / f"{plot['name']}.svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Draw all plots that are given."""
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for plot in json.load(sys.stdin):
        draw(plot, folder)


if __name__ == "__main__":
    main()
