"""LlamaIndex's engines over facts on buildings, and a monitor that captures their queries."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest
from llama_index.core import MockEmbedding, Settings
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle

import claimspan_llama_index
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, read
from li_pipelines import Script, Shelf, engine_of, nodes_of, text_of, word_counter
from pipelines import Passage

__all__ = ["Turns", "ask", "facts", "monitored", "offline", "rag", "seen"]


def facts(*numbers: int) -> list[NodeWithScore]:
    """Return facts as new nodes, the first ones with the best scores."""
    return nodes_of([Passage(FACTS[each], f"fact-{each}", 0.9 - 0.1 * each) for each in numbers])


class Turns(Shelf):
    """A retriever that returns other facts each time it is asked."""

    def __init__(self, *turns: tuple[int, ...]) -> None:
        super().__init__()
        self._turns = list(turns)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return facts(*self._turns.pop(0))


def rag(answer: str, *numbers: int, streaming: bool = False) -> RetrieverQueryEngine:
    """Build a query engine that finds facts and gives an answer."""
    return engine_of(Shelf(facts(*numbers)), Script(said=answer), streaming=streaming)


async def ask(engine: BaseQueryEngine, how: str) -> str:
    """Ask an engine ``TOWER``, asynchronously where ``how`` begins with an a, and read it all."""
    asked = engine.aquery(TOWER) if how.startswith("a") else None
    return await text_of(engine.query(TOWER) if asked is None else await asked)


@contextmanager
def offline(said: str = HIGH) -> Generator[None]:
    """Have LlamaIndex's defaults ask nothing of the network.

    Args:
        said: What the model says that LlamaIndex takes where it is given none.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "_llm", Script(said=said))
        patch.setattr(Settings, "_embed_model", MockEmbedding(embed_dim=2))
        patch.setattr(Settings, "_prompt_helper", word_counter())
        patch.setattr(Settings, "_node_parser", TokenTextSplitter(tokenizer=str.split))
        yield


@contextmanager
def monitored(said: str = HIGH) -> Generator[InMemoryMonitor]:
    """Attach a monitor that keeps its records; for ``said`` see ``offline``."""
    with offline(said), attached(claimspan_llama_index.instrument) as made:
        yield made


def seen(monitor: InMemoryMonitor) -> tuple[str, str, list[str], str]:
    """Return question, answer, chunks and status of the one record."""
    question, answer, chunks, status = read(monitor.only_record())
    return question, answer.strip(), chunks, status
