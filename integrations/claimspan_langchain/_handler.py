"""LangChain's callbacks, passed on to the capture by run id. Nothing is read here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from claimspan_langchain._reader import LangChainReader
from claimspan_tracing.adapters import (
    Capture,
    Key,
    Monitor,
    MonitorOptions,
    RunKind,
    default_monitor,
    open_capture,
)

__all__ = ["ClaimspanCallbackHandler"]

_Serialized = dict[str, Any] | None


class ClaimspanCallbackHandler(BaseCallbackHandler):
    """Captures every query of the chain it is attached to, and has a sample of them evaluated.

    Works on anything that takes ``config={"callbacks": [...]}``: LCEL chains, retrieval chains,
    LangGraph; ``invoke``, ``batch``, ``stream`` and their async forms, from any number of threads
    and tasks at once. One handler may serve the whole process. The chain returns, raises and
    streams the same with it and without it.
    """

    # On the loop's own thread: a hook takes microseconds, a hop to an executor takes longer.
    run_inline = True

    def __init__(
        self,
        monitor: Monitor | None = None,
        *,
        query_key: Key | None = None,
        response_key: Key | None = None,
        **options: Unpack[MonitorOptions],
    ) -> None:
        """Attach to a monitor.

        Args:
            monitor: Evaluates and writes the scores; None takes the one that the process shares.
            query_key: Where the user's question is in the root's input: a key, a dotted path such
                as ``messages.0.content``, or a callable that takes the input. None tries the usual
                shapes.
            response_key: Where the answer is in the root's output, in the same three forms.
            options: Keyword options of ``Monitor``, for a monitor of this handler's own.

        Raises:
            ConfigError: ``monitor`` and options are both given, or an option cannot work.
        """
        super().__init__()
        self.monitor = default_monitor(monitor, options)
        self._capture: Capture = open_capture(
            self.monitor, LangChainReader(query_key, response_key)
        )

    def on_chain_start(
        self,
        serialized: _Serialized,
        inputs: object,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, object] | None = None,
        **kwargs: Any,
    ) -> None:
        name = kwargs.get("name")
        self._capture.start(run_id, parent_run_id, RunKind.CHAIN, name, inputs, metadata)

    def on_chain_end(self, outputs: object, *, run_id: UUID, **kwargs: Any) -> None:
        # A stream learns its input while it runs: it stands here, not in on_chain_start.
        self._capture.end(run_id, outputs, inputs=kwargs.get("inputs"))

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._capture.fail(run_id, error, inputs=kwargs.get("inputs"))

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
        name = kwargs.get("name")
        self._capture.start(run_id, parent_run_id, RunKind.CHAIN, name, input_str, metadata)

    def on_tool_end(self, output: object, *, run_id: UUID, **kwargs: Any) -> None:
        self._capture.end(run_id, output)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._capture.fail(run_id, error)

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
        name = kwargs.get("name")
        self._capture.start(run_id, parent_run_id, RunKind.RETRIEVER, name, query, metadata)

    def on_retriever_end(self, documents: object, *, run_id: UUID, **kwargs: Any) -> None:
        self._capture.end(run_id, documents)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._capture.fail(run_id, error)

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
        name = kwargs.get("name")
        self._capture.start(run_id, parent_run_id, RunKind.GENERATOR, name, prompts, metadata)

    def on_chat_model_start(
        self,
        serialized: _Serialized,
        messages: object,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, object] | None = None,
        **kwargs: Any,
    ) -> None:
        name = kwargs.get("name")
        self._capture.start(run_id, parent_run_id, RunKind.GENERATOR, name, messages, metadata)

    def on_llm_end(self, response: object, *, run_id: UUID, **kwargs: Any) -> None:
        self._capture.end(run_id, response)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._capture.fail(run_id, error)
