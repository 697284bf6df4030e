"""What a tool says as it fails is no evidence, however the model is told of it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# The frameworks leave some of their generics open.

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools.tool import Tool
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from llama_index.core.tools import FunctionTool
from openinference.instrumentation.haystack import HaystackInstrumentor
from openinference.instrumentation.langchain import LangChainInstrumentor
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

import claimspan_haystack
import claimspan_langchain
import claimspan_llama_index

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged, texts
from lc_pipelines import Script, calls
from li_agents import agents_look_around, ask_agent
from oi_spans import monitored, traced

AWAY = "the index of the archive did not answer within thirty seconds"
PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}}}

pytestmark = pytest.mark.filterwarnings("ignore:Calling .text")


def archive(query: str) -> str:
    """Ask the archive."""
    raise TimeoutError(AWAY)


def encyclopedia(query: str) -> str:
    """Ask the encyclopedia."""
    return FACTS[0]


@wrap_tool_call
def in_words(request: Any, handler: Any) -> Any:
    """Tell the model of an error as LangChain's guide does, with no word of it in the status."""
    try:
        return handler(request)
    except TimeoutError as error:
        told = f"Tool error: Please check your input and try again. ({error})"
        return ToolMessage(told, tool_call_id=request.tool_call["id"])


def ask_langchain(tools: Sequence[StructuredTool] = ()) -> None:
    tools = tools or [StructuredTool.from_function(each) for each in (archive, encyclopedia)]
    said = [calls("archive", query="tower"), calls("encyclopedia", query="tower"), HIGH]
    agent: Any = create_agent(Script(lines=said), tools, middleware=[in_words])
    agent.invoke({"messages": [("user", TOWER)]})


@component
class BothGenerator:
    """A chat model that calls two tools at once, and then answers."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        if any(message.tool_call_results for message in messages):
            return {"replies": [ChatMessage.from_assistant(HIGH)]}
        both = [ToolCall(name, {"query": "it"}) for name in ("archive", "encyclopedia")]
        return {"replies": [ChatMessage.from_assistant(tool_calls=both)]}


def ask_haystack() -> None:
    tools = [Tool(e.__name__, str(e.__doc__), PARAMETERS, e) for e in (archive, encyclopedia)]
    generator: Any = BothGenerator()
    agent = Agent(chat_generator=generator, tools=tools, raise_on_tool_invocation_failure=False)
    agent.run([ChatMessage.from_user(TOWER)])


def ask_llama_index() -> None:
    def lost(input: str) -> str:
        """Ask the archive."""
        return archive(input)

    def found(input: str) -> str:
        """Ask the encyclopedia."""
        return encyclopedia(input)

    tools = [FunctionTool.from_defaults(each) for each in (lost, found)]
    asyncio.run(ask_agent(tools, TOWER, HIGH))


@agents_look_around
@pytest.mark.parametrize(
    ("instrument", "ask"),
    [
        (claimspan_langchain.instrument, ask_langchain),
        (claimspan_llama_index.instrument, ask_llama_index),
        (claimspan_haystack.instrument, ask_haystack),
    ],
)
def test_the_error_of_a_tool_is_no_evidence(instrument: Any, ask: Callable[[], None]) -> None:
    with attached(instrument) as monitor:
        ask()

        judged(monitor.only_record(), FACTS[:1])


@agents_look_around
@pytest.mark.parametrize(
    ("instrumentor", "ask"),
    [
        (LangChainInstrumentor, ask_langchain),
        (LlamaIndexInstrumentor, ask_llama_index),
        (HaystackInstrumentor, ask_haystack),
    ],
)
def test_the_error_of_a_tool_is_no_evidence_in_spans_of_openinference(
    instrumentor: Any, ask: Callable[[], None]
) -> None:
    with monitored() as monitor, traced(monitor, instrumentor()):
        ask()

        judged(monitor.only_record(), FACTS[:1])


def short_of_words(query: str) -> str:
    """Ask a service that says no more than a number as it fails."""
    raise TimeoutError("330")


@pytest.mark.parametrize(
    ("fails", "finding"),
    [
        (archive, f"On 3 May {AWAY}. {' '.join(FACTS)} {' '.join(FACTS)} {' '.join(FACTS)}"),
        (short_of_words, FACTS[0]),
    ],
    ids=["a long finding", "an error of one word"],
)
def test_a_finding_is_evidence_though_an_error_has_said_words_of_it(
    fails: Callable[[str], str], finding: str
) -> None:
    def found(query: str) -> str:
        """Ask the encyclopedia."""
        return finding

    tools = [
        StructuredTool.from_function(fails, name="archive"),
        StructuredTool.from_function(found, name="encyclopedia"),
    ]
    with attached(claimspan_langchain.instrument) as monitor:
        ask_langchain(tools)

        assert finding in texts(monitor.only_record())
