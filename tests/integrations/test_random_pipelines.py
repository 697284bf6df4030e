"""Evidence is text from outside that reached the answer, whatever the pipeline is like."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

import claimspan_haystack
import claimspan_langchain
import claimspan_llama_index
from claimspan_tracing.testing import InMemoryMonitor

from captured import attached
from oi_spans import langchain_traced, monitored
from provenance import Pipeline, one_line
from provenance_frameworks import HAYSTACK, LANGCHAIN, LLAMA_INDEX, Way
from random_pipelines import drawn

SEEDS = range(60)

# OpenInference calls LangChain's texts like functions, which LangChain deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:Calling .text")


@contextmanager
def openinference() -> Generator[InMemoryMonitor]:
    with monitored() as made, langchain_traced(made):
        yield made


@dataclass(frozen=True)
class Framework:
    """How pipelines are written and watched."""

    attached: Callable[[], AbstractContextManager[InMemoryMonitor]]
    ways: Sequence[Way]
    has_ids: bool = True
    """Whether its documents have the ids of the store."""


FRAMEWORKS = {
    "langchain": Framework(partial(attached, claimspan_langchain.instrument), LANGCHAIN),
    "llama_index": Framework(partial(attached, claimspan_llama_index.instrument), LLAMA_INDEX),
    "haystack": Framework(partial(attached, claimspan_haystack.instrument), HAYSTACK),
    "openinference": Framework(openinference, LANGCHAIN, has_ids=False),
}


@dataclass(frozen=True)
class Watched:
    """A framework that a monitor is attached to."""

    framework: Framework
    monitor: InMemoryMonitor

    def differences(self, pipeline: Pipeline, way: Way) -> dict[str, str]:
        """Run a pipeline, and return what its record says otherwise than the pipeline."""
        self.monitor.clear()
        assert way(pipeline) == pipeline.response, pipeline
        seen = self.monitor.only_record()
        record = seen.record
        passages = {text: each for each, texts in pipeline.read.items() for text in texts}
        read = sorted(passages.get(one_line(each.text), each.text) for each in record.chunks)
        facts: dict[str, tuple[object, object]] = {
            "question": (record.query, pipeline.question),
            "answer": (record.response, pipeline.response),
            "status": (str(seen.status), "evaluated"),
            "passages": (read, list(pipeline.read)),
        }
        if self.framework.has_ids:
            facts["ids"] = (sorted(each.id for each in record.chunks), list(pipeline.read))
        return {
            name: f"{found!r} instead of {right!r}"
            for name, (found, right) in facts.items()
            if found != right
        }

    def check(self, pipeline: Pipeline, way: Way) -> None:
        """Check that the chunks of a run are the passages that reached its answer, each once."""
        found = self.differences(pipeline, way)
        assert found == {}, f"{found}\n\n{pipeline}"


@pytest.fixture(scope="module", params=FRAMEWORKS)
def watched(request: pytest.FixtureRequest) -> Iterator[Watched]:
    framework = FRAMEWORKS[request.param]
    with framework.attached() as monitor:
        yield Watched(framework, monitor)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pipeline_is_judged_by_what_reached_its_answer(watched: Watched, seed: int) -> None:
    ways = watched.framework.ways
    watched.check(drawn(seed), ways[seed % len(ways)])
