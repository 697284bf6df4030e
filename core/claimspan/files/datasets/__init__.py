"""Public question-answering datasets, read from files that the user has; nothing is downloaded.

Each format gives the same items: a question with its right answer and, where the dataset has them,
the passages that hold it. ``item`` is that value, ``formats`` has one function for each format, and
``reading`` goes through a file, finds out its format, and counts what cannot be used.
"""

from __future__ import annotations

from claimspan.files.datasets.item import DatasetItem
from claimspan.files.datasets.reading import FORMATS, BadLine, read_dataset

__all__ = ["FORMATS", "BadLine", "DatasetItem", "read_dataset"]
