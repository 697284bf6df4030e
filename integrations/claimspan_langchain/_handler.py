"""The callback handler: reports LangChain's runs to the capture, by run id.

For one pipeline, or attached to every pipeline of the process. The handler reads nothing of what it
is given. ``LangChainReader`` reads it later, on the worker.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from typing import Any, Final, Unpack, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers.context import register_configure_hook

from claimspan_langchain._documents import as_returned, with_texts
from claimspan_langchain._messages import Asked
from claimspan_langchain._reader import LangChainReader
from claimspan_tracing import semconv
from claimspan_tracing.adapters import (
    Capture,
    Key,
    Monitor,
    MonitorOptions,
    RunKind,
    default_monitor,
    is_mapping,
    is_stream_left,
    leave_out,
    open_capture,
    takes_place_of,
    warn_of_several,
)

EVENT_STREAM: Final = "ls_event_stream"
"""Key in the metadata of a root that ``astream_events`` runs. Internal, as all that begin so."""

_Serialized = dict[str, Any] | None

# A node of LangGraph runs with a config that holds the graph's loop. A query of another framework
# that begins in the node would keep it, with all of its state.
leave_out(cast(ContextVar[object], var_child_runnable_config), None)


class ClaimspanCallbackHandler(BaseCallbackHandler):
    """Captures every query of the pipeline that it is attached to.

    Works with everything that takes ``config={"callbacks": [...]}``: LCEL chains, retrieval chains
    and LangGraph; ``invoke``, ``batch``, ``stream`` and their asynchronous forms. One handler may
    serve any number of threads and tasks. It does not change what the pipeline returns, raises or
    streams.
    """

    def __init__(
        self,
        monitor: Monitor | None = None,
        *,
        query_key: Key | None = None,
        response_key: Key | None = None,
        **options: Unpack[MonitorOptions],
    ) -> None:
        """Create a handler that reports to a monitor.

        Args:
            monitor: Evaluates the records and writes the scores; None uses the monitor that the
                process shares.
            query_key: Where the user's question is in the input of the root run: a key, a dotted
                path such as ``messages.0.content``, or a callable that takes the input. None tries
                the usual shapes.
            response_key: Where the answer is in the output of the root run, in the same forms.
            options: Options of ``Monitor``; equal ones share a monitor.

        Raises:
            ConfigError: Both a monitor and options are given, or an option is invalid.
        """
        super().__init__()
        self.monitor = default_monitor(monitor, options)
        self._reader = LangChainReader(query_key, response_key)
        self._capture: Capture = open_capture(self.monitor, self._reader)

    def look_at(self, query_key: Key | None, response_key: Key | None) -> None:
        """Look for question and answer there from now on; None leaves it as it is."""
        self._reader.look_at(query_key, response_key)

    @property
    def run_inline(self) -> bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride] - LangChain only reads it
        """Whether LangChain calls the hooks on the event loop's thread, in asynchronous code.

        A hook takes microseconds, less than the executor thread that LangChain would use
        otherwise. Not where ``AsyncCallbackManager.on_llm_start`` asks: in langchain-core 0.3 to
        1.8 it calls the inline handlers alone if there is one, and all others would not hear that
        a completion model starts. What it calls then asks again, and runs this handler inline.
        """
        # Not ``inspect.currentframe``, which takes twice the time: LangChain asks at every event.
        caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented for CPython
        if "on_llm_start" not in caller.f_code.co_qualname:
            return True
        if caller.f_code.co_name == "<listcomp>":  # a frame of its own until Python 3.11
            caller = caller.f_back or caller
        # Beside a handler that is inline itself, such as LangSmith's, ours would be left out too.
        handlers = getattr(caller.f_locals.get("self"), "handlers", ())
        others = (each for each in handlers if not isinstance(each, ClaimspanCallbackHandler))
        return any(each.run_inline for each in others)

    def on_chain_start(
        self,
        serialized: _Serialized,
        inputs: object,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, object] | None = None,
        name: object = None,
        tags: object = None,
        **kwargs: Any,
    ) -> None:
        """Report the start of a chain, a function or a node of a graph."""
        attached = metadata
        if parent_run_id is None:
            attached = _with_tags(metadata, tags)
            inputs = as_returned(inputs)
            parent_run_id = _fallback_around(self._capture, inputs)
            if _is_event_stream():
                attached = {**(attached or {}), EVENT_STREAM: True}
        parent = _key(parent_run_id)
        self._capture.start(_key(run_id), parent, RunKind.CHAIN, name, inputs, attached)

    def on_chain_end(
        self, outputs: object, *, run_id: UUID, inputs: object = None, **kwargs: Any
    ) -> None:
        """Report the end of a chain."""
        # A streaming chain starts with the input ``{"input": ""}``: LangChain collects the real
        # input while the stream runs, and passes it here.
        if kwargs.get("parent_run_id") is None:
            # Only a stream has its input now, and LangChain ends it alike if its reader has left.
            with self._capture.guard:
                run = None if inputs is None else self._capture.run(_key(run_id))
                if run is not None:
                    run.tree.is_left = is_stream_left("_transform_stream_with_config", "iterator")
            inputs = None if inputs is None else as_returned(inputs)
            self._capture.end(_key(run_id), as_returned(outputs), inputs=inputs)
        else:
            self._capture.end(_key(run_id), with_texts(outputs), inputs=inputs)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Report the exception that ended a chain."""
        if isinstance(error, asyncio.CancelledError):
            run = self._capture.run(_key(run_id))
            # ``astream_events`` cancels its task where the reader leaves: that is an abandoned
            # stream. Told by its start, as LangChain reports the end from a task of its own.
            if run is not None and EVENT_STREAM in run.metadata:
                error = GeneratorExit()
        self._capture.fail(_key(run_id), error, inputs=kwargs.get("inputs"))

    def on_tool_start(
        self,
        serialized: _Serialized,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, object] | None = None,
        **kwargs: Any,
    ) -> None:
        """Report the start of a tool; a retriever that it calls reports itself."""
        name = kwargs.get("name")
        attached = metadata if parent_run_id else _with_tags(metadata, kwargs.get("tags"))
        # The arguments by their names where a tool has several: ``input_str`` is their repr.
        asked = kwargs.get("inputs") or input_str
        parent = _key(parent_run_id)
        self._capture.start(_key(run_id), parent, RunKind.TOOL, name, asked, attached)

    def on_tool_end(self, output: object, *, run_id: UUID, **kwargs: Any) -> None:
        """Report what a tool returned."""
        self._capture.end(_key(run_id), output)

    def on_retriever_start(
        self,
        serialized: _Serialized,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, object] | None = None,
        **kwargs: Any,
    ) -> None:
        """Report the start of a retriever."""
        name = kwargs.get("name")
        attached = metadata if parent_run_id else _with_tags(metadata, kwargs.get("tags"))
        parent = _key(parent_run_id)
        self._capture.start(_key(run_id), parent, RunKind.RETRIEVER, name, query, attached)

    def on_retriever_end(self, documents: object, *, run_id: UUID, **kwargs: Any) -> None:
        """Report the documents that a retriever returned."""
        self._capture.end(_key(run_id), with_texts(documents))

    def on_llm_start(
        self,
        serialized: _Serialized,
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, object] | None = None,
        **kwargs: Any,
    ) -> None:
        """Report the start of a completion model."""
        name = kwargs.get("name")
        parent = _key(parent_run_id)
        self._capture.start(
            _key(run_id), parent, RunKind.GENERATOR, name, prompts, _with_top_p(metadata, kwargs)
        )

    def on_chat_model_start(
        self,
        serialized: _Serialized,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, object] | None = None,
        **kwargs: Any,
    ) -> None:
        """Report the start of a chat model."""
        name = kwargs.get("name")
        asked = [Asked(prompt) for prompt in messages]
        parent = _key(parent_run_id)
        self._capture.start(
            _key(run_id), parent, RunKind.GENERATOR, name, asked, _with_top_p(metadata, kwargs)
        )

    # When a reader abandons a stream, LangChain ends the model after the root. The capture ignores
    # a run whose tree is closed, so the late call needs no case of its own.
    def on_llm_end(self, response: object, *, run_id: UUID, **kwargs: Any) -> None:
        """Report what a model answered."""
        self._capture.end(_key(run_id), response)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Report the exception that ended a model call, a tool or a retriever."""
        self._capture.fail(_key(run_id), error)

    on_tool_error = on_retriever_error = on_llm_error


def _key(run_id: UUID | None) -> Hashable:
    """Return the key of a run in the capture: its id, as a number.

    The hash of a ``UUID`` is a method in Python, and a query asks for it dozens of times.
    """
    return getattr(run_id, "int", run_id)  # an application may name a run by something else


def _fallback_around(capture: Capture, inputs: object) -> UUID | None:
    """Return the run of the ``with_fallbacks`` that a chain without a parent is an attempt of.

    ``RunnableWithFallbacks.invoke`` in langchain-core 0.3 to 1.8 passes its own callbacks to what
    it calls, and leaves itself as the parent in the context alone.
    """
    around = var_child_runnable_config.get()
    callbacks = around.get("callbacks") if around else None
    parent_id: UUID | None = getattr(callbacks, "parent_run_id", None)
    parent = None if parent_id is None else capture.run(_key(parent_id))
    if parent is None:
        return None
    with capture.guard:  # values of the user's are compared
        # By its input, which may have more beside it: what the attempt before has raised. Another
        # chain that is called there, with callbacks of its own, is no attempt.
        given = parent.inputs
        if given == inputs:
            return parent_id
        if is_mapping(inputs) and is_mapping(given):
            return parent_id if all(inputs.get(key) == given[key] for key in given) else None
    return None


def _is_event_stream() -> bool:
    """Whether this code runs in the task in which ``astream_events`` runs a chain."""
    # Most chains have no event loop, and ``asyncio.current_task`` raises without one.
    loop = asyncio._get_running_loop()  # pyright: ignore[reportPrivateUsage] - documented, for code that asks often
    if loop is None:
        return False
    task = asyncio.current_task(loop)
    name: object = getattr(task and task.get_coro(), "__qualname__", "")
    return isinstance(name, str) and name.endswith(".consume_astream")


def _with_top_p(
    metadata: Mapping[str, object] | None, given: Mapping[str, object]
) -> Mapping[str, object] | None:
    """Return the metadata of a model with the one parameter that LangChain does not put there."""
    parameters = given.get("invocation_params")
    top_p = parameters.get("top_p") if is_mapping(parameters) else None
    return metadata if top_p is None else {**(metadata or {}), "ls_top_p": top_p}


def _with_tags(metadata: Mapping[str, object] | None, tags: object) -> Mapping[str, object] | None:
    """Return the metadata of a query with its tags, which LangChain keeps apart."""
    return {**(metadata or {}), semconv.TAGS: tags} if tags else metadata


class _NoHandler(BaseCallbackHandler):
    """Does nothing. LangChain makes one if a slot is emptied between its two reads.

    ``_configure`` in langchain-core 0.3 to 1.8 reads a hook twice: ``if var.get() is not None``,
    then ``var.get() or handler_class()``. Without a class, the second line raises ``TypeError`` in
    the user's pipeline when ``undo`` runs between the two.
    """


class _Slot:
    """Takes the place of the context variable in a configure hook of LangChain.

    All threads see a context variable that has a default, but the default cannot be removed; the
    handler of a slot can. LangChain never forgets a hook, so an emptied slot is used again.
    """

    def __init__(self) -> None:
        self.handler: ClaimspanCallbackHandler | None = None
        _slots.append(self)
        # LangChain calls nothing but ``get()`` on the variable.
        variable = cast(ContextVar[object], self)
        register_configure_hook(variable, inheritable=True, handle_class=_NoHandler)

    def get(self) -> ClaimspanCallbackHandler | None:
        return self.handler


_slots: Final[list[_Slot]] = []
_lock: Final = threading.RLock()


def instrument(
    monitor: Monitor | None = None,
    *,
    query_key: Key | None = None,
    response_key: Key | None = None,
    **options: Unpack[MonitorOptions],
) -> Callable[[], None]:
    """Capture every query of this process, in all threads and tasks.

    A pipeline that has a handler of the same monitor in its own config is captured once. A monitor
    is attached once, however often this is called, and one that means the same as one that is
    attached takes its place, as if a cell of a notebook runs again.

    Args:
        monitor: Evaluates the records and writes the scores; None uses the monitor that the
            process shares.
        query_key: Where the user's question is; as in ``ClaimspanCallbackHandler``. What is given
            for a monitor that is attached already takes the place of what it had.
        response_key: Where the answer is; likewise.
        options: Options of ``Monitor``; equal ones share a monitor.

    Returns:
        A callable that detaches the handler. Calling it twice is safe, and so is calling it while
        other threads run pipelines: runs that have started are captured to their end.

    Raises:
        ConfigError: Both a monitor and options are given, or an option is invalid.
    """
    handler = ClaimspanCallbackHandler(
        monitor, query_key=query_key, response_key=response_key, **options
    )
    with _lock:
        used = [(slot, slot.handler) for slot in _slots if slot.handler is not None]
        same = next((pair for pair in used if pair[1].monitor is handler.monitor), None)
        if same is not None:
            # Another slot for the same monitor would capture nothing more, and cost as much again.
            slot, handler = same
            handler.look_at(query_key, response_key)
        else:
            for each, before in used:
                if takes_place_of(handler.monitor, before.monitor):
                    each.handler = None
            slot = next((each for each in _slots if each.handler is None), None) or _Slot()
            slot.handler = handler
            warn_of_several(sum(each.handler is not None for each in _slots))

    def undo() -> None:
        with _lock:
            # The slot may serve a later ``instrument`` by now.
            if slot.handler is handler:
                slot.handler = None

    return undo
