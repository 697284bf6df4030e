"""The models that ``LocalJudge`` runs: the bundled one with its fitted constants, or one by others.

The bundled network is the data of another distribution, ``claimspan-local-weights``: 34 MB that
only those need who judge locally. The constants are fitted to the features that this package
computes, so they stay beside the code.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol, cast

from pydantic import BaseModel, ValidationError

from claimspan.errors import ConfigError, MissingExtraError
from claimspan.judges.local.cross_encoder import ModelFiles
from claimspan.judges.local.reading import VerdictRegression
from claimspan.verdicts import Label

__all__ = ["bundled_combination", "bundled_files", "find_pretrained"]

# Another version of the weights would be judged by constants that were not fitted to it.
_SHA256: Final = {
    "local.onnx": "656e00a5c797154257dc93907175592f8b3ab589f9f3d24f9980776117395ead",
    "tokenizer.json": "9114256b104cca80e04367526f03f46aa3c443c2ed174904142a73bbf13b9fbb",
}


def bundled_files() -> ModelFiles:
    """Returns the files of the network, with the digests of the published ones.

    Raises:
        MissingExtraError: The weights are not installed.
    """
    try:
        from claimspan_local_weights import FOLDER
    except ImportError as error:
        raise MissingExtraError("claimspan_local_weights", "local") from error
    return ModelFiles(FOLDER / "local.onnx", FOLDER / "tokenizer.json", _SHA256)


def bundled_combination() -> VerdictRegression:
    """The fitted combination of the network's logits with the lexical evidence."""
    return VerdictRegression.read(Path(__file__).parent / "combination.json")


# Paths that exporters use, in the order of preference: 8-bit weights are faster than 32-bit ones.
_MODEL_PATHS: Final = (
    "onnx/model_qint8_avx512_vnni.onnx",
    "onnx/model_quantized.onnx",
    "onnx/model.onnx",
    "model_quantized.onnx",
    "model.onnx",
)


class _Config(BaseModel):
    id2label: dict[str, str]


class _Hub(Protocol):
    """The part of huggingface_hub that is used; its own types depend on the options of the call."""

    def hf_hub_download(self, repo_id: str, filename: str) -> str: ...


def find_pretrained(model: str) -> tuple[ModelFiles, tuple[Label, ...]]:
    """Finds the files of a model, and reads the label of each logit from its configuration.

    Args:
        model: A folder, or ``org/name`` on the hub, whose files are then downloaded into the cache
            of huggingface_hub.

    Raises:
        ConfigError: The model does not exist, has no ONNX file, or its labels are not those of
            natural language inference.
        MissingExtraError: huggingface_hub is not installed.
    """
    folder = Path(model)

    def from_folder(name: str) -> Path | None:
        return path if (path := folder / name).is_file() else None

    fetch = from_folder if folder.is_dir() else _from_hub(model)
    onnx = next((path for name in _MODEL_PATHS if (path := fetch(name))), None)
    tokenizer, config = fetch("tokenizer.json"), fetch("config.json")
    if not (onnx and tokenizer and config):
        raise ConfigError(
            f"{model!r} lacks an ONNX file, tokenizer.json or config.json: use a model that was "
            "exported to ONNX, or export it with optimum"
        )
    return ModelFiles(onnx, tokenizer), _labels(model, config)


def _from_hub(model: str) -> Callable[[str], Path | None]:
    """A function that downloads a file by name; None if the model lacks the file."""
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
            raise ConfigError(
                f"{model!r} is neither a folder nor a model on the hub: check the spelling"
            ) from error
        except (LocalEntryNotFoundError, ConnectionError) as error:
            raise ConfigError(
                f"{model!r} cannot be downloaded: the hub does not answer; try again"
            ) from error
        except EntryNotFoundError:
            return None

    return fetch


def _labels(model: str, config: Path) -> tuple[Label, ...]:
    try:
        names = _Config.model_validate_json(config.read_bytes()).id2label
    except ValidationError:
        names = {}
    labels = tuple(_label(names.get(str(i), "")) for i in range(len(names)))
    if Label.ENTAILED not in labels or None in labels:
        raise ConfigError(
            f"{model!r} has no labels of natural language inference in its config.json: use a "
            "model whose id2label names entailment"
        )
    return cast("tuple[Label, ...]", labels)


def _label(name: str) -> Label | None:
    lowered = name.lower()
    if lowered.startswith("entail"):
        return Label.ENTAILED
    if lowered.startswith("contradict"):
        return Label.CONTRADICTED
    return Label.NEUTRAL if "neutral" in lowered or "not" in lowered else None
