"""One answer of Haystack is one record: its question, its answer, and the chunks that were read."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from haystack import Document, Pipeline, SuperComponent, component
from haystack.components.agents import Agent
from haystack.components.builders import AnswerBuilder, ChatPromptBuilder, PromptBuilder
from haystack.components.generators.chat import FallbackChatGenerator
from haystack.components.joiners import BranchJoiner, DocumentJoiner, ListJoiner
from haystack.components.preprocessors import DocumentCleaner, DocumentSplitter
from haystack.components.retrievers import AutoMergingRetriever, SentenceWindowRetriever
from haystack.components.retrievers.in_memory import (
    InMemoryBM25Retriever,
    InMemoryEmbeddingRetriever,
)
from haystack.components.routers import ConditionalRouter
from haystack.components.validators import JsonSchemaValidator
from haystack.components.writers import DocumentWriter
from haystack.dataclasses import ChatMessage, StreamingChunk, ToolCall
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.tools import ComponentTool
from haystack.tools.tool import Tool
from pydantic import BaseModel

import claimspan_haystack
from claimspan.testing import ScriptedJudge
from claimspan_tracing.decide.facts import Facts
from claimspan_tracing.decide.sampling import Decision
from claimspan_tracing.job import GeneratorRun, RetrieverRun
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from hs_components import Embedder
from hs_pipelines import ASYNC_PIPELINE
from hs_scripts import (
    ANSWER,
    DOCUMENTS,
    FACTS,
    QUESTION,
    WAYS,
    Says,
    SaysText,
    Shelf,
    adapter,
    asking,
    chat_prompt,
    facts,
    first_reply,
    plain_rag,
    run_in,
)

WEB = Document(id="web", content="A newspaper of today says that the tower is 330 metres high.")

every_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudge()


class Gate:
    """A sampler that evaluates all, and holds the worker at its first record until it is opened."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()

    def decide(self, facts: Facts) -> Decision:
        self.entered.set()
        assert self.opened.wait(20)
        return Decision(sampled=True, rate=1.0, reason="all")


@pytest.fixture
def monitor(judge: ScriptedJudge) -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor(judge=judge) as made:
        undo = claimspan_haystack.instrument(made)
        yield made
        undo()


def read(record: CapturedRecord) -> tuple[str, str, list[str], str]:
    """Question, answer, texts of the chunks and status."""
    found = record.record
    texts = [chunk.text for chunk in found.chunks]
    return found.query, found.response, texts, str(record.status)


def asked(record: CapturedRecord) -> list[str]:
    """What the retrievers were asked."""
    return [run.query for run in record.job.runs if isinstance(run, RetrieverRun)]


def judged(record: CapturedRecord, chunks: list[str], answer: str = ANSWER) -> None:
    """Check that exactly this answer to the question was judged, by exactly these chunks."""
    assert read(record) == (QUESTION, answer, chunks, "evaluated")


def never_judged(monitor: InMemoryMonitor, judge: ScriptedJudge, *states: str) -> CapturedRecord:
    record = monitor.only_record()
    assert record.status in (states or ("no_answer",))
    assert record.record.response == ""
    assert (judge.checks, judge.extractions) == ([], [])
    return record


def documents_on_spans(monitor: InMemoryMonitor) -> list[str]:
    return [
        str(value)
        for span in monitor.spans()
        for key, value in (span.attributes or {}).items()
        if key.endswith(".document.content")
    ]


# --- nothing that happens afterwards changes a record --------------------------------------------


def shorten(outputs: dict[str, Any], data: dict[str, Any]) -> None:
    for document in outputs["shelf"]["documents"]:
        document.content = document.content[:10]
        document.meta.clear()


def change_answers(outputs: dict[str, Any], data: dict[str, Any]) -> None:
    answers = outputs["builder"]["answers"]
    answers[0].data = "changed"
    answers.append("another")
    outputs["builder"].clear()
    outputs.clear()


def reuse_data(outputs: dict[str, Any], data: dict[str, Any]) -> None:
    data["shelf"]["query"] = data["prompt"]["question"] = data["builder"]["query"] = "next"


def append_to_history(outputs: dict[str, Any], data: dict[str, Any]) -> None:
    history: list[ChatMessage] = data["llm"]["messages"]
    history.append(outputs["llm"]["replies"][0])
    history.append(ChatMessage.from_user("And the bridge?"))
    outputs["llm"]["replies"].append(ChatMessage.from_assistant("Something else."))


mutating = pytest.mark.filterwarnings("ignore:Mutating attribute")
"""Haystack warns of it since version 3, as applications did it before."""


def while_nobody_reads(run: Any, change: Any) -> CapturedRecord:
    """Run, change what went in and came out, and only then let the worker read it."""
    gate = Gate()
    with InMemoryMonitor(sample=gate) as monitor:
        undo = claimspan_haystack.instrument(monitor)
        try:
            plain_rag("First.").run(asking("first"))
            assert gate.entered.wait(20)
            change(*run())
        finally:
            undo()
            gate.opened.set()
        _, record = monitor.records()
    return record


@mutating
@every_way
@pytest.mark.parametrize("change", [shorten, change_answers, reuse_data])
def test_what_the_application_changes_after_the_run_leaves_the_record_as_it_was(
    way: str, change: Any
) -> None:
    pipeline = plain_rag()
    pipeline.add_component("builder", AnswerBuilder())
    pipeline.connect("llm.replies", "builder.replies")
    data = asking() | {"builder": {"query": QUESTION}}

    def run() -> tuple[dict[str, Any], dict[str, Any]]:
        return run_in(way, pipeline, data, include_outputs_from={"shelf"}), data

    judged(while_nobody_reads(run, change), FACTS)


def test_a_history_that_is_appended_to_leaves_the_record_as_it_was() -> None:
    pipeline = Pipeline()
    pipeline.add_component("llm", Says(ANSWER))
    data = {"llm": {"messages": [ChatMessage.from_user(QUESTION)]}}

    record = while_nobody_reads(lambda: (pipeline.run(data), data), append_to_history)

    assert read(record)[:2] == (QUESTION, ANSWER)
    (generator,) = record.job.runs
    assert isinstance(generator, GeneratorRun)
    assert len(generator.messages) == 1


# --- which answer, and by what -------------------------------------------------------------------


@every_way
def test_the_answer_of_a_plain_pipeline_is_judged_by_its_prompt(
    monitor: InMemoryMonitor, way: str
) -> None:
    run_in(way, plain_rag(), asking())

    judged(monitor.only_record(), FACTS)


def test_a_streamed_answer_is_judged_as_any_other(monitor: InMemoryMonitor) -> None:
    words: list[str] = []

    def hear(chunk: StreamingChunk) -> None:
        words.append(chunk.content)

    plain_rag().run(asking() | {"llm": {"streaming_callback": hear}})

    assert "".join(words).strip() == ANSWER
    judged(monitor.only_record(), FACTS)


GRADES = ["yes", "Yes.", '{"binary_score": "yes", "reason": "It is in the documents."}']


def graded_rag(grade: str, *, builds_answer: bool) -> Pipeline:
    pipeline = plain_rag()
    template = "Is this in the documents?\n" + DOCUMENTS + "{{ replies[0].text }}"
    pipeline.add_component("question_back", chat_prompt(template))
    pipeline.add_component("second", Says(grade))
    pipeline.connect("shelf.documents", "question_back.documents")
    pipeline.connect("llm.replies", "question_back.replies")
    pipeline.connect("question_back.prompt", "second.messages")
    if builds_answer:
        pipeline.add_component("builder", AnswerBuilder())
        pipeline.connect("llm.replies", "builder.replies")
    return pipeline


@every_way
@pytest.mark.parametrize("grade", GRADES)
@pytest.mark.parametrize("shows", ["builder", "llm", "nothing"])
def test_what_a_grader_says_after_the_answer_is_not_the_answer(
    monitor: InMemoryMonitor, way: str, grade: str, shows: str
) -> None:
    pipeline = graded_rag(grade, builds_answer=shows == "builder")
    data = asking() | ({"builder": {"query": QUESTION}} if shows == "builder" else {})
    run_in(way, pipeline, data, include_outputs_from={"llm"} if shows == "llm" else set())

    judged(monitor.only_record(), FACTS)


def test_a_short_answer_after_a_rewritten_question_is_no_grade(monitor: InMemoryMonitor) -> None:
    pipeline = Pipeline()
    pipeline.add_component("rewrite", SaysText("tower metres"))
    pipeline.add_component("shelf", Shelf(facts()))
    pipeline.add_component("first", adapter("{{ replies[0] }}"))
    pipeline.add_component("prompt", PromptBuilder(DOCUMENTS + "{{ short }}\n{{ question }}"))
    pipeline.add_component("llm", SaysText("Yes"))
    pipeline.connect("rewrite.replies", "first.replies")
    pipeline.connect("first.output", "shelf.query")
    pipeline.connect("first.output", "prompt.short")
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.prompt")
    pipeline.run({"rewrite": {"prompt": "Shorten it"}, "prompt": {"question": QUESTION}})

    record = monitor.only_record()
    judged(record, FACTS, "Yes")
    assert asked(record) == ["tower metres"]


class Height(BaseModel):
    answer: str
    metres: int


def as_model(replies: Any) -> Height:
    return Height(answer=first_reply(replies), metres=330)


def as_dict(replies: Any) -> dict[str, Any]:
    return {"metres": 330, "answer": first_reply(replies)}


def as_documents(replies: Any) -> list[Document]:
    return [Document(content=first_reply(replies))]


def test_an_answer_that_is_json_is_read_as_its_text(monitor: InMemoryMonitor) -> None:
    reply = json.dumps({"metres": 330, "answer": ANSWER})
    plain_rag(reply).run(asking())

    judged(monitor.only_record(), FACTS)


def test_an_answer_without_a_known_field_is_all_of_its_texts(monitor: InMemoryMonitor) -> None:
    plain_rag('```json\n{"height": "330 metres", "since": "March 2022", "n": 3}\n```').run(asking())

    judged(monitor.only_record(), FACTS, "330 metres\nMarch 2022")


@pytest.mark.parametrize(
    ("template", "kind"),
    [("{{ replies | as_dict }}", dict), ("{{ replies | as_model }}", Height)],
)
def test_a_structured_output_is_read_as_its_text(
    monitor: InMemoryMonitor, template: str, kind: type
) -> None:
    pipeline = plain_rag()
    made = adapter(template, kind, as_dict=as_dict, as_model=as_model)
    pipeline.add_component("adapter", made)
    pipeline.connect("llm.replies", "adapter.replies")
    pipeline.run(asking())

    judged(monitor.only_record(), FACTS)


# --- loops and fallbacks -------------------------------------------------------------------------


def test_a_draft_that_a_validator_sends_back_does_not_count(monitor: InMemoryMonitor) -> None:
    schema = {
        "type": "object",
        "required": ["answer"],
        "properties": {"answer": {"type": "string"}},
    }
    pipeline = Pipeline(max_runs_per_component=3)
    pipeline.add_component("shelf", Shelf(facts()))
    pipeline.add_component("prompt", chat_prompt())
    pipeline.add_component("again", BranchJoiner(list[ChatMessage]))
    pipeline.add_component("llm", Says("A draft of no use.", json.dumps({"answer": ANSWER})))
    pipeline.add_component("validator", JsonSchemaValidator(schema))
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "again")
    pipeline.connect("again", "llm.messages")
    pipeline.connect("llm.replies", "validator.messages")
    pipeline.connect("validator.validation_error", "again")
    pipeline.run(asking())

    judged(monitor.only_record(), FACTS)


def corrective() -> Pipeline:
    """The tutorial on conditional routing: the web is searched where the documents do not do."""
    asked_again = "Say no_answer, or answer by the documents.\n"
    routes: list[Any] = [
        {
            "condition": "{{ 'no_answer' in replies[0].text }}",
            "output": "{{ query }}",
            "output_name": "go_to_websearch",
            "output_type": str,
        },
        {
            "condition": "{{ 'no_answer' not in replies[0].text }}",
            "output": "{{ replies[0].text }}",
            "output_name": "answer",
            "output_type": str,
        },
    ]
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("shelf", Shelf(facts(1, 2)))
    pipeline.add_component("prompt", chat_prompt(asked_again + DOCUMENTS + "{{ question }}"))
    pipeline.add_component("llm", Says("no_answer"))
    pipeline.add_component("router", ConditionalRouter(routes))
    pipeline.add_component("web", Shelf([WEB]))
    pipeline.add_component("web_prompt", chat_prompt())
    pipeline.add_component("web_llm", Says(ANSWER))
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.connect("llm.replies", "router.replies")
    pipeline.connect("router.go_to_websearch", "web.query")
    pipeline.connect("router.go_to_websearch", "web_prompt.question")
    pipeline.connect("web.documents", "web_prompt.documents")
    pipeline.connect("web_prompt.prompt", "web_llm.messages")
    return pipeline


@every_way
def test_documents_that_a_fallback_replaces_do_not_count(
    monitor: InMemoryMonitor, way: str
) -> None:
    run_in(way, corrective(), asking() | {"router": {"query": QUESTION}})

    judged(monitor.only_record(), [str(WEB.content)])


def test_a_fixed_text_in_place_of_a_draft_is_the_answer(monitor: InMemoryMonitor) -> None:
    sorry = "I am sorry, I cannot say."
    routes: list[Any] = [
        {
            "condition": "{{ 'draft' in replies[0].text }}",
            "output": sorry,
            "output_name": "fallback",
            "output_type": str,
        },
        {
            "condition": "{{ True }}",
            "output": "{{ replies[0].text }}",
            "output_name": "answer",
            "output_type": str,
        },
    ]
    pipeline = plain_rag("A draft of no use.")
    pipeline.add_component("router", ConditionalRouter(routes))
    pipeline.connect("llm.replies", "router.replies")
    pipeline.run(asking())

    assert read(monitor.only_record())[:2] == (QUESTION, sorry)


# --- what is no query ----------------------------------------------------------------------------


def indexing(*, writes: bool = True) -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("cleaner", DocumentCleaner())
    splitter = DocumentSplitter(split_by="word", split_length=8, split_overlap=0)
    pipeline.add_component("splitter", splitter)
    pipeline.connect("cleaner.documents", "splitter.documents")
    if writes:
        pipeline.add_component("writer", DocumentWriter(InMemoryDocumentStore()))
        pipeline.connect("splitter.documents", "writer.documents")
    return pipeline


@component
class TextFileToDocument:
    """A converter, which is told where documents are."""

    @component.output_types(documents=list[Document])
    def run(self, sources: list[str]) -> dict[str, Any]:
        return {"documents": facts()}


@component
class Encyclopedia:
    """Takes a title as a retriever would take a question."""

    @component.output_types(documents=list[Document])
    def run(self, title: str) -> dict[str, Any]:
        return {"documents": facts()}


@pytest.mark.parametrize("writes", [True, False])
def test_building_an_index_is_no_query_and_its_corpus_is_on_no_span(
    monitor: InMemoryMonitor, judge: ScriptedJudge, writes: bool
) -> None:
    pipeline = indexing(writes=writes)
    pipeline.add_component("converter", TextFileToDocument())
    pipeline.connect("converter.documents", "cleaner.documents")
    pipeline.run({"converter": {"sources": ["a.txt"]}})

    never_judged(monitor, judge)
    assert documents_on_spans(monitor) == []


def test_what_is_looked_up_for_an_index_is_on_no_span(
    monitor: InMemoryMonitor, judge: ScriptedJudge
) -> None:
    pipeline = indexing()
    pipeline.add_component("pages", Encyclopedia())
    pipeline.connect("pages.documents", "cleaner.documents")
    pipeline.run({"pages": {"title": "Eiffel Tower"}})

    never_judged(monitor, judge)
    assert documents_on_spans(monitor) == []


def test_an_index_with_a_summary_of_each_document_is_no_query(
    monitor: InMemoryMonitor, judge: ScriptedJudge
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("prompt", chat_prompt("Sum up:\n" + DOCUMENTS))
    pipeline.add_component("llm", Says("A tower, a bridge and a tunnel."))
    summaries = adapter("{{ replies | as_documents }}", list[Document], as_documents=as_documents)
    pipeline.add_component("adapter", summaries)
    pipeline.add_component("writer", DocumentWriter(InMemoryDocumentStore()))
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.connect("llm.replies", "adapter.replies")
    pipeline.connect("adapter.output", "writer.documents")
    pipeline.run({"prompt": {"documents": facts()}})

    assert monitor.only_record().status == "no_answer"
    assert judge.checks == []


def hybrid() -> Pipeline:
    store = InMemoryDocumentStore()
    store.write_documents(
        [Document(id=each.id, content=each.content, embedding=[1.0, 0.5]) for each in facts()]
    )
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("embedder", Embedder())
    pipeline.add_component("vectors", InMemoryEmbeddingRetriever(store))
    pipeline.add_component("words", InMemoryBM25Retriever(store))
    pipeline.add_component("joiner", DocumentJoiner())
    pipeline.connect("embedder.embedding", "vectors.query_embedding")
    pipeline.connect("vectors", "joiner")
    pipeline.connect("words", "joiner")
    return pipeline


@every_way
def test_retrieval_alone_is_no_query(
    monitor: InMemoryMonitor, judge: ScriptedJudge, way: str
) -> None:
    run_in(way, hybrid(), {"embedder": {"text": QUESTION}, "words": {"query": QUESTION}})

    never_judged(monitor, judge)
    assert documents_on_spans(monitor) != []


@pytest.mark.parametrize("shows", [False, True])
def test_a_query_that_is_rewritten_for_retrieval_alone_is_no_answer(
    monitor: InMemoryMonitor, judge: ScriptedJudge, shows: bool
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("prompt", PromptBuilder("Write a passage on {{ question }}"))
    pipeline.add_component("llm", SaysText("The tower is 300 metres high."))
    pipeline.add_component("first", adapter("{{ replies[0] }}"))
    pipeline.add_component("embedder", Embedder())
    pipeline.add_component("shelf", Shelf(facts()))
    pipeline.connect("prompt.prompt", "llm.prompt")
    pipeline.connect("llm.replies", "first.replies")
    pipeline.connect("first.output", "embedder.text")
    pipeline.connect("first.output", "shelf.query")
    pipeline.run(
        {"prompt": {"question": QUESTION}},
        include_outputs_from={"llm", "first"} if shows else set(),
    )

    never_judged(monitor, judge)


@component
class FaithfulnessEvaluator:
    """As Haystack's own, with a scripted model."""

    @component.output_types(score=float, individual_scores=list[float], results=list[Any])
    def run(
        self, questions: list[str], contexts: list[list[str]], predicted_answers: list[str]
    ) -> dict[str, Any]:
        results = [{"statements": [answer], "score": 1.0} for answer in predicted_answers]
        return {"score": 1.0, "individual_scores": [1.0], "results": results}


def test_an_evaluation_is_no_query(monitor: InMemoryMonitor, judge: ScriptedJudge) -> None:
    pipeline = Pipeline()
    pipeline.add_component("faithfulness", FaithfulnessEvaluator())
    pipeline.run(
        {
            "faithfulness": {
                "questions": [QUESTION],
                "contexts": [FACTS],
                "predicted_answers": [ANSWER],
            }
        }
    )

    never_judged(monitor, judge)


# --- where the question is, and what is said before ----------------------------------------------


@pytest.mark.parametrize(
    "variables",
    [{"question": QUESTION}, {"user": {"question": QUESTION}, "filters": {"text": "x"}}],
)
def test_a_question_among_the_variables_of_a_template(
    monitor: InMemoryMonitor, variables: dict[str, Any]
) -> None:
    pipeline = Pipeline()
    name = "question" if "question" in variables else "user.question"
    template = [ChatMessage.from_user(DOCUMENTS + f"{{{{ {name} }}}}")]
    builder = ChatPromptBuilder(template, required_variables=["documents"])
    pipeline.add_component("prompt", builder)
    pipeline.add_component("llm", Says(ANSWER))
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run({"prompt": {"template_variables": variables, "documents": facts()}})

    judged(monitor.only_record(), FACTS)


HISTORY = [
    ChatMessage.from_user("How long is the bridge?"),
    ChatMessage.from_assistant("The bridge is 2460 metres long."),
]


def conversational(*replies: str) -> Pipeline:
    """The tutorial on conversations: the question is rephrased by the history."""
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("rephrase", PromptBuilder("Rephrase: {{ query }}"))
    pipeline.add_component("rewriter", SaysText(replies[0]))
    pipeline.add_component("first", adapter("{{ replies[0] }}"))
    pipeline.add_component("shelf", Shelf(facts()))
    pipeline.add_component("history", ListJoiner(list[ChatMessage]))
    pipeline.add_component("prompt", chat_prompt())
    pipeline.add_component("llm", Says(replies[1]))
    pipeline.connect("rephrase.prompt", "rewriter.prompt")
    pipeline.connect("rewriter.replies", "first.replies")
    pipeline.connect("first.output", "shelf.query")
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "history.values")
    pipeline.connect("history.values", "llm.messages")
    return pipeline


@every_way
def test_the_last_turn_is_the_question_and_its_rewriting_what_the_retriever_was_asked(
    monitor: InMemoryMonitor, way: str
) -> None:
    pipeline = conversational("height of the tower", ANSWER)
    data = {
        "rephrase": {"query": QUESTION},
        "prompt": {"question": QUESTION},
        "history": {"values": HISTORY},
    }
    run_in(way, pipeline, data)

    record = monitor.only_record()
    judged(record, FACTS)
    assert asked(record) == ["height of the tower"]


def test_the_last_human_turn_of_a_history_is_the_question(monitor: InMemoryMonitor) -> None:
    pipeline = Pipeline()
    pipeline.add_component("llm", Says(ANSWER))
    turns = [*HISTORY, ChatMessage.from_user(QUESTION)]
    pipeline.run({"llm": {"messages": turns}})

    assert read(monitor.only_record())[:2] == (QUESTION, ANSWER)


@component
class Memory:
    """A store of messages that returns a conversation."""

    @component.output_types(messages=list[ChatMessage])
    def run(self, chat: str) -> dict[str, Any]:
        return {"messages": HISTORY}


def test_a_turn_that_says_nothing_has_not_the_answer_of_the_one_before(
    monitor: InMemoryMonitor, judge: ScriptedJudge
) -> None:
    pipeline = conversational("height of the tower", "")
    pipeline.add_component("memory", Memory())
    pipeline.connect("memory.messages", "history.values")
    data = {
        "rephrase": {"query": QUESTION},
        "prompt": {"question": QUESTION},
        "memory": {"chat": "c1"},
    }
    pipeline.run(data, include_outputs_from={"memory"})

    never_judged(monitor, judge)


# --- agents and their tools ----------------------------------------------------------------------


@component
class Calls:
    """A chat model that calls a tool once, and then answers."""

    def __init__(self, answer: str = ANSWER, tool: str = "look_up") -> None:
        self.answer = answer
        self.tool = tool

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        if any(message.tool_call_results for message in messages):
            return {"replies": [ChatMessage.from_assistant(self.answer)]}
        call = ToolCall(tool_name=self.tool, arguments={"query": "tower"})
        return {"replies": [ChatMessage.from_assistant("Let me see.", tool_calls=[call])]}


def agent(tool: Any, answer: str = ANSWER, **options: Any) -> Agent:
    generator: Any = Calls(answer)
    return Agent(chat_generator=generator, tools=[tool], **options)


def look_up(query: str) -> str:
    return FACTS[0]


PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}}}
TEXT_TOOL = Tool("look_up", "Looks something up", PARAMETERS, look_up)


def test_an_agent_that_never_comes_to_an_answer_has_none(
    monitor: InMemoryMonitor, judge: ScriptedJudge
) -> None:
    pipeline = Pipeline()
    tool = ComponentTool(Shelf(facts()), name="look_up", description="Looks something up")
    pipeline.add_component("agent", agent(tool, max_agent_steps=1))
    pipeline.run({"agent": {"messages": [*HISTORY, ChatMessage.from_user(QUESTION)]}})

    # Before version 3 nothing shows what its tool found: no model has read it.
    never_judged(monitor, judge, "no_answer", "no_context")


def test_an_agent_over_a_retriever_is_judged_by_what_its_model_read(
    monitor: InMemoryMonitor,
) -> None:
    tool = ComponentTool(
        Shelf(facts(0, 1)),
        name="look_up",
        description="Looks something up",
        outputs_to_string={"source": "documents", "handler": joined},
        outputs_to_state={"documents": {"source": "documents"}},
    )
    pipeline = Pipeline()
    state = {"documents": {"type": list[Document]}}
    pipeline.add_component("agent", agent(tool, state_schema=state))
    pipeline.run({"agent": {"messages": [ChatMessage.from_user(QUESTION)]}})

    judged(monitor.only_record(), FACTS[:1])


def joined(documents: list[Document]) -> str:
    return str(documents[0].content)


# --- retrieval in Haystack's other ways ----------------------------------------------------------


def test_a_window_around_a_sentence_is_what_was_read(monitor: InMemoryMonitor) -> None:
    store = InMemoryDocumentStore()
    meta = [{"source_id": "s", "split_id": n, "split_idx_start": 100 * n} for n in range(3)]
    store.write_documents([Document(id=f"f{n}", content=FACTS[n], meta=meta[n]) for n in range(3)])
    pipeline = Pipeline()
    pipeline.add_component("words", InMemoryBM25Retriever(store, top_k=1))
    pipeline.add_component("window", SentenceWindowRetriever(store, window_size=1))
    pipeline.add_component("prompt", chat_prompt())
    pipeline.add_component("llm", Says(ANSWER))
    pipeline.connect("words.documents", "window.retrieved_documents")
    pipeline.connect("window.context_documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run({"words": {"query": QUESTION}, "prompt": {"question": QUESTION}})

    judged(monitor.only_record(), FACTS[:2])


def test_the_parent_of_merged_leaves_is_what_was_read(monitor: InMemoryMonitor) -> None:
    parent = Document(
        id="parent", content=" ".join(FACTS[:2]), meta={"__level": 1, "__children_ids": ["a", "b"]}
    )
    leaves = [
        Document(id=name, content=text, meta={"__level": 2, "__parent_id": "parent"})
        for name, text in zip("ab", FACTS, strict=False)
    ]
    for each in leaves:
        each.meta["__block_size"] = 10
    parent.meta["__block_size"] = 20
    parents = InMemoryDocumentStore()
    parents.write_documents([parent])
    pipeline = Pipeline()
    pipeline.add_component("shelf", Shelf(leaves))
    pipeline.add_component("merge", AutoMergingRetriever(parents, threshold=0.5))
    pipeline.add_component("prompt", chat_prompt())
    pipeline.add_component("llm", Says(ANSWER))
    pipeline.connect("shelf.documents", "merge.documents")
    pipeline.connect("merge.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run(asking())

    judged(monitor.only_record(), [" ".join(FACTS[:2])])


@pytest.mark.parametrize("score", ["0.9", float("nan"), True, None])
def test_a_score_or_metadata_of_any_type_loses_no_record(
    monitor: InMemoryMonitor, score: Any
) -> None:
    meta: Any = {"when": object(), 3: {"deep": [set("ab"), b"raw"]}, "n": 10**400}
    document = Document(id="odd", content=FACTS[0], score=score, meta=meta)
    plain_rag(shelf=Shelf([document])).run(asking())

    judged(monitor.only_record(), FACTS[:1])


@every_way
def test_one_pipeline_in_a_component_is_one_record(monitor: InMemoryMonitor, way: str) -> None:
    whole = SuperComponent(
        pipeline=plain_rag(),
        input_mapping={"query": ["shelf.query", "prompt.question"]},
        output_mapping={"llm.replies": "replies"},
    )
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("rag", whole)
    run_in(way, pipeline, {"rag": {"query": QUESTION}})

    judged(monitor.only_record(), FACTS)


# --- several answers, and evidence that is no document --------------------------------------------


@component
class Interview:
    """Asks an inner pipeline one question after the other."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    @component.output_types(report=str)
    def run(self, wishes: list[str]) -> dict[str, Any]:
        said = [self.pipeline.run(asking(wish))["llm"]["replies"][0].text for wish in wishes]
        return {"report": "\n".join(said)}


THREE = {"tower": facts(0), "bridge": facts(1), "tunnel": facts(2)}
ANSWERS = {
    "How high is the tower?": "It is 330 metres high.",
    "When was the bridge opened?": "It was opened in 2004.",
    "How long did the tunnel take?": "It took six years.",
}


@every_way
def test_each_answer_of_an_inner_pipeline_is_a_record_of_its_own(
    monitor: InMemoryMonitor, way: str
) -> None:
    inner = plain_rag(shelf=Shelf([], THREE), llm=Says(*ANSWERS.values()))
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("interview", Interview(inner))
    run_in(way, pipeline, {"interview": {"wishes": list(ANSWERS)}})

    outer, *records = monitor.records()
    assert outer.status == "several_answers"
    assert [read(record) for record in records] == [
        (question, answer, [FACTS[number]], "evaluated")
        for number, (question, answer) in enumerate(ANSWERS.items())
    ]


@component
class Notes:
    """Returns a plain text to answer from."""

    @component.output_types(found=str)
    def run(self, about: str) -> dict[str, Any]:
        return {"found": FACTS[0]}


def test_a_text_that_a_component_puts_into_the_prompt_is_evidence(monitor: InMemoryMonitor) -> None:
    pipeline = Pipeline()
    pipeline.add_component("notes", Notes())
    pipeline.add_component("prompt", chat_prompt("{{ context }}\n{{ question }}"))
    pipeline.add_component("llm", Says(ANSWER))
    pipeline.connect("notes.found", "prompt.context")
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run({"notes": {"about": "tower"}, "prompt": {"question": QUESTION}})

    judged(monitor.only_record(), FACTS[:1])


@pytest.mark.parametrize("name", ["context", "search_results", "sources", "known_facts"])
def test_a_text_that_is_given_by_hand_is_evidence(monitor: InMemoryMonitor, name: str) -> None:
    pipeline = Pipeline()
    pipeline.add_component("prompt", chat_prompt(f"{{{{ {name} }}}}\n{{{{ question }}}}"))
    pipeline.add_component("llm", Says(ANSWER))
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run({"prompt": {name: FACTS[0], "question": QUESTION}})

    judged(monitor.only_record(), FACTS[:1])


def test_the_windows_of_sentences_as_texts_are_evidence(monitor: InMemoryMonitor) -> None:
    store = InMemoryDocumentStore()
    meta = {"source_id": "s", "split_id": 0, "split_idx_start": 0}
    store.write_documents([Document(id="f0", content=FACTS[0], meta=meta)])
    pipeline = Pipeline()
    pipeline.add_component("words", InMemoryBM25Retriever(store, top_k=1))
    pipeline.add_component("window", SentenceWindowRetriever(store, window_size=1))
    template = "{% for each in windows %}{{ each }}{% endfor %}\n{{ question }}"
    pipeline.add_component("prompt", chat_prompt(template))
    pipeline.add_component("llm", Says(ANSWER))
    pipeline.connect("words.documents", "window.retrieved_documents")
    pipeline.connect("window.context_windows", "prompt.windows")
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run({"words": {"query": QUESTION}, "prompt": {"question": QUESTION}})

    judged(monitor.only_record(), FACTS[:1])


@pytest.mark.parametrize("way", ["run", "run_async"])
def test_what_a_tool_returns_as_text_is_what_its_agent_read(
    monitor: InMemoryMonitor, way: str
) -> None:
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("agent", agent(TEXT_TOOL))
    run_in(way, pipeline, {"agent": {"messages": [ChatMessage.from_user(QUESTION)]}})

    judged(monitor.only_record(), FACTS[:1])


@every_way
@pytest.mark.parametrize("given", ["the answer", "the documents alone"])
def test_a_title_or_a_grade_beside_the_answer_is_not_the_answer(
    monitor: InMemoryMonitor, way: str, given: str
) -> None:
    pipeline = plain_rag()
    pipeline.add_component("titles", chat_prompt("A title for: {{ replies[0].text }}"))
    pipeline.add_component("title", Says("The height of a tower"))
    pipeline.add_component("relevance", chat_prompt("Are these of use?\n" + DOCUMENTS))
    pipeline.add_component("z", Says("yes"))
    pipeline.connect("llm.replies", "titles.replies")
    pipeline.connect("titles.prompt", "title.messages")
    pipeline.connect("shelf.documents", "relevance.documents")
    pipeline.connect("relevance.prompt", "z.messages")
    pipeline.add_component("builder", AnswerBuilder())
    if given == "the answer":
        pipeline.connect("llm.replies", "builder.replies")
        data = asking() | {"builder": {"query": QUESTION}}
    else:
        pipeline.remove_component("builder")
        pipeline.remove_component("titles")
        pipeline.remove_component("title")
        data = asking()
    run_in(way, pipeline, data)

    judged(monitor.only_record(), FACTS)


@component
class Failing:
    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage],
        generation_kwargs: Any = None,
        tools: Any = None,
        streaming_callback: Any = None,
    ) -> dict[str, Any]:
        raise RuntimeError("the model is down")


@component
class Spare:
    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage],
        generation_kwargs: Any = None,
        tools: Any = None,
        streaming_callback: Any = None,
    ) -> dict[str, Any]:
        return {"replies": [ChatMessage.from_assistant(ANSWER)]}


def test_the_model_that_another_one_falls_back_to_gives_the_answer(
    monitor: InMemoryMonitor,
) -> None:
    models: list[Any] = [Failing(), Spare()]
    plain_rag(llm=FallbackChatGenerator(models)).run(asking())

    record = monitor.only_record()
    judged(record, FACTS)
    completions = [run.completion for run in record.job.runs if isinstance(run, GeneratorRun)]
    assert completions == [ANSWER]


def test_a_pipeline_that_only_routes_a_text_is_no_query(
    monitor: InMemoryMonitor, judge: ScriptedJudge
) -> None:
    route: Any = {
        "condition": "{{ True }}",
        "output": "{{ query }}",
        "output_name": "fast",
        "output_type": str,
    }
    pipeline = Pipeline()
    pipeline.add_component("router", ConditionalRouter([route]))
    pipeline.run({"router": {"query": QUESTION}})

    never_judged(monitor, judge)


def test_a_prompt_that_no_model_reads_is_no_answer(
    monitor: InMemoryMonitor, judge: ScriptedJudge
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("shelf", Shelf(facts()))
    pipeline.add_component("prompt", PromptBuilder(DOCUMENTS + "{{ question }}"))
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.run(asking())

    never_judged(monitor, judge)


def test_an_answer_whose_documents_are_also_stored_is_a_query(monitor: InMemoryMonitor) -> None:
    pipeline = plain_rag()
    pipeline.add_component("writer", DocumentWriter(InMemoryDocumentStore()))
    pipeline.connect("shelf.documents", "writer.documents")
    pipeline.run(asking())

    judged(monitor.only_record(), FACTS)
