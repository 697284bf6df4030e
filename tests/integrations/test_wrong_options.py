"""Wrong options are refused where they are given, in one sentence, and with a short traceback."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

import claimspan_haystack
import claimspan_langchain
import claimspan_llama_index
from claimspan.errors import ClaimspanError, ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor, configure

MAKERS: Final[Mapping[str, Callable[..., Any]]] = {
    "Monitor": Monitor,
    "callback": ClaimspanCallbackHandler,
    "langchain": claimspan_langchain.instrument,
    "llama_index": claimspan_llama_index.instrument,
    "haystack": claimspan_haystack.instrument,
}
MOST_FRAMES: Final = 6
"""The caller's frame, those of an integration, and the one that raises."""


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampel": 0.1}, "a monitor has no option 'sampel': did you mean sample\\?"),
        ({"nonsense": 1}, "a monitor has no option 'nonsense': there are judge, metrics"),
        ({"sample": 2}, "sample is 2.0: give a share between 0.0 and 1.0"),
        ({"sample": 5}, "between 0.0 and 1.0, such as 0.05 for 5 %"),
        ({"sample": "5%"}, "between 0.0 and 1.0, such as 0.05 for 5 %, or a sampler"),
        ({"judge": "nobody"}, "names no judge: use 'lexical', 'local'"),
        ({"judge": 3}, "judge is of type int: give"),
        ({"ground_truth": "missing.jsonl"}, "cannot read 'missing.jsonl'"),
        ({"tracer_provider": 3}, "tracer_provider is of type int: give"),
        ({"serverless": "yes"}, "serverless is 'yes': give True or False"),
    ],
)
def test_a_wrong_option_is_refused_in_one_sentence_with_few_frames(
    make: Callable[..., object], options: dict[str, object], message: str
) -> None:
    with pytest.raises(ClaimspanError, match=message) as caught:
        make(**options)

    assert len(traceback.extract_tb(caught.value.__traceback__)) <= MOST_FRAMES
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_an_endpoint_without_a_scheme_is_refused_where_it_is_given() -> None:
    with pytest.raises(ConfigError, match=r"the endpoint has no scheme: write it like http://"):
        configure(endpoint="localhost:4318")


def test_a_variable_without_a_scheme_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")

    with pytest.raises(ConfigError, match="OTEL_EXPORTER_OTLP_ENDPOINT has no scheme"):
        configure()
