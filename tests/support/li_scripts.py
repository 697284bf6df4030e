"""A model for LlamaIndex that answers by a script, and the facts that tests retrieve."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false
# LlamaIndex leaves some generics and its decorators open; what leaves this file is typed.

from __future__ import annotations

from typing import Any, Final

from llama_index.core.llms import (
    CompletionResponse,
    CompletionResponseGen,
    CustomLLM,
    LLMMetadata,
)
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import Field

from li_pipelines import Shelf, engine_of, nodes_of
from pipelines import Passage

__all__ = ["FACTS", "Script", "Turns", "facts", "rag"]

FACTS: Final = [
    "The tower in Paris is 330 metres high since an antenna was added to it in March 2022.",
    "The bridge at Millau was opened in December 2004 and carries a motorway over the Tarn.",
    "The tunnel under the Channel took six years to dig and was opened to trains in 1994.",
]


def facts(*numbers: int) -> list[NodeWithScore]:
    """Return facts as new nodes, the first ones with the best scores."""
    return nodes_of([Passage(FACTS[each], f"fact-{each}", 0.9 - 0.1 * each) for each in numbers])


class Script(CustomLLM):
    """Answers with the first rule whose words stand in the prompt, else with ``said``.

    A rule with a list answers with one line after the other.
    """

    said: str = ""
    rules: dict[str, Any] = Field(default_factory=dict[str, Any])

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="script", context_window=100_000)

    def _answer(self, prompt: str) -> str:
        lines = (line for words, line in self.rules.items() if words in prompt)
        found: Any = next(lines, self.said)
        if isinstance(found, list):
            lines_left: list[str] = found
            return lines_left.pop(0)
        return str(found)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self._answer(prompt))

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        def words() -> CompletionResponseGen:
            text = ""
            for word in self._answer(prompt).split(" "):
                text += word + " "
                yield CompletionResponse(text=text, delta=word + " ")

        return words()


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
