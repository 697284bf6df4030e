"""The bundled weights as the CrossEncoder of sentence-transformers runs them: 32 bits, PyTorch."""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, Final

from claimspan.judges.local.cross_encoder import TextPair
from claimspan.judges.local.models import bundled_files

__all__ = ["is_installed", "peer"]

_NEEDED: Final = ("sentence_transformers", "torch", "onnx")
# The bundled form raises what GELU gives by so much.
_BELOW_ZERO: Final = 0.17


def is_installed() -> bool:
    """Whether the peer can run here."""
    return all(importlib.util.find_spec(name) for name in _NEEDED)


def peer() -> Callable[[Sequence[TextPair]], list[list[float]]]:
    """The peer on one thread, with the batch size that is its default."""
    load: Any = importlib.import_module  # none of these is among the development tools
    torch, transformers = load("torch"), load("transformers")
    torch.set_num_threads(1)
    config = transformers.BertConfig(
        hidden_size=384, num_hidden_layers=12, num_attention_heads=12, intermediate_size=1536,
        num_labels=4,
    )  # fmt: skip
    network = transformers.BertForSequenceClassification(config)
    network.load_state_dict({name: torch.from_numpy(each) for name, each in _weights().items()})
    names = {f"{each.lower()}_token": f"[{each}]" for each in ("CLS", "SEP", "PAD", "UNK", "MASK")}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(bundled_files().tokenizer), model_max_length=512,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"], **names,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        model = load("sentence_transformers").CrossEncoder(folder, device="cpu")

    def logits(pairs: Sequence[TextPair]) -> list[list[float]]:
        found: list[list[float]] = model.predict(list(pairs), show_progress_bar=False).tolist()
        return found

    return logits


def _weights() -> dict[str, Any]:
    """The parameters in 32 bits; what ``fused.py`` has moved between biases changes no result."""
    load: Any = importlib.import_module
    onnx, numpy = load("onnx"), load("numpy")
    graph = onnx.load(str(bundled_files().model)).graph
    stored = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    found = {
        name: each for name, each in stored.items() if name.endswith((".bias", "LayerNorm.weight"))
    }
    for node in graph.node:
        if node.op_type == "MatMulIntegerToFloat":
            name = node.name.removesuffix(".product")
            matrix = stored[node.input[1]].astype(numpy.float32) * stored[node.input[3]]
            found[f"{name}.weight"] = numpy.ascontiguousarray(matrix.T)
            found.setdefault(f"{name}.bias", numpy.zeros(matrix.shape[1], numpy.float32))
            if name.endswith(".output.dense") and "attention" not in name:
                found[f"{name}.bias"] = found[f"{name}.bias"] + _BELOW_ZERO * matrix.sum(0)
    for part in ("word", "token_type", "position"):
        name = f"bert.embeddings.{part}_embeddings.weight"
        whole = stored[f"{name}_quantized"].astype(numpy.float32) - stored[f"{name}_zero_point"]
        found[name] = whole * stored[f"{name}_scale"]
    return {name: numpy.array(each, numpy.float32) for name, each in found.items()}
