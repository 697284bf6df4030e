"""What a query engine of LlamaIndex's has rejected is in no record of OpenInference's spans."""

from collections.abc import Callable, Iterator

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.evaluation import GuidelineEvaluator, RelevancyEvaluator
from llama_index.core.query_engine import RetryGuidelineQueryEngine, RetryQueryEngine
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import read
from li_buildings import Turns, ask, offline
from li_pipelines import Script, engine_of
from oi_spans import monitored, traced

# LlamaIndex and its instrumentor look at every attribute of an object, deprecated ones too.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecationWarning")

WRONG = "Nobody knows of any tower that is made of iron."


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with offline(), monitored() as made, traced(made, LlamaIndexInstrumentor()):
        yield made


def engine() -> BaseQueryEngine:
    """An engine that finds something else, and answers in another way, when it is asked again."""
    return engine_of(Turns((1,), (0,)), Script(said="unused", rules={"Query: ": [WRONG, HIGH]}))


def by_relevancy() -> BaseQueryEngine:
    judge = Script(rules={"is in line with": ["NO", "YES"]})
    return RetryQueryEngine(engine(), RelevancyEvaluator(llm=judge))


def by_guidelines() -> BaseQueryEngine:
    said = [f'{{"passing": {each}, "feedback": "Be precise."}}' for each in ("false", "true")]
    judge = GuidelineEvaluator(llm=Script(rules={"guideline": said}), guidelines="guidelines")
    return RetryGuidelineQueryEngine(engine(), judge)


@pytest.mark.parametrize("how", ["plain", "async"])
@pytest.mark.parametrize("made", [by_relevancy, by_guidelines])
async def test_a_node_of_a_rejected_attempt_is_no_chunk(
    made: Callable[[], BaseQueryEngine], how: str, monitor: InMemoryMonitor
) -> None:
    assert await ask(made(), how) == HIGH

    assert read(monitor.only_record()) == (TOWER, HIGH, FACTS[:1], "evaluated")
