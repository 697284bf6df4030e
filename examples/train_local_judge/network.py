"""The upper layers of the cross-encoder, in the form in which they are trained.

There is no dropout: hardly a pair is seen twice, and on a CPU drawing the noise costs a quarter of
a step.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from train_local_judge.base import FIRST_LEARNING, Weights

__all__ = ["N_LAYERS", "N_OUTPUTS", "Upper"]

N_LAYERS, _WIDTH, _INNER, _HEADS = 12, 384, 1536, 12
_HEAD_ROOT = (_WIDTH / _HEADS) ** 0.5
_EPSILON = 1e-12
_MASKED = -1e4

N_OUTPUTS = 4
"""Logits: entailed, neutral, contradicted, and the relevance on which the base was trained."""


class _Layer(nn.Module):
    """One layer of BERT. Its attributes have the names of the stored weights."""

    def __init__(self) -> None:
        super().__init__()
        parts = {"query": nn.Linear(_WIDTH, _WIDTH), "key": nn.Linear(_WIDTH, _WIDTH),
                 "value": nn.Linear(_WIDTH, _WIDTH)}  # fmt: skip
        self.attention = nn.ModuleDict({"self": nn.ModuleDict(parts), "output": _output(_WIDTH)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(_WIDTH, _INNER)})
        self.output = _output(_INNER)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Apply attention and the feed-forward part, each with a residual connection."""
        own = self.attention["self"]
        query, key, value = (_split(own[each](hidden)) for each in ("query", "key", "value"))
        # Written out: on a CPU the backward pass of PyTorch's fused attention takes four times
        # as long, and with it a whole step half as long again (one thread, 16 bits, 128 pieces).
        scores = (query / _HEAD_ROOT) @ key.transpose(2, 3).contiguous()
        shares = functional.softmax(scores + mask.to(scores.dtype), dim=-1)
        mixed = (shares @ value).transpose(1, 2).flatten(2)
        hidden = self._added(self.attention["output"], mixed, hidden)
        inner = functional.gelu(self.intermediate["dense"](hidden))
        return self._added(self.output, inner, hidden)

    def _added(self, part: nn.ModuleDict, new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
        return part["LayerNorm"](part["dense"](new) + old)


class Upper(nn.Module):
    """The trained layers, pooler and classifier, which read the output of the frozen layers."""

    def __init__(self, weights: Weights) -> None:
        """Start from stored weights. The single output of the base becomes the last of four."""
        super().__init__()
        self.layers = nn.ModuleList(_Layer() for _ in range(FIRST_LEARNING, N_LAYERS))
        self.pooler = nn.Linear(_WIDTH, _WIDTH)
        self.classifier = nn.Linear(_WIDTH, N_OUTPUTS)
        own = {self._own(name): torch.from_numpy(weight) for name, weight in weights.items()}
        if len(own["classifier.bias"]) == 1:
            for part in ("weight", "bias"):
                fresh = getattr(self.classifier, part).detach()
                own[f"classifier.{part}"] = torch.cat(
                    [fresh[:-1] * (part == "weight"), own[f"classifier.{part}"]]
                )
        self.load_state_dict(own)

    def forward(self, hidden: torch.Tensor, is_token: torch.Tensor) -> torch.Tensor:
        """Compute the logits, shape ``(batch, 4)``.

        Args:
            hidden: From the lower layers, shape ``(batch, length, 384)``.
            is_token: False where a shorter pair is filled up, shape ``(batch, length)``.
        """
        mask = torch.zeros(is_token.shape).masked_fill(~is_token, _MASKED)[:, None, None, :]
        for layer in self.layers:
            hidden = layer(hidden, mask)
        return self.classifier(torch.tanh(self.pooler(hidden[:, 0])))

    def stored(self) -> Weights:
        """Return the weights by their stored names."""
        found: Weights = {}
        for name, weight in self.state_dict().items():
            found[self._stored(name)] = weight.detach().float().numpy().astype(np.float32)
        return found

    @staticmethod
    def _own(name: str) -> str:
        if name.startswith("bert.encoder.layer."):
            number, _, rest = name.removeprefix("bert.encoder.layer.").partition(".")
            return f"layers.{int(number) - FIRST_LEARNING}.{rest}"
        return name.replace("bert.pooler.dense", "pooler")

    @staticmethod
    def _stored(name: str) -> str:
        if name.startswith("layers."):
            number, _, rest = name.removeprefix("layers.").partition(".")
            return f"bert.encoder.layer.{int(number) + FIRST_LEARNING}.{rest}"
        return name.replace("pooler", "bert.pooler.dense")


def _output(size: int) -> nn.ModuleDict:
    norm = nn.LayerNorm(_WIDTH, eps=_EPSILON)
    return nn.ModuleDict({"dense": nn.Linear(size, _WIDTH), "LayerNorm": norm})


def _split(hidden: torch.Tensor) -> torch.Tensor:
    return hidden.unflatten(2, (_HEADS, _WIDTH // _HEADS)).transpose(1, 2).contiguous()
