"""Runs pipelines of known provenance in the frameworks, in the ways in which each is written."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportMissingTypeStubs=false
# The frameworks leave some of their generics and decorators open.

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict

from haystack import Document as HaystackDocument
from haystack import Pipeline as HaystackPipeline
from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage
from haystack.tools.tool import Tool
from langchain.agents import create_agent
from langchain_core.documents import Document as LangChainDocument
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langchain_core.tools import StructuredTool
from langgraph.graph import StateGraph
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher

from hs_tools import PARAMETERS, Calls

from hs_scripts import Says
from hs_scripts import Shelf as HaystackShelf
from lc_pipelines import Script as LangChainScript
from lc_pipelines import Shelf as LangChainShelf
from lc_pipelines import calls
from li_agents import ask_agent
from li_pipelines import Script as LlamaIndexScript
from li_pipelines import Shelf as LlamaIndexShelf
from made_up_texts import Passage
from provenance import Pipeline, Step, Value

__all__ = ["HAYSTACK", "LANGCHAIN", "LLAMA_INDEX", "Way", "Ways"]

span = get_dispatcher("app_of_provenance_frameworks").span

Values = Mapping[str, Any]


Way = Callable[[Pipeline], object]
"""Runs a pipeline, and returns its answer."""


@dataclasses.dataclass(frozen=True)
class Ways:
    """How a pipeline is written in a framework."""

    in_full: Sequence[Way]
    """As a function, as a chain, as a graph, or whatever else there is."""

    as_a_tool: Way
    """All but its last step is a tool, which an agent calls before it says the answer."""


class NoContactError(Exception):
    """What the call of a model raises that fails."""


def _taken(step: Step, values: Values, plain: Callable[[Any], Value]) -> Any:
    """Return what a step makes of what earlier ones have made."""
    return step.make(*(plain(values[each]) for each in step.takes))


def _tool(found: str) -> Callable[[str], str]:
    def look_up(query: str) -> str:
        """Look something up."""
        return found

    return look_up


def _asking(way: Way, pipeline: Pipeline) -> Callable[[str], str]:
    """Return a tool that runs a pipeline up to the step before its last."""
    *steps, _ = pipeline.steps
    before = dataclasses.replace(pipeline, steps=tuple(steps), answer=steps[-1].name)

    def research(query: str) -> str:
        """Ask the researcher."""
        return str(way(before))

    return research


def _returned(pipeline: Pipeline, values: Values) -> Any:
    if not pipeline.beside:
        return values[pipeline.answer]
    beside = pipeline.beside[0]
    return {"answer": values[pipeline.answer], beside: values[beside]}


def _answer(returned: Any) -> object:
    return returned["answer"] if isinstance(returned, dict) else returned


# --- LangChain ----------------------------------------------------------------------------------


def _from_langchain(value: Any) -> Value:
    if isinstance(value, str):
        return value
    return [Passage(each.id, each.page_content) for each in value]


def _to_langchain(value: Value) -> Any:
    if isinstance(value, str):
        return value
    return [LangChainDocument(id=each.id, page_content=each.text) for each in value]


def _step_of_langchain(step: Step, values: Values) -> Any:
    made = _taken(step, values, _from_langchain)
    match step.kind:
        case "retrieve":
            return LangChainShelf(documents=_to_langchain(step.gives)).invoke(made)
        case "tool":
            tool = StructuredTool.from_function(_tool(step.gives.text))
            return tool.invoke({"query": made})
        case "model":
            system, user = made
            model = LangChainScript(lines=[step.gives or NoContactError()])
            with contextlib.suppress(NoContactError):
                return str(model.invoke([("system", system), ("human", user)]).content)
        case "code":
            return _to_langchain(made)


def _in_langchain(pipeline: Pipeline) -> dict[str, Any]:
    """Return what a pipeline is called with."""
    given = {name: _to_langchain(documents) for name, documents in pipeline.given.items()}
    return {"question": pipeline.question, **given}


def _langchain_function(pipeline: Pipeline) -> object:
    def answer(asked: dict[str, Any]) -> object:
        values = {**asked}
        for each in pipeline.steps:
            values[each.name] = _step_of_langchain(each, values)
        return _returned(pipeline, values)

    return _answer(RunnableLambda(answer).invoke(_in_langchain(pipeline)))


def _langchain_chain(pipeline: Pipeline) -> object:
    # Without documents, a chain is asked a question alone.
    called = _in_langchain(pipeline) if pipeline.given else pipeline.question
    chain: Runnable[Any, Any] = RunnableLambda(
        lambda asked: {"question": asked} if isinstance(asked, str) else asked
    )
    for each in pipeline.steps:
        made = partial(_step_of_langchain, each)
        chain |= RunnablePassthrough.assign(**{each.name: RunnableLambda[Any, Any](made)})
    chain |= RunnableLambda(lambda values: _returned(pipeline, values))
    return _answer(chain.invoke(called))


def _langgraph(pipeline: Pipeline) -> object:
    def node(each: Step) -> Callable[[Values], dict[str, Any]]:
        return lambda state: {_key(pipeline, each.name): _step_of_langchain(each, _named(state))}

    def _named(state: Values) -> Values:
        return {**state, pipeline.answer: state.get("answer")}

    names = ["question", *pipeline.given, *(_key(pipeline, each.name) for each in pipeline.steps)]
    state: Any = TypedDict("state", dict.fromkeys(names, Any), total=False)  # type: ignore[misc]  # made of data
    graph: Any = StateGraph(state)
    graph.add_sequence([(f"make_{each.name}", node(each)) for each in pipeline.steps])
    graph.set_entry_point(f"make_{pipeline.steps[0].name}")
    return _answer(graph.compile().invoke(_in_langchain(pipeline)))


def _key(pipeline: Pipeline, name: str) -> str:
    """The field of the state for what a step makes; that of the answer is called so."""
    return "answer" if name == pipeline.answer else name


def _langchain_agent(pipeline: Pipeline) -> object:
    tool = StructuredTool.from_function(_asking(_langchain_chain, pipeline))
    model = LangChainScript(lines=[calls("research", query="all"), pipeline.response])
    agent: Any = create_agent(model, [tool])
    return agent.invoke({"messages": [("user", pipeline.question)]})["messages"][-1].content


LANGCHAIN = Ways([_langchain_function, _langchain_chain, _langgraph], _langchain_agent)


# --- LlamaIndex ---------------------------------------------------------------------------------


def _from_llama_index(value: Any) -> Value:
    if isinstance(value, str):
        return value
    return [Passage(each.node.node_id, each.node.get_content()) for each in value]


def _to_llama_index(value: Value) -> Any:
    if isinstance(value, str):
        return value
    return [
        NodeWithScore(node=TextNode(id_=each.id, text=each.text), score=0.9 - 0.1 * place)
        for place, each in enumerate(value)
    ]


def _step_of_llama_index(step: Step, values: Values) -> Any:
    made = _taken(step, values, _from_llama_index)
    match step.kind:
        case "retrieve":
            return LlamaIndexShelf(_to_llama_index(step.gives)).retrieve(made)
        case "tool":
            return FunctionTool.from_defaults(_tool(step.gives.text)).call(made).content
        case "model":
            error = NoContactError() if step.gives is None else None
            with contextlib.suppress(NoContactError):
                model = LlamaIndexScript(said=step.gives, error=error)
                return model.complete("\n\n".join(made)).text
        case "code":
            return _to_llama_index(made)


def _given_llama_index(pipeline: Pipeline) -> dict[str, Any]:
    return {name: _to_llama_index(documents) for name, documents in pipeline.given.items()}


def _llama_index_function(pipeline: Pipeline) -> object:
    @span
    def answer(question: str, **given: Any) -> object:
        values = {"question": question, **given}
        for each in pipeline.steps:
            values[each.name] = _step_of_llama_index(each, values)
        return _returned(pipeline, values)

    return _answer(answer(pipeline.question, **_given_llama_index(pipeline)))


class Next(Event):
    """The step that is next, and what the earlier ones have made."""

    place: int
    made: dict[str, Any]


class _Steps(Workflow):
    """Runs one step of a pipeline after the other."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__()
        self.pipeline = pipeline

    @step
    async def begin(self, event: StartEvent) -> Next:
        names = ["question", *self.pipeline.given]
        return Next(place=0, made={name: event.get(name) for name in names})

    @step
    async def go_on(self, event: Next) -> Next | StopEvent:
        if event.place == len(self.pipeline.steps):
            return StopEvent(result=_returned(self.pipeline, event.made))
        each = self.pipeline.steps[event.place]
        made = _step_of_llama_index(each, event.made)
        return Next(place=event.place + 1, made={**event.made, each.name: made})


def _workflow(pipeline: Pipeline) -> object:
    async def run() -> object:
        given = _given_llama_index(pipeline)
        return await _Steps(pipeline).run(question=pipeline.question, **given)

    return _answer(asyncio.run(run()))


def _llama_index_agent(pipeline: Pipeline) -> object:
    ask = _asking(_llama_index_function, pipeline)

    def research(input: str) -> str:
        """Ask the researcher."""
        return ask(input)

    tools = [FunctionTool.from_defaults(research)]
    return asyncio.run(ask_agent(tools, pipeline.question, pipeline.response))


LLAMA_INDEX = Ways([_llama_index_function, _workflow], _llama_index_agent)


# --- Haystack -----------------------------------------------------------------------------------


def _from_haystack(value: Any) -> Value:
    match value:
        case str():
            return value
        case [ChatMessage() as reply]:
            return reply.text or ""
        case _:
            return [Passage(each.id, each.content) for each in value]


def _to_haystack(value: Value) -> Any:
    if isinstance(value, str):
        return value
    return [HaystackDocument(id=each.id, content=each.text) for each in value]


@component
class Code:
    """Makes of what earlier steps have made documents, a text, or the messages of a prompt."""

    def __init__(self, step: Step, output: str, kind: Any) -> None:
        self.step = step
        self.output = output
        inputs: dict[str, Any] = dict.fromkeys(step.takes, Any)
        component.set_input_types(self, **inputs)
        component.set_output_types(self, **{output: kind})

    def run(self, **values: Any) -> dict[str, Any]:
        made = _taken(self.step, values, _from_haystack)
        if self.output != "messages":
            return {self.output: _to_haystack(made)}
        system, user = made
        return {"messages": [ChatMessage.from_system(system), ChatMessage.from_user(user)]}


@component
class Result:
    """Returns the answer, and what was made beside it."""

    def __init__(self, beside: tuple[str, ...]) -> None:
        self.beside = beside[0]
        inputs: dict[str, Any] = dict.fromkeys(("answer", *beside), Any)
        component.set_input_types(self, **inputs)
        component.set_output_types(self, **{"answer": str, self.beside: str})

    def run(self, **values: Any) -> dict[str, Any]:
        return {each: _from_haystack(values[each]) for each in ("answer", self.beside)}


class _Components:
    """The components of a pipeline, in which each step knows where its output comes out."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.made = HaystackPipeline()
        given = {name: _to_haystack(documents) for name, documents in pipeline.given.items()}
        self.given = {"question": pipeline.question, **given}
        self.inputs: dict[str, dict[str, Any]] = {}
        self.outputs: dict[str, str] = {}
        for each in pipeline.steps:
            # A component that raises would end the pipeline.
            if each.kind != "model" or each.gives is not None:
                self.outputs[each.name] = self.add(each)
        if pipeline.beside:
            self.made.add_component("result", Result(pipeline.beside))
            self.made.connect(self.outputs[pipeline.answer], "result.answer")
            for beside in pipeline.beside:
                self.made.connect(self.outputs[beside], f"result.{beside}")

    def add(self, each: Step) -> str:
        match each.kind:
            # A tool that is no agent's is a search, which finds documents.
            case "retrieve" | "tool":
                found = [each.gives] if each.kind == "tool" else each.gives
                shelf = HaystackShelf(_to_haystack(found))
                self.made.add_component(each.name, shelf)
                self.connect(each, each.name, "query")
                return f"{each.name}.documents"
            case "model":
                prompt = f"prompt_of_{each.name}"
                self.made.add_component(prompt, Code(each, "messages", list[ChatMessage]))
                self.connect(each, prompt)
                self.made.add_component(each.name, Says(each.gives))
                self.made.connect(f"{prompt}.messages", f"{each.name}.messages")
                return f"{each.name}.replies"
            case "code":
                is_text = isinstance(each.gives, str)
                output = "text" if is_text else "documents"
                kind = str if is_text else list[HaystackDocument]
                self.made.add_component(each.name, Code(each, output, kind))
                self.connect(each, each.name)
                return f"{each.name}.{output}"

    def connect(self, each: Step, name: str, socket: str | None = None) -> None:
        for taken in each.takes:
            if taken in self.given:
                self.inputs.setdefault(name, {})[socket or taken] = self.given[taken]
            else:
                self.made.connect(self.outputs[taken], f"{name}.{socket or taken}")


def _components(pipeline: Pipeline) -> object:
    built = _Components(pipeline)
    returned = built.made.run(built.inputs)
    name, _, socket = built.outputs[pipeline.answer].partition(".")
    if pipeline.beside:
        name, socket = "result", "answer"
    return _from_haystack(returned[name][socket])


def _haystack_agent(pipeline: Pipeline) -> object:
    model: Any = Calls(pipeline.response, tool="research")
    tool = Tool("research", "Asks the researcher.", PARAMETERS, _asking(_components, pipeline))
    run = Agent(chat_generator=model, tools=[tool]).run
    return run([ChatMessage.from_user(pipeline.question)])["last_message"].text


HAYSTACK = Ways([_components], _haystack_agent)
