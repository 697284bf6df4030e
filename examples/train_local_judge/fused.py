r"""Writes a trained model in the form in which ``LocalJudge`` runs it.

    python -m train_local_judge.fused --model run/STEP.onnx --tokenizer tokenizer.json \\
        --pairs .../entailment/train/conj_train.jsonl --out local.onnx

The weights stay as they are stored. What changes is how they are applied, so that the logits are
nearer to those of the same weights in 32 bits, and those of a pair do not depend on other pairs:

- Each word piece is quantised by its own largest value, where ``DynamicQuantizeLinear`` has one
  scale for a whole batch.
- From the values of each channel its mean is taken before they are quantised, and given back by the
  next bias, which leaves a smaller range. The mean comes from a few hundred pairs; it is exact for
  any number, so that other pairs would only change what is rounded.
- The values after GELU, none of which is below -0.17, use all 255 steps and not the upper half.
- Pairs of one length share a batch, so that nothing is filled up and no mask is needed.
- The last layer computes the first word piece alone, which is all that the classifier reads.
- Near ties are read once more in 32 bits: ``near_ties.py``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from train_local_judge.base import N_LAYERS, N_OUTPUTS
from train_local_judge.base import WIDTH as _WIDTH
from train_local_judge.near_ties import with_near_ties

__all__ = ["fused", "main", "mean_outputs"]

_HEADS, _LONGEST = 12, 512
_EPSILON = 1e-12
_FUSED: Final = "com.microsoft"
_N_PAIRS: Final = 300
# A row of zeros has no scale.
_LEAST: Final = 1e-6
# The least value of GELU is -0.16997.
_BELOW_ZERO, _STEPS = 0.17, 255
_FROM_UNSIGNED: Final = 128

Means = dict[str, np.ndarray]
"""Name of a LayerNorm to the mean of its output, shape ``(384,)``."""


def main() -> None:
    """Write the model."""
    parser = argparse.ArgumentParser(description="The form in which the cross-encoder is run.")
    for name in ("model", "tokenizer", "pairs", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    model = onnx.load(str(options.model))
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    tokenizer.enable_truncation(_LONGEST, strategy="longest_first")
    means = mean_outputs(model, tokenizer, islice(_pairs(options.pairs), _N_PAIRS))
    onnx.save(with_near_ties(fused(model, means)), str(options.out))


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            yield record["claim"], " ".join(record["premises"])


def mean_outputs(
    model: onnx.ModelProto, tokenizer: Tokenizer, pairs: Iterable[tuple[str, str]]
) -> Means:
    """Compute the mean output of each LayerNorm over the word pieces of some pairs."""
    outputs = {name: _output(name) for name in _norms()}
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    for output in outputs.values():
        shown.graph.output.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(
        shown.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found: list[list[np.ndarray]] = []
    for pair in pairs:
        encoded = tokenizer.encode(*pair)
        inputs = {
            "input_ids": encoded.ids,
            "token_type_ids": encoded.type_ids,
            "attention_mask": encoded.attention_mask,
        }
        rows = {name: np.array([values], np.int64) for name, values in inputs.items()}
        found.append([each[0] for each in session.run([*outputs.values()], rows)])
    return {
        name: np.concatenate(rows).mean(0).astype(np.float32)
        for name, rows in zip(outputs, zip(*found, strict=True), strict=True)
    }


def _norms() -> list[str]:
    """Name the LayerNorms whose output is quantised."""
    layers = [f"bert.encoder.layer.{number}" for number in range(N_LAYERS)]
    parts = [
        f"{each}.{part}.LayerNorm" for each in layers for part in ("attention.output", "output")
    ]
    return ["bert.embeddings.LayerNorm", *parts]


def _output(norm: str) -> str:
    """Turn the name of a LayerNorm into that of its output in the model that is trained."""
    path = norm.replace(".encoder.layer.", "/encoder/layer_").replace(".", "/")
    return f"/{path.replace('layer_', 'layer.')}/Add_1_output_0"


def fused(model: onnx.ModelProto, means: Means) -> onnx.ModelProto:
    """Build the form that is run from the form that is trained.

    Args:
        model: The form that is trained.
        means: From ``mean_outputs``.
    """
    return _Network(model, means).built()


class _Network:
    """The nodes and constants of the new graph.

    A tensor has one row for each word piece, except in attention, which has to know the pairs. A
    hidden state lacks the mean of the LayerNorm that it comes from.
    """

    def __init__(self, model: onnx.ModelProto, means: Means) -> None:
        self._stored = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
        # The module of each matrix, in place of the numbers that the exporter gave some of them.
        self._matrices = {
            _module(node.output[0]): node.input[1].removesuffix("_quantized")
            for node in model.graph.node
            if node.op_type == "MatMulInteger"
        }
        self._means = means
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._quantised: dict[str, tuple[str, str]] = {}

    def built(self) -> onnx.ModelProto:
        hidden, norm = self._embeddings()
        for number in range(N_LAYERS):
            hidden, norm = self._layer(number, hidden, norm, is_last=number == N_LAYERS - 1)
        pooled = self._with_bias("bert.pooler.dense", hidden, self._means[norm])
        pooled = self._node("Tanh", [pooled], "pooled_tanh")
        self._with_bias("classifier", pooled, out="logits")
        shape = ["batch_size", "sequence"]
        graph = helper.make_graph(
            self._nodes,
            "cross_encoder",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, shape)
                for name in ("input_ids", "token_type_ids")
            ],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch_size", N_OUTPUTS])],
            initializer=list(self._constants.values()),
        )
        versions = [helper.make_opsetid("", 18), helper.make_opsetid(_FUSED, 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=8)

    # --- parts of the network ---

    def _embeddings(self) -> tuple[str, str]:
        self._node("Shape", ["input_ids"], "shape")
        self._node("Concat", ["shape", self._whole("width", [_WIDTH])], "cube", axis=0)
        self._node("Shape", ["input_ids"], "length", start=1, end=2)
        every = self._whole("positions", range(_LONGEST))
        self._node("Slice", [every, self._whole("start", [0]), "length"], "places")
        inputs = {"word": "input_ids", "token_type": "token_type_ids", "position": "places"}
        word, kind, place = (self._embedding(name, ids) for name, ids in inputs.items())
        summed = self._node("Add", [self._node("Add", [word, kind], "words"), place], "summed")
        norm = "bert.embeddings.LayerNorm"
        weights = self._norm_weights(norm)
        normed = self._node("LayerNormalization", [summed, *weights], norm, epsilon=_EPSILON)
        return self._rows(normed), norm

    def _embedding(self, name: str, ids: str) -> str:
        weight = f"bert.embeddings.{name}_embeddings.weight"
        rows = self._node("Gather", [self._weight(f"{weight}_quantized"), ids], f"{name}_stored")
        scale = [self._weight(f"{weight}_{each}") for each in ("scale", "zero_point")]
        return self._node("DequantizeLinear", [rows, *scale], name)

    def _layer(self, number: int, hidden: str, norm: str, *, is_last: bool) -> tuple[str, str]:
        name = f"bert.encoder.layer.{number}"
        mixed, asking = self._attention(f"{name}.attention.self", hidden, norm, is_last=is_last)
        # The shares of attention add up to 1, so that what each value lacks is lacking in the sum.
        lacking = self._lacking(f"{name}.attention.self.value", self._means[norm])
        output = f"{name}.attention.output"
        lacking = lacking @ self._floats(f"{output}.dense") + self._means[norm]
        hidden = self._added(output, self._product(f"{output}.dense", mixed), asking, lacking)
        inner = f"{name}.intermediate.dense"
        bias = self._lacking(inner, self._means[f"{output}.LayerNorm"])
        product = self._product(inner, hidden)
        raised = self._node("Gelu", [self._biased(inner, product, bias)], f"{name}.gelu", _FUSED)
        below = -_BELOW_ZERO * self._floats(f"{name}.output.dense").sum(0)
        lacking = below + self._means[f"{output}.LayerNorm"]
        product = self._product(f"{name}.output.dense", raised)
        hidden = self._added(f"{name}.output", product, hidden, lacking)
        return hidden, f"{name}.output.LayerNorm"

    def _attention(self, name: str, hidden: str, norm: str, *, is_last: bool) -> tuple[str, str]:
        """Return what each word piece gathers from the others, and the pieces that gather."""
        asking = self._first_pieces(hidden) if is_last else hidden
        query = self._with_bias(f"{name}.query", asking, self._means[norm])
        query = self._one_a_pair(query) if is_last else self._cube(query)
        # A bias of the keys adds the same to all scores of a word piece, which changes no share.
        key, value = (
            self._cube(self._product(f"{name}.{each}", hidden)) for each in ("key", "value")
        )
        inputs = [query, key, value]
        mixed = self._node("MultiHeadAttention", inputs, f"{name}.mixed", _FUSED, num_heads=_HEADS)
        return self._rows(mixed), asking

    def _added(self, name: str, new: str, old: str, lacking: np.ndarray) -> str:
        """Add a part's result to its input, with the bias and what both lack, and normalise it."""
        # Not SkipLayerNormalization, which takes ten times as long on a CPU.
        new = self._biased(f"{name}.dense", new, self._stored[f"{name}.dense.bias"] + lacking)
        summed = self._node("Sum", [new, old], f"{name}.summed")
        norm = f"{name}.LayerNorm"
        inputs = [summed, *self._norm_weights(norm)]
        return self._node("LayerNormalization", inputs, norm, epsilon=_EPSILON)

    def _norm_weights(self, norm: str) -> list[str]:
        weight = self._weight(f"{norm}.weight")
        return [
            weight,
            self._constant(f"{norm}.bias", self._stored[f"{norm}.bias"] - self._means[norm]),
        ]

    # --- shapes ---

    def _rows(self, values: str) -> str:
        return self._node("Reshape", [values, self._whole("rows", [-1, _WIDTH])], f"{values}.rows")

    def _cube(self, values: str) -> str:
        return self._node("Reshape", [values, "cube"], f"{values}.cube")

    def _one_a_pair(self, values: str) -> str:
        shape = self._whole("one_a_pair", [-1, 1, _WIDTH])
        return self._node("Reshape", [values, shape], f"{values}.one")

    def _first_pieces(self, hidden: str) -> str:
        cube = self._cube(hidden)
        first = self._constant("first", np.array(0, np.int64))
        return self._node("Gather", [cube, first], f"{hidden}.first", axis=1)

    # --- matrices ---

    def _with_bias(
        self, name: str, values: str, mean: np.ndarray | None = None, out: str = ""
    ) -> str:
        bias = self._stored[f"{name}.bias"] if mean is None else self._lacking(name, mean)
        return self._biased(name, self._product(name, values), bias, out)

    def _biased(self, name: str, product: str, bias: np.ndarray, out: str = "") -> str:
        # Not Add, which onnxruntime would join with other nodes to something slower.
        inputs = [product, self._constant(f"{name}.bias", bias)]
        return self._node("Sum", inputs, out or f"{name}.out")

    def _lacking(self, name: str, mean: np.ndarray) -> np.ndarray:
        """Return the bias of a matrix whose input lacks its mean."""
        return self._stored[f"{name}.bias"] + mean @ self._floats(name)

    def _product(self, name: str, values: str) -> str:
        """Multiply rows with a matrix in 8 bits; the bias is not added yet."""
        is_gelu = values.endswith(".gelu")
        quantise = self._gelu_quantised if is_gelu else self._rows_quantised
        if values not in self._quantised:
            self._quantised[values] = quantise(values)
        quantised, scale = self._quantised[values]
        weight = self._matrices[name]
        # The zero of GELU's values differs from row to row; what it adds is the same for all.
        zero = self._constant(
            "zero_of_gelu" if is_gelu else "zero",
            np.array(0 if is_gelu else _FROM_UNSIGNED, np.uint8),
        )
        product = self._node(
            "MatMulIntegerToFloat",
            [
                quantised,
                self._weight(f"{weight}_quantized"),
                self._constant("one", np.array(1, np.float32)),
                self._weight(f"{weight}_scale"),
                zero,
                self._weight(f"{weight}_zero_point"),
            ],
            f"{name}.product",
            _FUSED,
        )
        return self._node("Mul", [product, scale], f"{name}.scaled")

    def _rows_quantised(self, values: str) -> tuple[str, str]:
        """Return rows in 8 bits, each by its own scale, and the scales as a column."""
        last = self._whole("last", [-1])
        sizes = self._node("Abs", [values], f"{values}.abs")
        largest = self._node("ReduceMax", [sizes, last], f"{values}.largest", keepdims=1)
        least = self._constant("least", np.array(_LEAST, np.float32))
        bounded = self._node("Max", [largest, least], f"{values}.bounded")
        steps = self._constant("steps", np.array(_FROM_UNSIGNED - 1, np.float32))
        scale = self._node("Div", [bounded, steps], f"{values}.scale")
        flat = self._node("Reshape", [scale, last], f"{values}.scales")
        shape = self._node("Shape", [flat], f"{flat}.shape")
        zero = helper.make_tensor("zero", TensorProto.UINT8, [1], [_FROM_UNSIGNED])
        zeros = self._node("ConstantOfShape", [shape], f"{flat}.zeros", value=zero)
        inputs = [values, flat, zeros]
        return self._node("QuantizeLinear", inputs, f"{values}.quantised", axis=0), scale

    def _gelu_quantised(self, values: str) -> tuple[str, str]:
        """Return rows in 8 bits, whose zero is a whole number of steps above the least value.

        So that number times the step is 0.17 in every row, and the bias can take it off.
        """
        last = self._whole("last", [-1])
        below = self._constant("below_zero", np.array(_BELOW_ZERO, np.float32))
        reach = self._constant("reach", np.array(_BELOW_ZERO * _STEPS, np.float32))
        one = self._constant("one", np.array(1, np.float32))
        largest = self._node("ReduceMax", [values, last], f"{values}.largest", keepdims=0)
        width = self._node("Add", [largest, below], f"{values}.width")
        fitting = self._node(
            "Floor", [self._node("Div", [reach, width], f"{values}.fit")], f"{values}.fitting"
        )
        most = self._constant("steps_of_gelu", np.array(_STEPS, np.float32))
        bounded = self._node("Min", [fitting, most], f"{values}.most")
        zeros = self._node("Max", [bounded, one], f"{values}.zero_steps")
        flat = self._node("Div", [below, zeros], f"{values}.scales")
        whole = self._node("Cast", [zeros], f"{values}.zeros", to=TensorProto.UINT8)
        quantised = self._node(
            "QuantizeLinear", [values, flat, whole], f"{values}.quantised", axis=0
        )
        column = self._whole("column", [-1, 1])
        return quantised, self._node("Reshape", [flat, column], f"{values}.scale")

    # --- the graph ---

    def _node(
        self, kind: str, inputs: Sequence[str], out: str, domain: str = "", **settings: object
    ) -> str:
        self._nodes.append(helper.make_node(kind, inputs, [out], out, domain=domain, **settings))
        return out

    def _floats(self, name: str) -> np.ndarray:
        """Return a matrix in 32 bits, shape ``(in, out)``."""
        weight = self._matrices[name]
        zero = np.float32(self._stored[f"{weight}_zero_point"])
        stored = self._stored[f"{weight}_quantized"].astype(np.float32)
        return (stored - zero) * self._stored[f"{weight}_scale"]

    def _weight(self, name: str) -> str:
        return self._constant(name, self._stored[name])

    def _whole(self, name: str, numbers: list[int] | range) -> str:
        return self._constant(name, np.array(numbers, np.int64))

    def _constant(self, name: str, value: np.ndarray) -> str:
        self._constants[name] = numpy_helper.from_array(value, name)
        return name


def _module(output: str) -> str:
    """Turn ``/bert/encoder/layer.0/output/dense/MatMul_output_0_...`` into the module's name."""
    path = output.strip("/").split("/")
    return ".".join(path[:-1]) or "classifier"


if __name__ == "__main__":
    main()
