r"""Fine-tunes the upper layers of the cross-encoder on generated pairs and on pairs by people.

    python -m train_local_judge.train --data FOLDER --base model.onnx --tokenizer tokenizer.json \\
        --out FOLDER --human conj_train=0.15 infotabs_train=0.2 --steps 2000 --seed 1

Pairs are made while it learns. One process makes them and runs the lowest layers in 8 bits, another
one learns: two cores are enough. Sets named by ``--late`` join for the last quarter: until then,
what is measured on them is measured unseen. Writes ``log.jsonl`` and, a few times on the way,
``STEP.onnx``, the whole model in 8 bits. ``--minutes`` in place of ``--steps`` stops by the clock:
the learning rate falls with the time that is left, so that a repetition needs the number of steps
from the log.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from multiprocessing import Value
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from random import Random
from typing import Final, TextIO, cast

import numpy as np
import onnx
import onnxruntime
import torch
from tokenizers import Encoding, Tokenizer
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from train_local_judge.base import load, lower_part, read_upper, write_upper
from train_local_judge.falsehoods import Falsifier
from train_local_judge.lexicon import Lexicon
from train_local_judge.network import Upper
from train_local_judge.pairs import Pair, PairMaker
from train_local_judge.rewrites import faithful

__all__ = ["main"]

LONGEST: Final = 256
"""Maximum number of tokens of a pair; the premise is truncated to fit."""

LABELS: Final = ("E", "N", "C", "NE")
_POOL: Final = 1024
# Kernels are made for each length that occurs: few lengths, few kernels.
_STEP: Final = 16
_WARM_UP: Final = 0.06
# Keeps the base's sense of relevance, on the scale of its logits (-11 to 11). What the base thinks
# costs a pass through all of it, so that only one batch in five is asked for it.
_RELEVANCE_WEIGHT: Final = 0.05
_RELEVANCE_EVERY: Final = 5

Batch = dict[str, torch.Tensor]


def main() -> None:
    """Train one model, and log every setting that is needed to repeat the run."""
    options = _options()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    start = load(options.start or options.base)
    network = Upper(read_upper(start))
    with (options.out / "log.jsonl").open("w", encoding="utf-8") as log:
        _note(log, {each: str(value) for each, value in vars(options).items()})
        for entry in _learn(network, options):
            _note(log, entry)
            if entry.get("save"):
                onnx.save(
                    write_upper(start, network.stored()), options.out / f"{entry['step']}.onnx"
                )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fine-tune the cross-encoder of LocalJudge.")
    for name in ("data", "base", "tokenizer", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="weights to go on from, in place of the base's")
    parser.add_argument("--human", nargs="*", default=[], help="NAME=SHARE of the pairs")
    parser.add_argument("--late", nargs="*", default=[], help="the same, from --late-from on")
    parser.add_argument("--late-from", type=float, default=0.75, help="share of the run")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--minutes", type=float, default=0.0, help="stop by the clock instead")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--saves", type=int, default=5)
    return parser.parse_args()


# Data ----------------------------------------------------------------------------------------


class Batches(IterableDataset[Batch]):
    """Yields batches of pairs of similar length, already passed through the frozen layers."""

    def __init__(self, options: argparse.Namespace, is_late: Synchronized[int]) -> None:
        """Store the paths of the data; each worker process reads the files itself.

        Args:
            options: Where the data is, and which share of each set.
            is_late: Set from outside once the late sets may join.
        """
        self._options = options
        self._is_late = is_late

    def __iter__(self) -> Iterator[Batch]:
        """Make, encode and sort pairs, split them into batches, and run the frozen layers."""
        worker = get_worker_info()
        seed = self._options.seed * 1000 + (worker.id if worker else 0)
        chance = Random(seed)  # noqa: S311 - training data, no secret
        tokenizer = Tokenizer.from_file(str(self._options.tokenizer))
        tokenizer.enable_truncation(LONGEST, strategy="only_second")
        tokenizer.no_padding()
        base = load(self._options.base)
        start = load(self._options.start or self._options.base)
        lower, whole = _session(lower_part(start)), _session(base.SerializeToString())
        pairs = _mixed(self._options, seed, chance, self._is_late)
        while True:
            pool = list(islice(pairs, _POOL))
            encoded = tokenizer.encode_batch([(pair.claim, pair.premise) for pair in pool])
            order = sorted(range(len(pool)), key=lambda at: len(encoded[at].ids))
            size = self._options.batch
            batches = [order[at : at + size] for at in range(0, len(order), size)]
            chance.shuffle(batches)
            for number, batch in enumerate(batches):
                labels = torch.tensor([LABELS.index(pool[at].label) for at in batch])
                shown = _filled([encoded[at] for at in batch])
                below = {
                    "hidden": torch.from_numpy(lower.run(None, shown)[0]),
                    "is_token": torch.from_numpy(shown["attention_mask"]).bool(),
                    "labels": labels,
                }
                if number % _RELEVANCE_EVERY == 0:
                    below["relevance"] = torch.from_numpy(whole.run(None, shown)[0][:, 0])
                yield below


def _session(model: bytes) -> onnxruntime.InferenceSession:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])


def _filled(encoded: Sequence[Encoding]) -> dict[str, np.ndarray]:
    longest = -(-max(len(each.ids) for each in encoded) // _STEP) * _STEP
    names = ("input_ids", "token_type_ids", "attention_mask")
    filled = {name: np.zeros((len(encoded), longest), np.int64) for name in names}
    for row, each in enumerate(encoded):
        filled["input_ids"][row, : len(each.ids)] = each.ids
        filled["token_type_ids"][row, : len(each.ids)] = each.type_ids
        filled["attention_mask"][row, : len(each.ids)] = 1
    return filled


def _mixed(
    options: argparse.Namespace, seed: int, chance: Random, is_late: Synchronized[int]
) -> Iterator[Pair]:
    early, late = _shares(options.human), _shares(options.human + options.late)
    sets = {name: _pairs(options.data / f"human_{name}.jsonl") for name in late}
    made = _maker(options.data).pairs(seed)
    while True:
        shares = late if is_late.value else early
        names = [*shares, ""]
        name = chance.choices(names, [*shares.values(), 1 - sum(shares.values())])[0]
        yield chance.choice(sets[name]) if name else next(made)


def _shares(written: Sequence[str]) -> dict[str, float]:
    return {name: float(share) for name, _, share in (each.partition("=") for each in written)}


def _maker(folder: Path) -> PairMaker:
    lexicon = Lexicon(folder / "wordnet")
    wiki, manuals = (_lines(folder / f"{name}.jsonl") for name in ("wiki", "manuals"))
    splits = [(whole, first, second) for whole, first, second in _lines(folder / "splits.jsonl")]
    summaries = [(document, claim) for document, claim in _lines(folder / "summaries.jsonl")]
    single = sorted({pair.premise for pair in _pairs(folder / "human_conj_train.jsonl")})
    documents = [*wiki, *wiki, *wiki, *manuals, *([each] for each in single)]
    falsify = Falsifier(lexicon, [*wiki, *([each[0]] for each in splits)])
    return PairMaker(documents, splits, summaries, faithful(lexicon), falsify)


def _pairs(path: Path) -> list[Pair]:
    return [Pair(*each) for each in _lines(path)]


def _lines(path: Path) -> list[list[str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").strip().split("\n")]


# Learning ------------------------------------------------------------------------------------


def _learn(network: Upper, options: argparse.Namespace) -> Iterator[dict[str, float]]:
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=options.rate, weight_decay=0.01, fused=True
    )
    is_late = cast("Synchronized[int]", Value("i", 0))
    loader = DataLoader(
        Batches(options, is_late), batch_size=None, num_workers=1, prefetch_factor=4
    )
    began, losses, saved, step = time.monotonic(), [], 0, 0
    network.train()
    for step, batch in enumerate(loader, 1):
        seconds = time.monotonic() - began
        done = seconds / 60 / options.minutes if options.minutes else step / options.steps
        is_late.value = done >= options.late_from
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(done / _WARM_UP, max(1 - done, 0) / (1 - _WARM_UP))
        losses.append(_step(network, optimizer, batch))
        is_due = done >= (saved + 1) / options.saves
        if step % 50 == 0 or is_due:
            yield {"step": step, "loss": float(np.mean(losses[-50:])), "seconds": seconds,
                   "pairs": step * options.batch, "save": is_due}  # fmt: skip
        saved += is_due
        if done >= 1:
            return


def _step(network: Upper, optimizer: torch.optim.Optimizer, batch: Batch) -> float:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = network(batch["hidden"], batch["is_token"]).float()
    loss = _loss(logits, batch["labels"], batch.get("relevance"))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
    return float(loss.detach())


def _loss(
    logits: torch.Tensor, labels: torch.Tensor, relevance: torch.Tensor | None
) -> torch.Tensor:
    """Compute the cross-entropy, plus a term that keeps the relevance of the base model.

    For a pair that is only known to be not entailed, neutral and contradicted count as one label.
    """
    logs = functional.log_softmax(logits[:, :3], dim=-1)
    either = torch.logsumexp(logs[:, 1:], dim=-1, keepdim=True)
    known = torch.cat([logs, either], dim=-1).gather(1, labels[:, None])
    if relevance is None:
        return -known.mean()
    return -known.mean() + _RELEVANCE_WEIGHT * functional.mse_loss(logits[:, 3], relevance)


def _note(log: TextIO, entry: dict[str, str] | dict[str, float]) -> None:
    line = json.dumps(entry)
    print(line, flush=True)
    print(line, file=log, flush=True)


if __name__ == "__main__":
    main()
