"""The addresses of traces that the documentation gives for ``--trace-url``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

__all__ = ["documented_link"]

_PAGE: Final = Path(__file__).parents[2] / "docs" / "evaluation.md"


def documented_link(backend: str, url: str) -> str:
    """Return the template of a backend as its row in the table has it, on another server.

    Args:
        backend: The row's name.
        url: Address of the server, in place of that of the documentation.
    """
    row = re.search(rf"^\| {backend} \| `([^`]+)`", _PAGE.read_text("utf-8"), re.MULTILINE)
    assert row is not None, f"no row of {backend}"
    documented = urlsplit(row[1])
    return row[1].replace(f"{documented.scheme}://{documented.netloc}", url)
