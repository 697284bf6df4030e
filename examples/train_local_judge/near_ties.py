r"""Has the network read a pair a second time, in 32 bits, where its two best labels are close.

    python -m train_local_judge.near_ties --model fused.onnx --out local.onnx

What is rounded to 8 bits moves a logit by .02 on average. That changes a label only where two
logits are about equal. So the network reads every pair in 8 bits, and the few near ties among them
once more by the same weights in 32 bits, all within one run of one model:

- The weights are stored once. The second reading takes them from 8 bits to 32, one matrix at a
  time, and lets go of each after its product.
- It computes all word pieces to the end, where the first reading has the last layer for the first
  piece alone: a product of one row is rounded otherwise than one of many, and the logits of a pair
  would depend on how many other pairs of its batch are near ties.
- Whether a pair is read again follows from its own logits alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from train_local_judge.base import N_OUTPUTS

__all__ = ["NEAR", "main", "with_near_ties"]

NEAR: Final = 0.1
"""Two logits that differ by less are a near tie."""

_BELOW_ZERO: Final = 0.17
_AGAIN: Final = "again"


def main() -> None:
    """Write the model."""
    parser = argparse.ArgumentParser(description="A second reading of near ties, in 32 bits.")
    for name in ("model", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--near", type=float, default=NEAR, help="largest gap of a near tie")
    options = parser.parse_args()
    onnx.save(with_near_ties(onnx.load(str(options.model)), options.near), str(options.out))


def with_near_ties(model: onnx.ModelProto, near: float = NEAR) -> onnx.ModelProto:
    """Add the second reading to a model.

    Args:
        model: The form that ``fused.py`` builds, which reads a pair once.
        near: Two logits that differ by less are a near tie.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    _rename_output(graph, "logits", "quick")
    graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in _constants(near).items()
    )
    again = helper.make_graph(
        [*_gathered(), *_in_32_bits(model.graph), *_first_of_each(), *_replaced()],
        _AGAIN,
        [],
        [helper.make_tensor_value_info("again.logits", TensorProto.FLOAT, None)],
    )
    kept = helper.make_graph(
        [helper.make_node("Identity", ["quick"], ["kept.logits"])],
        "kept",
        [],
        [helper.make_tensor_value_info("kept.logits", TensorProto.FLOAT, None)],
    )
    # Who gives a value for this input has more or fewer pairs read again; nobody has to.
    graph.input.append(helper.make_tensor_value_info("near", TensorProto.FLOAT, []))
    graph.node.extend(_near_ties())
    graph.node.append(
        helper.make_node(
            "If", ["has_near"], ["logits"], "near_ties", then_branch=again, else_branch=kept
        )
    )
    onnx.checker.check_model(changed)
    return changed


def _constants(near: float) -> dict[str, np.ndarray]:
    return {
        "near": np.array(near, np.float32),
        "below_gelu": np.array(_BELOW_ZERO, np.float32),
        "none": np.array(0, np.int64),
        "from_first": np.array([0], np.int64),
        "to_labels": np.array([N_OUTPUTS], np.int64),
        "labels": np.array([1], np.int64),
        "best_two": np.array([2], np.int64),
        "signs": np.array([[1], [-1]], np.float32),
        "outputs": np.array([N_OUTPUTS], np.int64),
        "flat": np.array([-1], np.int64),
    }


def _near_ties() -> list[onnx.NodeProto]:
    """The nodes that find the pairs whose two largest logits are close."""
    node = helper.make_node
    return [
        node("Slice", ["quick", "from_first", "to_labels", "labels"], ["of_labels"]),
        node("TopK", ["of_labels", "best_two"], ["two", "which"]),
        node("MatMul", ["two", "signs"], ["gap"]),
        node("Reshape", ["gap", "flat"], ["gaps"]),
        node("Less", ["gaps", "near"], ["is_near"]),
        node("NonZero", ["is_near"], ["found"]),
        node("Reshape", ["found", "flat"], ["pairs"]),
        node("Size", ["pairs"], ["n_near"]),
        node("Greater", ["n_near", "none"], ["has_near"]),
    ]


def _gathered() -> list[onnx.NodeProto]:
    return [
        helper.make_node("Gather", [name, "pairs"], [f"{_AGAIN}.{name}"])
        for name in ("input_ids", "token_type_ids")
    ]


def _in_32_bits(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The nodes of the network again, whose products are of floats."""
    makers = {output: node for node in graph.node for output in node.output}
    constants = {each.name for each in graph.initializer}
    nodes = [new for node in graph.node for new in _one_in_32_bits(node, makers)]
    needed, kept = {"logits"}, list[onnx.NodeProto]()
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(node.input)
            kept.append(node)
    found = [_renamed(node, constants) for node in reversed(kept)]
    found[-1].output[0] = f"{_AGAIN}.logits_of_pieces"
    return found


def _one_in_32_bits(
    node: onnx.NodeProto, makers: dict[str, onnx.NodeProto]
) -> Iterator[onnx.NodeProto]:
    name = node.name.removesuffix(".product")
    if node.op_type == "MatMulIntegerToFloat":
        values = makers[node.input[0]].input[0]
        if values.endswith(".gelu"):  # the bias takes off what is added here
            yield helper.make_node("Add", [values, "below_gelu"], [f"{name}.raised"])
            values = f"{name}.raised"
        _, weight, _, scale, _, zero, *_ = node.input
        # A scale that waits for the values has each matrix unpacked right before its product.
        # With one that is known, onnxruntime would unpack all at first, or when it loads the model.
        yield helper.make_node("Size", [values], [f"{name}.size"])
        yield helper.make_node("Cast", [f"{name}.size"], [f"{name}.some"], to=TensorProto.FLOAT)
        yield helper.make_node("Sign", [f"{name}.some"], [f"{name}.one"])
        yield helper.make_node("Mul", [scale, f"{name}.one"], [f"{name}.scale"])
        stored = [weight, f"{name}.scale", zero]
        yield helper.make_node("DequantizeLinear", stored, [f"{name}.weight"])
        yield helper.make_node("MatMul", [values, f"{name}.weight"], [f"{name}.scaled"])
    elif node.name.endswith(".scaled"):
        return
    elif node.op_type == "Gather" and node.input[1] == "first":  # all word pieces stay
        rows = makers[node.input[0]].input[0]
        yield helper.make_node("Identity", [rows], node.output)
    elif node.op_type == "Reshape" and node.input[1] == "one_a_pair":
        yield helper.make_node("Reshape", [node.input[0], "cube"], node.output)
    else:
        yield node


def _renamed(node: onnx.NodeProto, constants: set[str]) -> onnx.NodeProto:
    """A node of the second reading: names of a branch may not be those of the graph around it."""
    known = constants | {*_constants(0)}
    new = onnx.NodeProto()
    new.CopyFrom(node)
    new.name = f"{_AGAIN}.{node.output[0]}"
    for names in (new.input, new.output):
        renamed = [each if each in known else f"{_AGAIN}.{each}" for each in names]
        del names[:]
        names.extend(renamed)
    return new


def _first_of_each() -> list[onnx.NodeProto]:
    """The nodes that take the logits of the first word piece of each pair."""
    node = helper.make_node
    return [
        node("Concat", [f"{_AGAIN}.shape", "outputs"], [f"{_AGAIN}.pieces"], axis=0),
        node("Reshape", [f"{_AGAIN}.logits_of_pieces", f"{_AGAIN}.pieces"], [f"{_AGAIN}.cubed"]),
        node("Gather", [f"{_AGAIN}.cubed", "none"], [f"{_AGAIN}.exact"], axis=1),
    ]


def _replaced() -> list[onnx.NodeProto]:
    """The nodes that put the new logits into the places of those in 8 bits."""
    node = helper.make_node
    return [
        node("Unsqueeze", ["pairs", "labels"], [f"{_AGAIN}.at"]),
        node("ScatterND", ["quick", f"{_AGAIN}.at", f"{_AGAIN}.exact"], [f"{_AGAIN}.logits"]),
    ]


def _rename_output(graph: onnx.GraphProto, old: str, new: str) -> None:
    for node in graph.node:
        outputs: Sequence[str] = [new if each == old else each for each in node.output]
        del node.output[:]
        node.output.extend(outputs)


if __name__ == "__main__":
    main()
