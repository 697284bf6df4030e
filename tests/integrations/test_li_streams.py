"""LlamaIndex's streams: the root has the whole answer, also where the reader leaves early."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index_instrumentation import get_dispatcher
from opentelemetry import trace

import claimspan_llama_index
from claimspan_tracing import Monitor

from li_pipelines import Echo, Shelf, engine_of, read, read_async
from pipelines import AppError, answer_to
from support import MonitorFactory, Spans, attributes, ids

QUERY = "the question"
SAID = answer_to(QUERY)


@pytest.fixture
def attached(make_monitor: MonitorFactory) -> Iterator[Monitor]:
    monitor = make_monitor()
    undo = claimspan_llama_index.instrument(monitor)
    yield monitor
    undo()


def ask(model: CustomLLM | None = None) -> StreamingResponse:
    response = engine_of(Shelf(), model or Echo(), streaming=True).query(QUERY)
    assert isinstance(response, StreamingResponse)
    return response


async def aask() -> AsyncStreamingResponse:
    response = await engine_of(Shelf(), Echo(), streaming=True).aquery(QUERY)
    assert isinstance(response, AsyncStreamingResponse)
    return response


async def seen(spans: Spans, monitor: Monitor) -> tuple[str, object]:
    """Response and status on the one root."""
    assert await monitor.aflush()
    root = attributes(spans.root)
    assert root["input.value"] == QUERY
    return str(root["output.value"]).strip(), root["claimspan.evaluation.status"]


@pytest.mark.parametrize(
    "take",
    [str, StreamingResponse.get_response, StreamingResponse.print_response_stream, list[str]],
    ids=["str", "get_response", "print", "iterate"],
)
async def test_a_stream_is_whole_however_it_is_taken(
    attached: Monitor, spans: Spans, take: Callable[[object], object]
) -> None:
    response = ask()
    take(response.response_gen if take == list[str] else response)

    assert await seen(spans, attached) == (SAID, "evaluated")
    assert len(spans.of_kind("LLM")) == 1


async def test_an_asynchronous_stream_is_whole_however_it_is_taken(
    attached: Monitor, spans: Spans
) -> None:
    await (await aask()).print_response_stream()

    assert await seen(spans, attached) == (SAID, "evaluated")
    assert len(spans.of_kind("LLM")) == 1


async def test_a_root_ends_with_its_stream_and_not_before(attached: Monitor, spans: Spans) -> None:
    response = ask()
    assert attached.stats.produced == 0
    list(response.response_gen)

    assert await seen(spans, attached) == (SAID, "evaluated")
    model = spans.one("LLM")
    assert model.parent is not None
    assert (spans.root.end_time or 0) >= (model.end_time or 0)


async def test_a_stream_that_nobody_begins_to_read_is_abandoned(
    attached: Monitor, spans: Spans
) -> None:
    response = ask()
    del response
    gc.collect()

    assert await seen(spans, attached) == ("", "abandoned")


async def test_an_asynchronous_stream_that_nobody_begins_to_read_is_abandoned(
    attached: Monitor, spans: Spans
) -> None:
    response = await aask()
    del response
    gc.collect()

    assert await seen(spans, attached) == ("", "abandoned")


@pytest.mark.parametrize("how", ["closed", "dropped"])
async def test_an_abandoned_stream_keeps_what_was_read(
    attached: Monitor, spans: Spans, how: str
) -> None:
    stream = read(ask())
    next(stream)
    if how == "closed":
        getattr(stream, "close")()  # noqa: B009 - an iterator need not have it
    del stream
    gc.collect()

    assert await seen(spans, attached) == ("Answer", "abandoned")


async def test_an_abandoned_asynchronous_stream_keeps_what_was_read(
    attached: Monitor, spans: Spans
) -> None:
    stream = read_async(await aask())
    await anext(stream)
    del stream
    gc.collect()
    await asyncio.sleep(0)

    assert await seen(spans, attached) == ("Answer", "abandoned")


async def test_a_stream_whose_reader_is_cancelled_is_interrupted(
    attached: Monitor, spans: Spans
) -> None:
    class Stuck(Echo):
        async def astream_complete(self, *args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(60)

    async def run() -> None:
        response = await engine_of(Shelf(), Stuck(), streaming=True).aquery(QUERY)
        async for _ in read_async(response):
            pass

    task = asyncio.create_task(run())
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await seen(spans, attached) == ("", "interrupted")


async def test_a_stream_that_breaks_raises_what_the_model_raised(
    attached: Monitor, spans: Spans
) -> None:
    error = AppError("broken")
    with pytest.raises(AppError) as caught:
        list(read(ask(Echo(error=error))))

    assert caught.value is error
    assert await seen(spans, attached) == ("", "app_error")


class Undecorated(CustomLLM):
    """A model without LlamaIndex's decorators, which reports no events."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="undecorated")

    def complete(self, prompt: str, formatted: bool = False, **_: object) -> CompletionResponse:
        return CompletionResponse(text=SAID)

    def stream_complete(
        self, prompt: str, formatted: bool = False, **_: object
    ) -> CompletionResponseGen:
        yield CompletionResponse(text=SAID, delta=SAID)


async def test_a_model_that_reports_no_events_is_captured_all_the_same(
    attached: Monitor, spans: Spans
) -> None:
    list(read(ask(Undecorated())))

    assert await seen(spans, attached) == (SAID, "evaluated")


async def test_a_function_of_the_users_own_may_read_the_stream_itself(
    attached: Monitor, spans: Spans
) -> None:
    @get_dispatcher("app").span
    def answer(question: str) -> str:
        return "".join(read(ask())).strip() + " - " + question

    answer(QUERY)

    assert await seen(spans, attached) == (f"{SAID} - {QUERY}", "evaluated")
    assert len(spans.of_kind("RETRIEVER")) == 1


async def test_between_two_parts_the_context_is_the_readers_own(
    attached: Monitor, spans: Spans
) -> None:
    first, second = read(ask()), read(ask())
    parts = [part for pair in zip(first, second, strict=True) for part in pair]
    assert next(first, None) is None
    assert next(second, None) is None
    assert trace.get_current_span() is trace.INVALID_SPAN
    assert await attached.aflush()

    assert len(parts) == 2 * len(SAID.split(" "))
    assert len(spans.roots) == 2
    assert {attributes(root)["claimspan.evaluation.status"] for root in spans.roots} == {
        "evaluated"
    }
    parents = {span.parent.span_id for span in spans.of_kind("LLM") if span.parent}
    assert parents == {ids(root).span_id for root in spans.roots}
