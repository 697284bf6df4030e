"""Names and behaviours of LlamaIndex that we lean on, and nobody documents.

One test each, on the real package. A test that fails after an upgrade names what has moved; what
breaks with it stands in ``docs/leaned_on.md``, in the row that names the test.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# The frameworks leave open the types of what they hand to tracers and handlers.

from __future__ import annotations

from collections.abc import Iterator
from inspect import BoundArguments, signature
from typing import Any, Final

import pytest
from llama_index.core.async_utils import run_jobs
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.chat_engine import CondensePlusContextChatEngine, SimpleChatEngine
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import LLMCompletionEndEvent
from llama_index.core.llms import ChatMessage
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.workflow import Workflow
from llama_index.core.workflow import errors as workflow_errors
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span.base import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler
from pydantic import PrivateAttr

from li_agents import ask_workflow, cancel_workflow
from li_pipelines import Echo, Shelf, engine_of, memory_of

QUERY: Final = "the question"


class Spied(BaseSpanHandler[BaseSpan]):
    """Keeps what the dispatcher reports of spans."""

    _entered: dict[str, dict[str, Any]] = PrivateAttr(default_factory=dict)
    _left: dict[str, object] = PrivateAttr(default_factory=dict)

    @property
    def entered(self) -> dict[str, dict[str, Any]]:
        return self._entered

    @property
    def left(self) -> dict[str, object]:
        return self._left

    def ids(self, part: str) -> list[str]:
        return [id_ for id_ in self._entered if part in id_]

    def span_enter(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: object = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self._entered[id_] = {"arguments": bound_args.arguments, "instance": instance}

    def span_exit(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: object = None,
        result: object = None,
        **kwargs: Any,
    ) -> None:
        self._left[id_] = result

    def span_drop(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: object = None,
        err: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        self._left[id_] = err

    def new_span(self, *args: Any, **kwargs: Any) -> None: ...

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None: ...

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None: ...


class SpiedEvents(BaseEventHandler):
    """Keeps the events."""

    _events: list[BaseEvent] = PrivateAttr(default_factory=list)

    @property
    def events(self) -> list[BaseEvent]:
        return self._events

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        self._events.append(event)


@pytest.fixture
def spied() -> Iterator[Spied]:
    """On the root dispatcher, by the lists that ``undo`` replaces."""
    before, spied = root_dispatcher.span_handlers, Spied()
    root_dispatcher.span_handlers = [*before, spied]
    yield spied
    root_dispatcher.span_handlers = before


@pytest.fixture
def events() -> Iterator[list[BaseEvent]]:
    before, spied = root_dispatcher.event_handlers, SpiedEvents()
    root_dispatcher.event_handlers = [*before, spied]
    yield spied.events
    root_dispatcher.event_handlers = before


def engine(*, streaming: bool = False, empty: bool = False) -> Any:
    shelf = Shelf(nodes=[] if empty else None)
    return engine_of(shelf, Echo(), streaming=streaming)


def test_the_root_dispatcher_calls_what_is_in_its_lists_and_nothing_else(
    events: list[BaseEvent], spied: Spied
) -> None:
    engine().query(QUERY)
    heard = len(spied.entered), len(events)
    root_dispatcher.span_handlers = [h for h in root_dispatcher.span_handlers if h is not spied]
    root_dispatcher.event_handlers = []
    engine().query(QUERY)

    assert heard > (0, 0)
    assert (len(spied.entered), len(events)) == heard, "a detached handler is still called"


def test_the_id_of_a_span_begins_with_class_and_method(spied: Spied) -> None:
    engine().query(QUERY)

    names = {id_.partition("-")[0] for id_ in spied.entered}
    assert {"RetrieverQueryEngine.query", "Shelf.retrieve", "Echo.complete"} <= names
    assert any(name.endswith(".synthesize") for name in names)


def test_a_synthesizer_is_given_its_nodes_by_name(spied: Spied) -> None:
    engine().query(QUERY)

    (synthesis,) = spied.ids(".synthesize-")
    arguments = spied.entered[synthesis]["arguments"]
    assert [each.node.node_id for each in arguments["nodes"]] != []
    assert "additional_source_nodes" in signature(BaseSynthesizer.synthesize).parameters


def test_a_query_engine_says_empty_response_where_it_found_nothing() -> None:
    assert str(engine(empty=True).query(QUERY)) == "Empty Response"


async def test_what_runs_side_by_side_is_a_span_that_is_called_run_jobs(spied: Spied) -> None:
    async def job() -> None:
        pass

    await run_jobs([job()])

    assert spied.ids("run_jobs")[0].startswith("run_jobs")


async def test_the_run_of_a_workflow_has_an_id_of_its_own_form(spied: Spied) -> None:
    await ask_workflow(engine(), QUERY)

    (run,) = spied.ids(".run-")
    assert run.startswith("Asking.run-")
    assert isinstance(spied.entered[run]["instance"], Workflow)
    assert type(spied.left[run]).__name__ == "StopEvent"


async def test_a_workflow_that_its_user_cancels_exits_with_none(spied: Spied) -> None:
    await cancel_workflow(Shelf(seconds=5), QUERY)

    (run,) = spied.ids(".run-")
    assert spied.left[run] is None


def test_workflows_still_call_a_good_end_workflow_done() -> None:
    assert issubclass(vars(workflow_errors)["WorkflowDone"], Exception)


def test_the_stream_of_a_response_can_be_replaced_by_one_that_passes_it_on(spied: Spied) -> None:
    response = engine(streaming=True).query(QUERY)
    (run,) = spied.ids(".query-")
    assert spied.left[run] is response, "the user gets another object than the span exits with"
    assert isinstance(response, StreamingResponse)
    stream, parts = response.response_gen, list[str]()

    def followed() -> Iterator[str]:
        for part in stream:
            parts.append(part)
            yield part

    response.response_gen = followed()  # type: ignore[assignment]  # an iterator is all it needs

    assert str(response) == "".join(parts) != ""


def test_the_end_of_a_models_stream_is_an_event_with_the_id_of_its_span(
    spied: Spied, events: list[BaseEvent]
) -> None:
    stream = Echo().stream_complete(f"Query: {QUERY}\n")
    (span,) = spied.ids("Echo.stream_complete-")
    assert span in spied.left, "the span now ends with its stream"
    list(stream)

    ended = [each for each in events if isinstance(each, LLMCompletionEndEvent)]
    assert [each.span_id for each in ended] == [span]


class BreaksOff(Echo):
    """A model whose stream fails after it was returned."""

    def _answer(self, prompt: str) -> str:
        raise LookupError


def test_the_exception_of_a_models_stream_is_an_event_with_the_id_of_its_span(
    spied: Spied, events: list[BaseEvent]
) -> None:
    with pytest.raises(LookupError):
        list(BreaksOff().stream_complete(QUERY))

    (span,) = spied.ids("BreaksOff.stream_complete-")
    failed = [each for each in events if isinstance(each, ExceptionEvent)]
    assert [(each.span_id, type(each.exception)) for each in failed] == [(span, LookupError)]


async def test_a_custom_model_reads_its_synchronous_stream_for_the_asynchronous_one(
    spied: Spied,
) -> None:
    stream = await Echo(said="so").astream_complete(QUERY)
    assert [part async for part in stream]

    assert len(spied.ids("Echo.astream_complete-")) == 1
    assert len(spied.ids("Echo.stream_complete-")) == 1


def test_a_streamed_chat_says_who_writes_it_and_when_it_is_done(spied: Spied) -> None:
    chat = CondensePlusContextChatEngine.from_defaults(
        retriever=Shelf(),
        llm=Echo(said="so"),
        memory=memory_of([ChatMessage("before")]),
    )

    response = chat.stream_chat(QUERY)
    said = "".join(response.response_gen)

    assert response.is_writing_to_memory
    assert response.is_done
    assert response.exception is None
    assert response.response == said.strip() == "so"
    (writer,) = spied.ids("StreamingAgentChatResponse.write_response_to_history-")
    assert spied.entered[writer]["instance"] is response


def test_the_stream_of_a_chat_is_where_it_can_be_replaced() -> None:
    chat = SimpleChatEngine.from_defaults(llm=Echo(said="so"), memory=memory_of([]))

    response = chat.stream_chat(QUERY)

    assert response.chat_stream is not None
    assert response.achat_stream is None
    assert "".join(response.response_gen).strip() == "so"
