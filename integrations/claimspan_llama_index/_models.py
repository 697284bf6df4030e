"""What a language model of LlamaIndex says of itself."""

from __future__ import annotations

import re
from typing import Final

from llama_index.core.base.llms.base import BaseLLM

from claimspan_tracing.adapters import named_text

PACKAGES: Final = re.compile(r"llama_index\.llms\.(\w+)")
"""The module of a model, whose package has the name of the provider."""


def name_of(given: BaseLLM) -> str:
    """Return the name of a model; empty if it has none."""
    name = given.metadata.model_name
    # What LlamaIndex calls a model whose class does not say its name.
    return named_text(["model"], [given]) if name == "unknown" else name
