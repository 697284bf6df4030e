"""Export: where spans go, and reading trace files back."""

from __future__ import annotations

__all__: list[str] = []
