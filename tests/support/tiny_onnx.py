"""A cross-encoder of a few bytes: every word votes for labels, and the votes are added up.

It is encoded by hand, field by field of ONNX's protobuf schema: building it with the onnx package
would cost a dependency for one graph of two nodes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer, models, pre_tokenizers, processors

__all__ = ["write_cross_encoder"]

_FLOAT, _INT64 = 1, 7
_SPECIAL: Final = ("[UNK]", "[CLS]", "[SEP]")


def write_cross_encoder(
    folder: Path,
    votes: Mapping[str, Sequence[float]],
    labels: Sequence[str],
    *,
    inputs: Sequence[str] = ("attention_mask",),
) -> None:
    """Write ``model.onnx``, ``tokenizer.json`` and ``config.json``.

    Args:
        folder: Where to, which is made if need be.
        votes: For every word that counts, what it adds to the logit of each label.
        labels: The labels in the order of the logits.
        inputs: Inputs that the model takes beside the ids; it ignores them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = [*_SPECIAL, *votes]
    rows = [[0.0] * len(labels)] * len(_SPECIAL) + [list(row) for row in votes.values()]
    (folder / "model.onnx").write_bytes(_model(rows, inputs))
    _tokenizer(vocabulary).save(str(folder / "tokenizer.json"))
    names = {str(at): label for at, label in enumerate(labels)}
    (folder / "config.json").write_text(json.dumps({"id2label": names}), encoding="utf-8")


def _tokenizer(vocabulary: Sequence[str]) -> Tokenizer:
    ids = {word: at for at, word in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))  # noqa: S106 - no password
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return tokenizer


def _model(table: Sequence[Sequence[float]], inputs: Sequence[str]) -> bytes:
    width = len(table[0])
    values = struct.pack(f"<{len(table) * width}f", *(vote for row in table for vote in row))
    nodes = [
        _text(1, "table") + _text(1, "input_ids") + _text(2, "votes") + _text(4, "Gather"),
        _text(1, "votes") + _text(1, "axis") + _text(2, "logits") + _text(4, "ReduceSum")
        + _part(5, _text(1, "keepdims") + _number(3, 0) + _number(20, 2)),
    ]  # fmt: skip
    graph = b"".join(_part(1, node) for node in nodes) + _text(2, "votes")
    graph += _part(5, _tensor("table", (len(table), width), _FLOAT, values))
    graph += _part(5, _tensor("axis", (1,), _INT64, struct.pack("<q", 1)))
    for name in ("input_ids", *inputs):
        graph += _part(11, _value(name, _INT64, ("batch", "length")))
    graph += _part(12, _value("logits", _FLOAT, ("batch", width)))
    return _number(1, 8) + _part(7, graph) + _part(8, _number(2, 13))


def _tensor(name: str, shape: Sequence[int], kind: int, raw: bytes) -> bytes:
    dims = b"".join(_number(1, size) for size in shape)
    return dims + _number(2, kind) + _text(8, name) + _part(9, raw)


def _value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    dims = b"".join(
        _part(1, _number(1, size) if isinstance(size, int) else _text(2, size)) for size in shape
    )
    return _text(1, name) + _part(2, _part(1, _number(1, kind) + _part(2, dims)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _part(field, value.encode())


def _part(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
