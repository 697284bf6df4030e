"""A judge on llama.cpp with a model of 135 million parameters, too small to be right."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from claimspan.judges import OpenAIJudge
from claimspan.judges.llm.extraction import Extraction
from claimspan_demo.model import MODEL_NAME, find_model, launch

__all__ = ["served_model", "small_judge"]


@contextmanager
def served_model() -> Generator[str]:
    """Serve the model while the block runs; yields the URL."""
    # One thread: on a busy machine two of them wait for each other.
    with launch(find_model(), threads=1) as served:
        yield served.base_url


def small_judge(
    url: str, extraction: Extraction = "direct", chunks_per_call: int = 10
) -> OpenAIJudge:
    """A judge that asks this model as one has to ask a model so small."""
    return OpenAIJudge(
        MODEL_NAME,
        base_url=url,
        extraction=extraction,
        chunks_per_call=chunks_per_call,
        exact_schema=True,  # it loses count of ids
        concurrency=1,
        call_seconds=120.0,
        top_logprobs=100,  # its labels are not always among the likeliest tokens
        options={
            "stop": ["\n\n\n\n"],  # the demo's server stops at an empty line, as in JSON
            "cache_prompt": True,  # it reads 200 tokens a second: instructions are read once
        },
    )
