"""Names and behaviours of LangChain and LangGraph that we lean on, and nobody documents.

One test each, on the real package. A test that fails after an upgrade names what has moved; what
breaks with it stands in ``docs/leaned_on.md``, in the row that names the test.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

from langchain_classic.chains import create_retrieval_chain
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableGenerator, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

import claimspan_langchain
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.adapters import is_stream_left

from lc_graphs import interrupted_graph
from lc_pipelines import Echo, Shelf, documents_for, rag_chain
from support import MonitorFactory

QUERY: Final = "the question"


class Heard(BaseCallbackHandler):
    """Keeps the keyword arguments of the callbacks, by the callback's name."""

    run_inline = True

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.threads: set[int] = set()

    def of(self, callback: str) -> list[Mapping[str, Any]]:
        return [kwargs for name, kwargs in self.calls if name == callback]

    def _hear(self, callback: str, kwargs: Mapping[str, Any]) -> None:
        self.calls.append((callback, kwargs))
        self.threads.add(threading.get_ident())

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        self._hear("on_chain_start", kwargs | {"given": args[1]})

    def on_chain_end(self, *args: Any, **kwargs: Any) -> None:
        self._hear("on_chain_end", kwargs)

    def on_chain_error(self, *args: Any, **kwargs: Any) -> None:
        self._hear("on_chain_error", kwargs | {"error": args[0]})

    def on_retriever_start(self, *args: Any, **kwargs: Any) -> None:
        self._hear("on_retriever_start", kwargs)

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self._hear("on_chat_model_start", kwargs)


def test_langchain_asks_a_hook_that_is_no_context_variable_for_the_handler(
    make_monitor: MonitorFactory,
) -> None:
    def ours() -> list[BaseCallbackHandler]:
        handlers = CallbackManager.configure().inheritable_handlers
        return [each for each in handlers if isinstance(each, ClaimspanCallbackHandler)]

    undo = claimspan_langchain.instrument(make_monitor())
    attached = ours()
    undo()

    assert len(attached) == 1, "register_configure_hook no longer takes what has only get()"
    assert ours() == []


def test_a_stream_of_langchain_starts_without_its_input_and_ends_with_it() -> None:
    heard = Heard()

    list(rag_chain().stream(QUERY, {"callbacks": [heard]}))

    assert heard.of("on_chain_start")[0]["given"] != QUERY, "the input is no longer late"
    assert heard.of("on_chain_end")[-1]["inputs"] == QUERY, "the late input has moved"


async def test_langchain_calls_an_inline_handler_on_the_thread_of_the_loop() -> None:
    heard = Heard()

    await rag_chain().ainvoke(QUERY, {"callbacks": [heard]})

    assert heard.threads == {threading.get_ident()}


class Named(Echo):
    model_name: str = "model-1"


def test_langchain_names_store_model_and_provider_in_the_metadata_of_a_run() -> None:
    heard = Heard()
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_texts(["text"])

    store.as_retriever().invoke(QUERY, {"callbacks": [heard]})
    Named().invoke(QUERY, {"callbacks": [heard]})

    searched = heard.of("on_retriever_start")[0]["metadata"]
    asked = heard.of("on_chat_model_start")[0]["metadata"]
    assert searched["ls_vector_store_provider"] == "InMemoryVectorStore"
    assert asked["ls_model_name"] == "model-1"
    assert asked["ls_provider"] == "named"


def test_a_retrieval_chain_returns_the_documents_of_its_prompt_under_context() -> None:
    chain: Any = create_retrieval_chain(Shelf(), RunnableLambda(lambda _: "said"))

    documents = documents_for(QUERY)
    assert chain.invoke({"input": QUERY})["context"] == documents


def test_a_graph_that_waits_says_so_in_its_output_and_by_the_name_of_an_exception() -> None:
    heard = Heard()

    output = interrupted_graph().invoke(
        {"question": QUERY}, {"callbacks": [heard], "configurable": {"thread_id": "1"}}
    )

    assert "__interrupt__" in output
    failed = [type(kwargs["error"]).__name__ for kwargs in heard.of("on_chain_error")]
    assert failed == ["GraphInterrupt"]


def test_a_function_that_streams_holds_the_stream_that_its_reader_left() -> None:
    ends: list[bool] = []

    class Looking(BaseCallbackHandler):
        run_inline = True

        def on_chain_end(self, *args: Any, **kwargs: Any) -> None:
            ends.append(is_stream_left("_transform_stream_with_config", "iterator"))

    def words(given: Iterator[str]) -> Iterator[str]:
        for _ in given:
            yield from ("one ", "two ")

    parts = RunnableGenerator(words).stream(QUERY, {"callbacks": [Looking()]})
    next(parts)
    parts.close()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue] - streams are generators
    assert ends == [True]

    list(RunnableGenerator(words).stream(QUERY, {"callbacks": [Looking()]}))
    assert ends == [True, False]
