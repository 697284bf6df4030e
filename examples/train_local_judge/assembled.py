"""Puts the layers that ``train.py`` wrote back into the base that they were trained from.

python -m train_local_judge.assembled --base base.onnx --weights run/weights.npz --out run.onnx
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx

from train_local_judge.base import load, read, write
from train_local_judge.train import unpacked

__all__ = ["main"]


def main() -> None:
    """Write the whole model in 8 bits."""
    parser = argparse.ArgumentParser(description="Put trained layers into their base.")
    for name in ("base", "weights", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--share", type=float, default=1.0, help="share of the trained weights")
    options = parser.parse_args()
    base = load(options.base)
    with np.load(options.weights) as stored:
        learned = unpacked({name: stored[name] for name in stored.files})
    weights = read(base)
    for name, weight in learned.items():
        mixed = options.share * weight + (1 - options.share) * weights[name]
        weights[name] = mixed.astype(np.float32)
    onnx.save(write(base, weights), str(options.out))


if __name__ == "__main__":
    main()
