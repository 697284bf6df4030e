"""Picks records worth labelling out of traces or results, for a file of ground truths to fill in.

``candidates`` reads the records, ``picking`` chooses among them, ``golden_file`` merges what was
chosen into a file, and ``command`` is ``claimspan curate``.
"""

from __future__ import annotations

__all__: list[str] = []
