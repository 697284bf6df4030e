r"""Fine-tunes the cross-encoder on pairs, on an accelerator if there is one.

    python -m train_local_judge.train --data FOLDER --base base.onnx --tokenizer tokenizer.json \\
        --out FOLDER --shares written=0.3 rules=0.15 made=0.15 conj_train=0.06 ... --minutes 4

``--data`` has a file ``human_NAME.jsonl`` for each set, as ``pack.py`` writes them. All pairs are
encoded first; batches hold pairs of similar length and a given number of word pieces. The rate
rises for a twentieth of the run and then falls to zero, by steps or by the clock. Writes
``log.jsonl``, the learning curve with the accuracy on ``--check NAME``, and ``weights.npz``, the
layers that learned, each matrix in 8 bits with a scale for each output; ``assembled.py`` puts them
back into the base.

Without an accelerator a run is ten times as fast if memory is kept between steps: preload jemalloc,
with ``MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional

from train_local_judge.base import Weights, load, read
from train_local_judge.network import CrossEncoder

__all__ = ["LABELS", "Encoded", "main", "packed", "unpacked"]

LONGEST: Final = 256
"""Maximum number of word pieces of a pair; the passage is cut to fit."""

LABELS: Final = ("E", "N", "C", "NE")
_WARM_UP: Final = 0.05
# Kernels are made and memory is taken for each shape that occurs: few lengths, few shapes.
_STEP: Final = 64


class Encoded(NamedTuple):
    """Pairs as word pieces."""

    ids: Sequence[Sequence[int]]
    kinds: Sequence[Sequence[int]]
    labels: Sequence[int]

    @classmethod
    def read(cls, path: Path, tokenizer: Tokenizer) -> Encoded:
        """Encodes the pairs of a file, with premise, claim and label in each line."""
        lines = map(json.loads, path.read_text(encoding="utf-8").strip().split("\n"))
        premises, claims, labels = zip(*(each[:3] for each in lines), strict=True)
        found = tokenizer.encode_batch(list(zip(claims, premises, strict=True)))
        ids, kinds = [each.ids for each in found], [each.type_ids for each in found]
        return cls(ids, kinds, [LABELS.index(each) for each in labels])


def main() -> None:
    """Train one model, and log every setting that is needed to repeat the run."""
    options = _options()
    torch.manual_seed(options.seed)
    torch.set_flush_denormal(True)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "log.jsonl").open("w", encoding="utf-8") as log:

        def note(entry: dict[str, object]) -> None:
            line = json.dumps(entry, default=str)
            print(line, flush=True)
            print(line, file=log, flush=True)

        note(dict(vars(options)))
        network = _learn(options, note)
    fixed = ("word_embeddings", "position_embeddings", "token_type_embeddings")
    weights = {n: w for n, w in network.stored().items() if not any(each in n for each in fixed)}
    np.savez(options.out / "weights.npz", **packed(weights))


def packed(weights: Weights) -> Weights:
    """Returns weights in 8 bits: each matrix with a scale for each output, vectors as they are."""
    found: Weights = {}
    for name, weight in weights.items():
        if weight.ndim == 1:
            found[name] = weight
            continue
        step = np.maximum(np.abs(weight).max(axis=1) / 127, 1e-9).astype(np.float32)
        found[name] = np.round(weight / step[:, None]).astype(np.int8)
        found[f"{name}.step"] = step
    return found


def unpacked(stored: Weights) -> Weights:
    """Returns the weights of ``packed`` as floats."""
    return {
        name: each * stored[f"{name}.step"][:, None] if each.ndim > 1 else each
        for name, each in stored.items()
        if not name.endswith(".step")
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fine-tune the cross-encoder of LocalJudge.")
    for name in ("data", "base", "tokenizer", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--shares", nargs="+", required=True, help="NAME=SHARE of the pairs")
    parser.add_argument("--check", nargs="*", default=[], help="sets to tell the accuracy of")
    parser.add_argument("--checks", type=int, default=10, help="how often the accuracy is told")
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--pieces", type=int, default=32_768, help="word pieces of a batch")
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--fixed", type=int, default=0, help="lower layers that do not learn")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--smoothing", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _learn(options: argparse.Namespace, note: Callable[[dict[str, object]], None]) -> CrossEncoder:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    tokenizer.enable_truncation(LONGEST, strategy="only_second")
    tokenizer.no_padding()
    shares = {n: float(s) for n, _, s in (each.partition("=") for each in options.shares)}
    files = {n: options.data / f"human_{n}.jsonl" for n in {*shares, *options.check}}
    sets = {name: Encoded.read(path, tokenizer) for name, path in sorted(files.items())}
    note({"pairs": {name: len(each.ids) for name, each in sets.items()}, "device": device})
    network = CrossEncoder(read(load(options.base)), options.dropout).to(device)
    for layer in network.layers[: options.fixed]:
        layer.requires_grad_(False)
    learning = [each for each in network.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=options.rate, weight_decay=0.01, fused=True)
    batches = _batches(sets, shares, options)
    began, step, n_pairs, losses = time.monotonic(), 0, 0, list[torch.Tensor]()
    due = 1 / options.checks
    network.train()
    while (done := (time.monotonic() - began) / 60 / options.minutes) < 1:
        rate = options.rate * min(done / _WARM_UP, (1 - done) / (1 - _WARM_UP))
        for group in optimizer.param_groups:
            group["lr"] = rate
        ids, kinds, is_piece, labels = (
            each.to(device, non_blocking=True) for each in next(batches)
        )
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = network(ids, kinds, is_piece)
        loss = _loss(logits.float(), labels, options.smoothing)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learning, 1.0)
        optimizer.step()
        losses.append(loss.detach())
        step, n_pairs = step + 1, n_pairs + len(labels)
        if done >= due:
            due += 1 / options.checks
            checked = {n: _accuracy(network, sets[n], device) for n in options.check}
            loss_now = float(torch.stack(losses[-100:]).mean())
            seconds = round(time.monotonic() - began, 1)
            note({"step": step, "pairs": n_pairs, "seconds": seconds, "loss": loss_now, **checked})
    note({"step": step, "pairs": n_pairs,
          **{n: _accuracy(network, sets[n], device) for n in options.check}})  # fmt: skip
    return network


def _loss(logits: torch.Tensor, labels: torch.Tensor, smoothing: float) -> torch.Tensor:
    """Compute the cross-entropy.

    For a pair that is only known to be not entailed, neutral and contradicted count as one label.
    """
    logs = functional.log_softmax(logits, dim=-1)
    either = torch.logsumexp(logs[:, 1:], dim=-1, keepdim=True)
    known = torch.cat([logs, either], dim=-1).gather(1, labels[:, None])
    return -(1 - smoothing) * known.mean() - smoothing * logs.mean()


Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def _batches(
    sets: dict[str, Encoded], shares: dict[str, float], options: argparse.Namespace
) -> Iterator[Batch]:
    """Yields batches without end; each set's pairs come in random order, all before any again."""
    chance = np.random.default_rng(options.seed)
    names, total = list(shares), sum(shares.values())
    orders: dict[str, list[int]] = {name: [] for name in names}

    def drawn() -> tuple[Encoded, int]:
        name = names[chance.choice(len(names), p=[shares[each] / total for each in names])]
        if not orders[name]:
            orders[name] = chance.permutation(len(sets[name].ids)).tolist()
        return sets[name], orders[name].pop()

    waiting: dict[int, list[tuple[Encoded, int]]] = defaultdict(list)
    while True:
        pair = drawn()
        length = -(-len(pair[0].ids[pair[1]]) // _STEP) * _STEP
        waiting[length].append(pair)
        if len(waiting[length]) >= options.pieces // length:
            yield _filled(waiting.pop(length))


def _filled(pairs: Sequence[tuple[Encoded, int]]) -> Batch:
    longest = -(-max(len(each.ids[at]) for each, at in pairs) // _STEP) * _STEP
    ids, kinds = (np.zeros((len(pairs), longest), np.int64) for _ in range(2))
    is_piece = np.zeros((len(pairs), longest), bool)
    for row, (each, at) in enumerate(pairs):
        length = len(each.ids[at])
        ids[row, :length], kinds[row, :length] = each.ids[at], each.kinds[at]
        is_piece[row, :length] = True
    labels = np.array([each.labels[at] for each, at in pairs])
    ids_, kinds_, is_piece_, labels_ = map(torch.from_numpy, (ids, kinds, is_piece, labels))
    return ids_, kinds_, is_piece_, labels_


@torch.no_grad()
def _accuracy(network: CrossEncoder, pairs: Encoded, device: str) -> float:
    """Returns the share of pairs told right as entailed or not."""
    network.eval()
    order = sorted(range(len(pairs.ids)), key=lambda at: len(pairs.ids[at]))
    right = 0
    for start in range(0, len(order), 32):
        part = [(pairs, at) for at in order[start : start + 32]]
        ids, kinds, is_piece, labels = (each.to(device) for each in _filled(part))
        with torch.autocast(device, dtype=torch.bfloat16):
            best = network(ids, kinds, is_piece).argmax(-1)
        right += int(((best == 0) == (labels == 0)).sum())
    network.train()
    return round(right / len(order), 4)


if __name__ == "__main__":
    main()
