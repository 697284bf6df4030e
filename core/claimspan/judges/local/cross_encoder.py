"""Runs a cross-encoder in ONNX format with onnxruntime: text pairs in, logits out."""

from __future__ import annotations

import hashlib
import struct
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from claimspan.errors import ConfigError, MissingExtraError
from claimspan.judges.local.background import NATIVE_CODE, Stop, never
from claimspan.text.encodable import encodable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Integers = NDArray[np.int64]

__all__ = [
    "KNOWN_BYTES",
    "CrossEncoder",
    "KnownLogits",
    "ModelFiles",
    "PairCounts",
    "PairLogits",
    "TextPair",
]


# --- known pairs ----------------------------------------------------------------------------------

# Chunks come back with every question about the same matter, and claims with every answer that
# repeats them. The logits of a pair depend on the model and on the two texts alone, so what was
# computed once holds for as long as the model is loaded.

KNOWN_BYTES: Final = 8 * 2**20
"""Memory for logits: some 28,000 pairs, which is about 700 records of ten chunks."""

# A key and a value of bytes, with a link of the ordered dictionary (CPython 3.11, 64 bits).
_ENTRY_BYTES: Final = 300


class PairLogits(NamedTuple):
    """What a cross-encoder says of one pair."""

    logits: list[float]
    """One number for each output."""

    cut: bool
    """Whether the pair was longer than the model reads, so that the longer text was cut."""


class PairCounts(NamedTuple):
    """How many pairs of a claim and a reference a judge has had so far."""

    asked: int
    """Pairs that a verdict was asked for."""

    read: int
    """Pairs that words left open, so that the model's logits were needed."""

    run: int
    """Pairs that the model has computed; the logits of the others were known."""


class KnownLogits:
    """The logits of the pairs that were read last, by a digest of their texts.

    It holds no text. Threads may share it.
    """

    def __init__(self, max_bytes: int = KNOWN_BYTES) -> None:
        """Remembers nothing yet, and in ``max_bytes`` of memory what was asked for last."""
        self._max_entries = max_bytes // _ENTRY_BYTES
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, bytes] = OrderedDict()

    def get(self, pair: tuple[str, str]) -> PairLogits | None:
        """Returns the logits of a pair; None if it was not read, or is forgotten."""
        key = _digest(pair)
        with self._lock:
            packed = self._known.get(key)
            if packed is None:
                return None
            self._known.move_to_end(key)
        cut, *logits = struct.unpack(f"<{len(packed) // 4}f", packed)
        return PairLogits(logits, bool(cut))

    def put(self, pair: tuple[str, str], found: PairLogits) -> None:
        """Remembers the logits of a pair, which the model computes in 32 bits."""
        if not self._max_entries:
            return
        values = (found.cut, *found.logits)
        key, packed = _digest(pair), struct.pack(f"<{len(values)}f", *values)
        with self._lock:
            self._known[key] = packed
            if len(self._known) > self._max_entries:
                self._known.popitem(last=False)

    def __len__(self) -> int:
        return len(self._known)


def _digest(pair: tuple[str, str]) -> bytes:
    first, second = (text.encode("utf-8", "surrogatepass") for text in pair)
    # With the length of the first text: no two pairs are one sequence of bytes.
    return hashlib.blake2b(b"%d:" % len(first) + first + second, digest_size=16).digest()


# --- the model ------------------------------------------------------------------------------------

TextPair = tuple[str, str]
"""First and second text, in the order that the model was trained with."""

# Word pieces of a pair: the longest input of the usual encoders.
_MAX_PIECES: Final = 512
_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})
# Word pieces of a batch, with padding: with more a record is no faster, and takes more memory
# (tests/benchmarks/local_speed.py, one core).
_BATCH_PIECES: Final = 384
_REMEDY: Final = "install claimspan-local-weights again"


class ModelFiles(NamedTuple):
    """The files of a cross-encoder."""

    model: Path
    """The network, in ONNX format."""

    tokenizer: Path
    """Vocabulary and settings of the tokenizer: ``tokenizer.json``."""

    sha256: Mapping[str, str] = {}
    """Expected SHA-256 by file name; a file that is not named here is not checked."""


class _Encoding(Protocol):
    ids: list[int]
    type_ids: list[int]
    overflowing: list[_Encoding]


class _Tokenizer(Protocol):
    def encode(self, sequence: str, pair: str) -> _Encoding: ...
    def enable_truncation(self, max_length: int, *, strategy: str) -> None: ...
    def no_padding(self) -> None: ...


class _Input(Protocol):
    name: str


class _SessionOptions(Protocol):
    intra_op_num_threads: int
    inter_op_num_threads: int
    log_severity_level: int
    enable_cpu_mem_arena: bool

    def add_session_config_entry(self, key: str, value: str) -> None: ...


class _Runtime(Protocol):
    """The part of onnxruntime that is used; the package has no types."""

    def SessionOptions(self) -> _SessionOptions: ...  # noqa: N802 - onnxruntime's name
    def InferenceSession(  # noqa: N802 - onnxruntime's name
        self, path: str, settings: _SessionOptions, *, providers: Sequence[str]
    ) -> _Session: ...


class _Session(Protocol):
    def run(self, names: None, inputs: Mapping[str, Integers]) -> list[Floats]: ...
    def get_inputs(self) -> list[_Input]: ...


class CrossEncoder:
    """Computes the logits of text pairs on the CPU."""

    def __init__(
        self, files: ModelFiles, *, threads: int = 1, known_bytes: int = KNOWN_BYTES
    ) -> None:
        """Loads the model; ``known_bytes`` are the memory for the logits of pairs of before.

        Raises:
            MissingExtraError: onnxruntime or tokenizers is not installed.
            ConfigError: A file is missing, has another digest than the published one, or the model
                wants an input that is none of a text pair's.
        """
        for path in (files.model, files.tokenizer):
            _verify(path, files.sha256.get(path.name))
        with NATIVE_CODE.entered():
            self._tokenizer = _load_tokenizer(files.tokenizer)
            # The longer text of a pair is cut: a claim may be a page of code.
            self._tokenizer.enable_truncation(_MAX_PIECES, strategy="longest_first")
            self._tokenizer.no_padding()
            self._session = _load_session(files.model, threads)
        self._known = KnownLogits(known_bytes)
        self.n_read = 0
        """Pairs that were asked for."""
        self.n_run = 0
        """Pairs that the model has computed; the others were equal to one of them."""
        self._inputs = [each.name for each in self._session.get_inputs()]
        if unknown := set(self._inputs) - _INPUTS:
            raise ConfigError(
                f"the model wants the inputs {sorted(unknown)}: use a text classifier, whose "
                f"inputs are among {sorted(_INPUTS)}"
            )

    def logits(self, pairs: Sequence[TextPair]) -> list[list[float]]:
        """The logits of text pairs alone, shape ``(n_pairs, n_outputs)``."""
        return [each.logits for each in self.read(pairs)]

    def read(self, pairs: Sequence[TextPair], stop: Stop = never) -> list[PairLogits]:
        """Computes the logits of text pairs.

        Equal pairs are computed once, and not again while they are known. Pairs of similar length
        share a batch, or pairs of one length if the model has no mask. A pair that is longer than
        512 word pieces is cut where its longer text ends.

        ``stop`` is called before each pair and each batch; what it raises ends the call.
        """
        found = {pair: self._known.get(pair) for pair in pairs}
        self.n_read += len(pairs)
        found |= self._computed([pair for pair, each in found.items() if each is None], stop)
        return [each for pair in pairs if (each := found[pair])]

    def _computed(self, pairs: Sequence[TextPair], stop: Stop) -> dict[TextPair, PairLogits]:
        encoded = [self._encode(pair, stop) for pair in pairs]
        computed: dict[TextPair, PairLogits] = {}
        lengths = [len(each.ids) for each in encoded]
        for batch in _batches(lengths, can_pad="attention_mask" in self._inputs):
            stop()
            rows = self._run([encoded[i] for i in batch])
            self.n_run += len(batch)
            for i, row in zip(batch, rows, strict=True):
                computed[pairs[i]] = PairLogits(row, bool(encoded[i].overflowing))
                self._known.put(pairs[i], computed[pairs[i]])
        return computed

    def _encode(self, pair: TextPair, stop: Stop) -> _Encoding:
        stop()
        # One by one: many at once would go to threads of the tokenizer's own, on all cores, and a
        # forked child would wait for threads that only its parent has.
        with NATIVE_CODE.entered():
            return self._tokenizer.encode(*map(encodable, pair))  # no half of a surrogate pair

    def _run(self, batch: Sequence[_Encoding]) -> list[list[float]]:
        import numpy as np

        longest = max(len(each.ids) for each in batch)
        inputs = {name: np.zeros((len(batch), longest), np.int64) for name in self._inputs}
        for row, each in enumerate(batch):
            size = len(each.ids)
            values: dict[str, Sequence[int]] = {
                "input_ids": each.ids,
                "attention_mask": [1] * size,
                "token_type_ids": each.type_ids,
                "position_ids": range(size),
            }
            for name in self._inputs:
                inputs[name][row, :size] = values[name]
        with NATIVE_CODE.entered():
            return cast("list[list[float]]", self._session.run(None, inputs)[0].tolist())


def _batches(lengths: Sequence[int], *, can_pad: bool) -> Iterator[list[int]]:
    """Yields the indices of the pairs of every batch, the longest pairs first."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda each: -lengths[each]):
        # The first pair is the longest, so every row of the batch is padded to its length.
        is_full = batch and lengths[batch[0]] * (len(batch) + 1) > _BATCH_PIECES
        if is_full or (batch and not can_pad and lengths[i] != lengths[batch[0]]):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _verify(path: Path, sha256: str | None) -> None:
    if not path.is_file():
        raise ConfigError(f"the local judge lacks its file {path.name!r}: {_REMEDY}")
    if sha256 is None:
        return
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            raise ConfigError(f"{path.name!r} is not the published file: {_REMEDY}")


def _load_tokenizer(path: Path) -> _Tokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError("tokenizers", "local") from error
    return cast("_Tokenizer", Tokenizer.from_file(str(path)))


def _load_session(path: Path, threads: int) -> _Session:
    try:
        import onnxruntime  # type: ignore[import-untyped]  # compiled, without stubs
    except ImportError as error:
        raise MissingExtraError("onnxruntime", "local") from error
    runtime = cast("_Runtime", onnxruntime)
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    # The arena keeps the memory of the largest batch, which is small; without it a tenth of the
    # time goes into asking the system for memory.
    settings.enable_cpu_mem_arena = True
    # Threads that spin while they wait would take cores from the application.
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return runtime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
