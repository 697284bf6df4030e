"""Other handlers of LangChain hear the same events with ours beside them as without."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.language_models.llms import LLM
from langchain_core.outputs import GenerationChunk
from langchain_core.prompts import PromptTemplate

from claimspan_langchain import ClaimspanCallbackHandler, instrument
from claimspan_tracing import Monitor

from support import MonitorFactory, Spans

WORDS: Final = ["The ", "Eiffel ", "Tower"]


class Completion(LLM):
    """A completion model with an asynchronous stream, as ``OpenAI`` and ``OllamaLLM`` are."""

    @property
    def _llm_type(self) -> str:
        return "completion"

    def _call(self, prompt: str, *args: object, **kwargs: Any) -> str:
        return "".join(WORDS)

    async def _astream(
        self, prompt: str, *args: object, **kwargs: Any
    ) -> AsyncIterator[GenerationChunk]:
        for word in WORDS:
            yield GenerationChunk(text=word)


class Listener(AsyncCallbackHandler):
    """A handler of the user's own."""

    def __init__(self) -> None:
        self.started: list[list[str]] = []

    async def on_llm_start(
        self, serialized: dict[str, Any], prompts: list[str], **kwargs: Any
    ) -> None:
        self.started.append(prompts)


class Inline(BaseCallbackHandler):
    """A handler that is inline itself, as LangSmith's tracer is."""

    run_inline = True


@contextmanager
def by_config(monitor: Monitor) -> Generator[list[BaseCallbackHandler]]:
    """Attach our handler in the config of the call."""
    yield [ClaimspanCallbackHandler(monitor)]


@contextmanager
def by_process(monitor: Monitor) -> Generator[list[BaseCallbackHandler]]:
    """Attach our handler to the whole process."""
    undo = instrument(monitor)
    try:
        yield []
    finally:
        undo()


Attach = Callable[[Monitor], Any]
WAYS: Final = pytest.mark.parametrize("attach", [by_config, by_process])


async def events(callbacks: list[BaseCallbackHandler]) -> list[tuple[str, str]]:
    """Return kind and name of every event of one streamed answer."""
    chain = PromptTemplate.from_template("Where is {place}?") | Completion()
    stream = chain.astream_events({"place": "it"}, {"callbacks": callbacks}, version="v2")
    return [(event["event"], event["name"]) async for event in stream]


@WAYS
async def test_the_events_of_a_completion_model_are_those_of_a_chain_without_us(
    make_monitor: MonitorFactory, attach: Attach
) -> None:
    without = await events([])

    with attach(make_monitor()) as ours:
        found = await events(ours)

    assert ("on_llm_start", "Completion") in without
    assert found == without


@WAYS
async def test_a_handler_beside_ours_hears_of_the_start_of_a_completion_model(
    make_monitor: MonitorFactory, spans: Spans, attach: Attach
) -> None:
    theirs, monitor = Listener(), make_monitor()

    with attach(monitor) as ours:
        await Completion().ainvoke("Where is it?", {"callbacks": [theirs, *ours]})
        await Completion().agenerate(["one", "two"], callbacks=[*ours, theirs])
    assert monitor.flush()

    assert theirs.started == [["Where is it?"], ["one"], ["two"]]
    assert len(spans.roots) == 3


async def test_a_completion_model_is_captured_beside_a_handler_that_is_inline_itself(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    callbacks: list[BaseCallbackHandler] = [Inline(), ClaimspanCallbackHandler(monitor)]
    await Completion().ainvoke("Where is it?", {"callbacks": callbacks})
    assert monitor.flush()

    assert len(spans.roots) == 1
