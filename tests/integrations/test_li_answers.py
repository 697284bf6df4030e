"""Each answer of LlamaIndex's engines is one record, without the answers that were thrown away."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false
# LlamaIndex leaves some of its generics and decorators open.

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.evaluation import GuidelineEvaluator, RelevancyEvaluator
from llama_index.core.query_engine import (
    CustomQueryEngine,
    RetryGuidelineQueryEngine,
    RetryQueryEngine,
    RetrySourceQueryEngine,
)
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher

from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import texts
from li_buildings import Turns, ask, facts, monitored, rag, seen
from li_pipelines import Script, Shelf, engine_of, read, synthesizer_of, text_of

TUNNEL = "When was the tunnel opened?"
OPENED = "The tunnel was opened to trains in 1994, after six years."
WRONG = "Nobody knows of any tower that is made of iron."

span = get_dispatcher("app_of_test_li_answers").span


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with monitored() as made:
        yield made


# --- answers that were thrown away ---------------------------------------------------------------


class OnceMore:
    """A policy of retries as both the newest and the oldest LlamaIndex take them."""

    def next(self, *args: Any, **kwargs: Any) -> float:
        return 0.01


class Failing(Workflow):
    """Its step fails after its first answer, and is tried again."""

    @step(retry_policy=OnceMore())
    async def answer(self, event: StartEvent) -> StopEvent:
        engine = event.engines.pop(0)
        answer = await engine.aquery(event.query)
        if event.engines:
            raise ConnectionError("once more")
        return StopEvent(result=answer if event.whole else str(answer))


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_failed_attempt_of_a_step_leaves_nothing_in_the_record(
    monitor: InMemoryMonitor, streaming: bool
) -> None:
    engines = [rag(WRONG, 1, streaming=streaming), rag(HIGH, 0, streaming=streaming)]

    result = await Failing().run(query=TOWER, engines=engines, whole=streaming)
    if streaming:
        await text_of(result)

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")


def relevancy(*verdicts: str) -> RelevancyEvaluator:
    return RelevancyEvaluator(llm=Script(rules={"is in line with": list(verdicts)}))


def retrying(kind: str, streaming: bool = False) -> BaseQueryEngine:
    model = Script(said="unused", rules={"Query: ": [WRONG, HIGH]})
    engine = engine_of(Turns((1,), (0,)), model, streaming=streaming)
    if kind == "query":
        return RetryQueryEngine(engine, relevancy("NO", "YES"))
    said = [f'{{"passing": {each}, "feedback": "Be precise."}}' for each in ("false", "true")]
    guideline = GuidelineEvaluator(llm=Script(rules={"guideline": said}), guidelines="guidelines")
    return RetryGuidelineQueryEngine(engine, guideline)


@pytest.mark.parametrize("how", ["plain", "async"])
@pytest.mark.parametrize("kind", ["query", "guideline"])
async def test_an_answer_that_an_engine_rejects_is_not_in_the_record(
    monitor: InMemoryMonitor, kind: str, how: str
) -> None:
    assert await ask(retrying(kind), how) == HIGH

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")


def test_sources_that_an_engine_rejects_are_not_in_the_record(
    monitor: InMemoryMonitor,
) -> None:
    engine = engine_of(Shelf(facts(0, 1)), Script(said=WRONG))
    evaluator = relevancy("NO", "YES", "NO", "YES")

    retry = RetrySourceQueryEngine(engine, evaluator, llm=Script())
    assert str(retry.query(TOWER)) == HIGH

    query, answer, chunks, status = seen(monitor)
    assert (query, answer, status) == (TOWER, HIGH, "evaluated")
    # LlamaIndex takes every result of its evaluator for a pass, and gives both sources once more.
    assert sorted(chunks) == sorted(FACTS[:2])


# --- several queries in one function -------------------------------------------------------------


@pytest.mark.parametrize("streaming", [False, True])
def test_queries_in_a_function_are_records_of_their_own(
    monitor: InMemoryMonitor, streaming: bool
) -> None:
    @span
    def answer_all(questions: list[str]) -> list[str]:
        engines = [rag(HIGH, 0, streaming=streaming), rag(OPENED, 2, streaming=streaming)]
        responses = [engine.query(asked) for engine, asked in zip(engines, questions, strict=True)]
        return ["".join(read(each)) if streaming else str(each) for each in responses]

    answer_all([TOWER, TUNNEL])

    whole, *inner = monitor.records()
    assert whole.status == "several_answers"
    assert [(r.record.query, r.record.response.strip(), texts(r)) for r in inner] == [
        (TOWER, HIGH, FACTS[:1]),
        (TUNNEL, OPENED, FACTS[2:]),
    ]


async def test_concurrent_queries_in_a_function_are_records_of_their_own(
    monitor: InMemoryMonitor,
) -> None:
    @span
    async def answer_all(questions: list[str]) -> list[str]:
        engines = [rag(HIGH, 0), rag(OPENED, 2)]
        asked = [engine.aquery(each) for engine, each in zip(engines, questions, strict=True)]
        return [str(each) for each in await asyncio.gather(*asked)]

    await answer_all([TOWER, TUNNEL])

    _, *inner = monitor.records()
    assert {(r.record.query, r.record.response) for r in inner} == {(TOWER, HIGH), (TUNNEL, OPENED)}


def test_a_question_never_gets_the_answer_to_another_one(monitor: InMemoryMonitor) -> None:
    @span
    def answer_all(questions: list[str]) -> dict[str, int]:
        answers = [rag(HIGH, 0).query(questions[0]), rag(OPENED, 2).query(questions[1])]
        return {"answered": len(answers)}

    answer_all([TOWER, TUNNEL])

    assert not [r for r in monitor.records() if r.record.query == TOWER and r.record.response]


def test_a_function_may_hand_on_the_stream_of_an_engine(monitor: InMemoryMonitor) -> None:
    @span
    def answer(question: str) -> Iterator[str]:
        return read(rag(HIGH, 0, streaming=True).query(question))

    assert "".join(answer(TOWER)).strip() == HIGH

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")


def test_an_engine_of_the_users_own_is_judged_on_what_its_prompt_holds(
    monitor: InMemoryMonitor,
) -> None:
    class Own(CustomQueryEngine):
        retriever: BaseRetriever

        def custom_query(self, query_str: str) -> str:
            found = self.retriever.retrieve(query_str)
            return str(Script(said=HIGH).complete(f"{found[0].text}\n{query_str}"))

    Own(retriever=Shelf(facts(0, 1))).query(TOWER)

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")


@pytest.mark.parametrize("how", ["plain", "async"])
async def test_a_retriever_and_a_synthesizer_called_by_hand_are_one_right_record(
    monitor: InMemoryMonitor, how: str
) -> None:
    synthesizer = synthesizer_of(Script(said=HIGH))
    if how == "plain":
        synthesizer.synthesize(TOWER, nodes=Shelf(facts(0, 1)).retrieve(TOWER)[:1])
    else:
        nodes = await Shelf(facts(0, 1)).aretrieve(TOWER)
        await synthesizer.asynthesize(TOWER, nodes=nodes[:1])

    answered = monitor.only_record()
    assert answered.status == "evaluated"
    assert (answered.record.query, answered.record.response) == (TOWER, HIGH)
    assert texts(answered) == FACTS[:1]
