"""Turns weights in the form in which they are run back into the form that is trained.

    python -m train_local_judge.unfused --model local.onnx --form model.onnx --out base.onnx

``fused.py`` takes means off and gives them back by the biases that follow, and drops the biases of
keys and values: what it writes is the same network with other biases, so that nothing is lost but
what rounds differently in 8 bits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from train_local_judge.base import N_OUTPUTS, Weights, load, read, write

__all__ = ["main", "unfused"]

# The least value of GELU, which the fused form adds before it quantises.
_BELOW_ZERO = 0.17


def main() -> None:
    """Write the model."""
    parser = argparse.ArgumentParser(description="The form of the cross-encoder that is trained.")
    for name in ("model", "form", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    form = load(options.form)
    onnx.save(write(form, read(form) | unfused(load(options.model))), str(options.out))


def unfused(model: onnx.ModelProto) -> Weights:
    """Read the weights of a model that ``fused.py`` wrote, by their names in PyTorch."""
    stored = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    found: Weights = {}
    for node in model.graph.node:
        if node.op_type == "MatMulIntegerToFloat":
            name = node.output[0].removesuffix(".product")
            _, weight, _, scale, _, zero, *_ = node.input
            whole = stored[weight].astype(np.float32) - stored[zero].astype(np.float32)
            matrix = (whole * stored[scale]).T
            bias = stored.get(f"{name}.bias", np.zeros(len(matrix), np.float32))
            if name.endswith("output.dense") and "attention" not in name:
                bias = bias + _BELOW_ZERO * matrix.sum(1)
            size = N_OUTPUTS if name == "classifier" else len(matrix)
            found[f"{name}.weight"] = np.ascontiguousarray(matrix[:size])
            found[f"{name}.bias"] = bias[:size].astype(np.float32)
    for name, value in stored.items():
        if "LayerNorm" in name:
            found[name] = value.astype(np.float32)
        elif name.startswith("bert.embeddings.") and name.endswith("_quantized"):
            own = name.removesuffix("_quantized")
            whole = value.astype(np.float32) - np.float32(stored[f"{own}_zero_point"])
            found[own] = whole * stored[f"{own}_scale"]
    return found


if __name__ == "__main__":
    main()
