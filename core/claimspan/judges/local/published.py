"""Finds the files of a model that others trained, on disk or on the Hugging Face hub."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Protocol, cast

from claimspan.errors import ConfigError, MissingExtraError
from claimspan.judges.local.cross_encoder import ModelFiles
from claimspan.verdicts import Label

__all__ = ["Published", "find_published"]

# Where exporters put it; the first that is there is taken, 8 bits before 32.
_MODELS: Final = (
    "onnx/model_qint8_avx512_vnni.onnx",
    "onnx/model_quantized.onnx",
    "onnx/model.onnx",
    "model_quantized.onnx",
    "model.onnx",
)


class Published(NamedTuple):
    """A cross-encoder for natural language inference as its authors published it."""

    files: ModelFiles

    labels: tuple[Label, ...]
    """The label of every logit; "not entailed" counts as neutral."""


class _Hub(Protocol):
    """What is used of huggingface_hub, whose types depend on its options."""

    def hf_hub_download(self, repo_id: str, filename: str) -> str: ...


def find_published(model: str) -> Published:
    """The files of a model, and the order of its labels as its configuration has it.

    Args:
        model: A folder, or ``org/name`` on the hub; then files are downloaded into its cache.

    Raises:
        ConfigError: There is no such model, it has no ONNX file, or its labels are not those of
            natural language inference.
        MissingExtraError: huggingface_hub is not installed.
    """
    folder = Path(model)
    fetch = _from_folder(folder) if folder.is_dir() else _from_hub(model)
    found = next((path for name in _MODELS if (path := fetch(name))), None)
    tokenizer, config = fetch("tokenizer.json"), fetch("config.json")
    if not (found and tokenizer and config):
        raise ConfigError(
            f"{model!r} lacks an ONNX file, tokenizer.json or config.json: take a model that was "
            "exported to ONNX, or export it with optimum"
        )
    return Published(ModelFiles(found, tokenizer), _labels(model, config))


def _from_folder(folder: Path) -> Callable[[str], Path | None]:
    return lambda name: path if (path := folder / name).is_file() else None


def _from_hub(model: str) -> Callable[[str], Path | None]:
    try:
        import huggingface_hub
        from huggingface_hub.errors import (
            EntryNotFoundError,
            HFValidationError,
            LocalEntryNotFoundError,
            RepositoryNotFoundError,
        )
    except ImportError as error:
        raise MissingExtraError("huggingface_hub", "local") from error

    download = cast("_Hub", huggingface_hub).hf_hub_download

    def fetch(name: str) -> Path | None:
        try:
            return Path(download(model, name))
        except (RepositoryNotFoundError, HFValidationError) as error:
            raise ConfigError(f"{model!r} is neither a folder nor a model on the hub") from error
        except (LocalEntryNotFoundError, ConnectionError) as error:
            raise ConfigError(f"{model!r} cannot be downloaded: the hub does not answer") from error
        except EntryNotFoundError:
            return None

    return fetch


def _labels(model: str, config: Path) -> tuple[Label, ...]:
    content = cast("Mapping[str, object]", json.loads(config.read_text(encoding="utf-8")))
    names = cast("Mapping[str, str]", content.get("id2label") or {})
    found = tuple(_label(names[str(at)]) for at in range(len(names)))
    if Label.ENTAILED not in found or None in found:
        raise ConfigError(f"{model!r} does not name its labels: no model for entailment")
    return cast("tuple[Label, ...]", found)


def _label(name: str) -> Label | None:
    said = name.lower()
    if said.startswith("entail"):
        return Label.ENTAILED
    if said.startswith("contradict"):
        return Label.CONTRADICTED
    return Label.NEUTRAL if "neutral" in said or "not" in said else None
