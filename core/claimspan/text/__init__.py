"""Text analysis without a model: sentences, words, quantities, abstention, injection."""

from __future__ import annotations

__all__: list[str] = []
