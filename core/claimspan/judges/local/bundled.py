"""The model that ``LocalJudge`` runs where none is named: its network, and the fitted constants.

The network is the data of another distribution, ``claimspan-local-weights``: 34 MB that nobody
needs who does not judge locally. The constants are fitted to the features that this package
computes, so they stay beside the code.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from claimspan.errors import MissingExtraError
from claimspan.judges.local.cross_encoder import ModelFiles
from claimspan.judges.local.regression import VerdictRegression

__all__ = ["bundled_combination", "bundled_files", "require_local_extra"]

_EXTRA: Final = "local"
_WEIGHTS: Final = "claimspan_local_weights"

# Another version of the weights would be judged by constants that were not fitted to it.
_SHA256: Final = {
    "local.onnx": "3b5b703fa7ac99beed88a55caa0d60880e219b9253ae3b366a2217354a662e7b",
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
        raise MissingExtraError(_WEIGHTS, _EXTRA) from error
    return ModelFiles(FOLDER / "local.onnx", FOLDER / "tokenizer.json", _SHA256)


def bundled_combination() -> VerdictRegression:
    """Returns the fitted combination of the network's logits with the lexical evidence."""
    return VerdictRegression.read(Path(__file__).parent / "combination.json")


def require_local_extra(*, own_model: bool) -> None:
    """Says now what the first check would lack, without importing it.

    Args:
        own_model: Whether the user names a model, which takes the place of the weights.

    Raises:
        MissingExtraError: A package of the extra is not installed.
    """
    for package in ("onnxruntime", "tokenizers", *(() if own_model else (_WEIGHTS,))):
        if find_spec(package) is None:
            raise MissingExtraError(package, _EXTRA)
