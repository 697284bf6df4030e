"""A cross-encoder as ONNX, run by onnxruntime: logits for pairs of texts, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from claimspan.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Integers = NDArray[np.int64]

__all__ = ["CrossEncoder", "ModelFiles", "TextPair"]

TextPair = tuple[str, str]
"""First and second text of a pair, in the order that the model was trained with."""

_LONGEST: Final = 512
# A batch is as large as its padded length allows. With 768 word pieces a record takes a seventh
# longer, for the padding, and 50 MB more; with 200 it is no faster (local_speed.py, one core).
_BATCH_PIECES: Final = 384


class ModelFiles(NamedTuple):
    """What a cross-encoder is made of."""

    model: Path
    """ONNX."""

    tokenizer: Path
    """``tokenizer.json``."""

    sha256: Mapping[str, str] = {}
    """Expected digest by file name; a file that is not named here is not checked."""


class _Encoding(Protocol):
    ids: list[int]
    type_ids: list[int]


class _Tokenizer(Protocol):
    def encode_batch(self, input: Sequence[TextPair]) -> list[_Encoding]: ...
    def enable_truncation(self, max_length: int, *, strategy: str) -> None: ...
    def no_padding(self) -> None: ...


class _Named(Protocol):
    name: str


class _Settings(Protocol):
    intra_op_num_threads: int
    inter_op_num_threads: int
    log_severity_level: int
    enable_cpu_mem_arena: bool

    def add_session_config_entry(self, key: str, value: str) -> None: ...


class _Runtime(Protocol):
    """What is used of onnxruntime, which has no types."""

    def SessionOptions(self) -> _Settings: ...  # noqa: N802 - its name
    def InferenceSession(  # noqa: N802 - its name
        self, path: str, settings: _Settings, *, providers: Sequence[str]
    ) -> _Session: ...


class _Session(Protocol):
    def run(self, names: None, inputs: Mapping[str, Integers]) -> list[Floats]: ...
    def get_inputs(self) -> list[_Named]: ...


class CrossEncoder:
    """Logits of a pair of texts."""

    def __init__(self, files: ModelFiles, *, threads: int = 1, premise_first: bool = False) -> None:
        """Load the model.

        Args:
            files: The model and its tokenizer.
            threads: Threads of one inference; the host's others stay free.
            premise_first: Whether the first text is the one that may be cut where a pair is too
                long; else it is the second.

        Raises:
            MissingExtraError: onnxruntime or tokenizers is not installed.
            ConfigError: A file is missing, or is not the one that was published.
        """
        for path in (files.model, files.tokenizer):
            _check(path, files.sha256.get(path.name))
        self._tokenizer = _load_tokenizer(files.tokenizer)
        cut = "only_first" if premise_first else "only_second"
        self._tokenizer.enable_truncation(_LONGEST, strategy=cut)
        self._tokenizer.no_padding()
        self._session = _load_session(files.model, threads)
        self._inputs = [each.name for each in self._session.get_inputs()]

    def logits(self, pairs: Sequence[TextPair]) -> list[list[float]]:
        """The logits of every pair, in the order of the pairs.

        Equal pairs are computed once, and pairs of like length together.
        """
        distinct = list(dict.fromkeys(pairs))
        encoded = self._tokenizer.encode_batch(distinct) if distinct else []
        found: dict[TextPair, list[float]] = {}
        for batch in _batches([len(each.ids) for each in encoded]):
            rows = self._run([encoded[at] for at in batch])
            found.update(zip((distinct[at] for at in batch), rows, strict=True))
        return [found[pair] for pair in pairs]

    def length(self, pairs: Sequence[TextPair]) -> float:
        """Mean number of word pieces of some pairs."""
        return sum(len(each.ids) for each in self._tokenizer.encode_batch(pairs)) / len(pairs)

    def _run(self, batch: Sequence[_Encoding]) -> list[list[float]]:
        import numpy as np

        longest = max(len(each.ids) for each in batch)
        filled = {name: np.zeros((len(batch), longest), np.int64) for name in self._inputs}
        for row, each in enumerate(batch):
            size = len(each.ids)
            on = [1] * size
            values = {"input_ids": each.ids, "attention_mask": on, "token_type_ids": each.type_ids}
            for name in self._inputs:
                filled[name][row, :size] = values[name]
        return cast("list[list[float]]", self._session.run(None, filled)[0].tolist())


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices of the pairs that are run together, the longest pairs first."""
    batch: list[int] = []
    for at in sorted(range(len(lengths)), key=lambda each: -lengths[each]):
        if batch and lengths[batch[0]] * (len(batch) + 1) > _BATCH_PIECES:
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def _check(path: Path, sha256: str | None) -> None:
    if not path.is_file():
        raise ConfigError(f"the local judge has no {path.name}: install claimspan again")
    if sha256 is None:
        return
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            raise ConfigError(f"{path.name} is not the published file: install claimspan again")


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
    # An arena keeps the memory of the largest batch for good.
    settings.enable_cpu_mem_arena = False
    # Threads that spin while they wait take the host's cores.
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return runtime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
