"""The cross-encoder as a module that learns: all layers, the embeddings fixed."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from train_local_judge.base import N_LAYERS, N_OUTPUTS, WIDTH, Weights

__all__ = ["CrossEncoder"]

_INNER, _HEADS = 1536, 12
_EPSILON = 1e-12
_EMBEDDINGS = "bert.embeddings."


class _Layer(nn.Module):
    """One layer of BERT. Its attributes have the names of the stored weights."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        parts = {name: nn.Linear(WIDTH, WIDTH) for name in ("query", "key", "value")}
        self.attention = nn.ModuleDict({"self": nn.ModuleDict(parts), "output": _output(WIDTH)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(WIDTH, _INNER)})
        self.output = _output(_INNER)
        self._dropout = dropout

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Apply attention and the feed-forward part, each with a residual connection."""
        own = self.attention["self"]
        query, key, value = (_split(own[each](hidden)) for each in ("query", "key", "value"))
        if hidden.is_cuda:
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        else:  # the backward pass of the fused form takes four times as long there
            scores = (query / (WIDTH / _HEADS) ** 0.5) @ key.transpose(2, 3)
            mixed = functional.softmax(scores.masked_fill(~mask, -1e4), dim=-1) @ value
        hidden = self._added(self.attention["output"], mixed.transpose(1, 2).flatten(2), hidden)
        inner = functional.gelu(self.intermediate["dense"](hidden))
        return self._added(self.output, inner, hidden)

    def _added(self, part: nn.ModuleDict, new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
        new = functional.dropout(part["dense"](new), self._dropout, self.training)
        return part["LayerNorm"](new + old)


class CrossEncoder(nn.Module):
    """Reads word pieces of pairs and returns three logits for each."""

    def __init__(self, weights: Weights, dropout: float = 0.0) -> None:
        """Start from stored weights, as ``base.read`` gives them."""
        super().__init__()
        sizes = {
            each: len(weights[f"{_EMBEDDINGS}{each}_embeddings.weight"])
            for each in ("word", "position", "token_type")
        }
        self.embeddings = nn.ModuleDict(
            {f"{each}_embeddings": nn.Embedding(size, WIDTH) for each, size in sizes.items()}
        )
        for each in self.embeddings.values():
            each.requires_grad_(False)
        self.embeddings["LayerNorm"] = nn.LayerNorm(WIDTH, eps=_EPSILON)
        self.layers = nn.ModuleList(_Layer(dropout) for _ in range(N_LAYERS))
        self.pooler = nn.Linear(WIDTH, WIDTH)
        self.classifier = nn.Linear(WIDTH, N_OUTPUTS)
        self.load_state_dict({_own(name): torch.from_numpy(each) for name, each in weights.items()})

    def forward(
        self, ids: torch.Tensor, kinds: torch.Tensor, is_piece: torch.Tensor
    ) -> torch.Tensor:
        """Compute the logits, shape ``(batch, 3)``.

        Args:
            ids: Word pieces, shape ``(batch, length)``.
            kinds: 0 for the claim and 1 for the passage, shape ``(batch, length)``.
            is_piece: False if a shorter pair is filled up, shape ``(batch, length)``.
        """
        place = torch.arange(ids.shape[1], device=ids.device)
        named = zip(("word", "token_type", "position"), (ids, kinds, place[None]), strict=True)
        summed = sum(self.embeddings[f"{name}_embeddings"](each) for name, each in named)
        hidden = self.embeddings["LayerNorm"](summed)
        mask = is_piece[:, None, None, :]
        for layer in self.layers:
            hidden = layer(hidden, mask)
        return self.classifier(torch.tanh(self.pooler(hidden[:, 0])))

    def stored(self) -> Weights:
        """Return all weights by their stored names, in 32 bits."""
        return {
            _stored(name): each.detach().float().cpu().numpy().astype(np.float32)
            for name, each in self.state_dict().items()
        }


def _own(name: str) -> str:
    name = name.replace("bert.encoder.layer.", "layers.").replace("bert.pooler.dense", "pooler")
    return name.removeprefix("bert.")


def _stored(name: str) -> str:
    if name.startswith("classifier"):
        return name
    name = name.replace("layers.", "encoder.layer.").replace("pooler", "pooler.dense")
    return f"bert.{name}"


def _output(size: int) -> nn.ModuleDict:
    norm = nn.LayerNorm(WIDTH, eps=_EPSILON)
    return nn.ModuleDict({"dense": nn.Linear(size, WIDTH), "LayerNorm": norm})


def _split(hidden: torch.Tensor) -> torch.Tensor:
    return hidden.unflatten(2, (_HEADS, WIDTH // _HEADS)).transpose(1, 2)
