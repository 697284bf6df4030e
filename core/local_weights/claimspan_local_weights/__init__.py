"""The network of claimspan's local judge, with its tokenizer and its model card.

Only data: ``claimspan.judges.local`` reads the files, and knows their digests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["FOLDER"]

FOLDER: Final = Path(__file__).parent
"""Holds ``local.onnx``, ``tokenizer.json`` and ``MODEL_CARD.md``."""
