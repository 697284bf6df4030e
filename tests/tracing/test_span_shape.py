"""How our spans look in a backend: names, status, documents, messages, and the bounds of them.

The spans are built from a job by OpenTelemetry's SDK, without a framework.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace import Span as SdkSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, Span, StatusCode, format_span_id

from claimspan import Chunk, RagRecord
from claimspan_tracing import Job, Status
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import GeneratorRun, Message, RetrieverRun
from claimspan_tracing.records import OpenSpans
from claimspan_tracing.write.sinks import without_content
from claimspan_tracing.write.spans import build_spans, with_span_ids

from support import Spans, attributes, ids

WHOLE_NAME = 64 + len("invoke_workflow ")
CHUNKS = tuple(Chunk(id=f"c{n}", text=f"text {n}", metadata={"page": n}) for n in range(3))


def retriever(chunks: tuple[Chunk, ...] = CHUNKS, source: str = "") -> RetrieverRun:
    return RetrieverRun(
        started=2,
        ended=3,
        query="q",
        chunks=chunks,
        id_sources=("document",) * len(chunks),
        found=len(chunks),
        source=source,
    )


FULL: Final[dict[str, Any]] = {
    **{"provider": "openai", "response_id": "i", "response_model": "m", "finish_reason": "stop"},
    **{"input_tokens": 1, "output_tokens": 1, "max_tokens": 1, "top_p": 1.0, "temperature": 0.0},
}
"""All that may be known of a call of a model."""


def generator(*messages: Message, model: str = "") -> GeneratorRun:
    return GeneratorRun(
        started=3, ended=4, prompt="p", completion="said", model=model, messages=messages
    )


def job_of(*runs: RetrieverRun | GeneratorRun, route: str = "bot") -> Job:
    chunks = next((run.chunks for run in runs if isinstance(run, RetrieverRun)), ())
    return Job(
        record=RagRecord(query="q", response="r", chunks=chunks),
        trace_id="1" * 32,
        span_id="1" * 16,
        trace_flags=1,
        route=route,
        started=1,
        ended=5,
        runs=runs,
    )


def opened(job: Job, root: Span | None = None, guard: Guard | None = None) -> OpenSpans:
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("test")
    return build_spans(job, root or tracer.start_span("invoke_workflow"), tracer, guard or Guard())


def whole(job: Job) -> Job:
    """The job of a monitor whose spans go to MLflow."""
    return replace(job, whole_values=True)


def built(job: Job) -> list[ReadableSpan]:
    """The root, then the spans of the runs."""
    spans = opened(job)
    sdk = [span for span in (spans.root, *spans.runs) if isinstance(span, SdkSpan)]
    assert len(sdk) == len(job.runs) + 1
    return [*sdk]


# --- names ---


def test_a_span_is_called_after_its_operation_and_what_it_works_with() -> None:
    spans = built(job_of(retriever(source="docs"), generator(model="gpt-4o-mini")))

    assert [span.name for span in spans] == [
        "invoke_workflow bot",
        "retrieval docs",
        "chat gpt-4o-mini",
    ]


def test_a_span_whose_subject_is_unknown_has_the_name_of_its_operation() -> None:
    spans = built(job_of(retriever(), generator(), route=""))

    assert [span.name for span in spans] == ["invoke_workflow", "retrieval", "chat"]


@pytest.mark.parametrize(
    ("route", "name"),
    [
        ("Prüfung", "invoke_workflow Prufung"),
        ("a\x1b[31m b\n\tc", "invoke_workflow a[31m b c"),
        ("\ud800", "invoke_workflow"),
        ("検索", "invoke_workflow"),
    ],
)
def test_a_name_is_printable_ascii_on_one_line(route: str, name: str) -> None:
    (root,) = built(job_of(route=route))

    assert root.name == name


def test_a_name_is_short_however_long_its_subject_is() -> None:
    (root,) = built(job_of(route="x" * 5000))

    assert root.name == ("invoke_workflow " + "x" * 64)
    assert len(root.name) == WHOLE_NAME


class Unnameable(NonRecordingSpan):
    """A span of another make, which refuses a new name."""

    def update_name(self, name: str) -> None:
        raise NotImplementedError


def test_a_span_that_refuses_its_name_costs_a_counted_fault_and_nothing_else() -> None:
    guard = Guard()
    bare = Unnameable(TracerProvider().get_tracer("t").start_span("x").get_span_context())

    spans = opened(job_of(retriever()), bare, guard)

    assert guard.faults == 1
    assert [isinstance(span, SdkSpan) for span in spans.runs] == [True]


# --- status ---


def statuses(job: Job) -> list[StatusCode]:
    return [span.status.status_code for span in built(job)]


def test_what_ended_without_an_error_is_ok() -> None:
    assert statuses(job_of(retriever(), generator())) == [StatusCode.OK] * 3


def test_what_failed_is_an_error_and_what_came_before_it_is_ok() -> None:
    failed = replace(generator(), error_type="TimeoutError")
    job = replace(job_of(retriever(), failed), error_type="TimeoutError", status=Status.APP_ERROR)

    assert statuses(job) == [StatusCode.ERROR, StatusCode.OK, StatusCode.ERROR]


@pytest.mark.parametrize("status", [Status.ABANDONED, Status.INTERRUPTED, Status.APP_ERROR])
def test_what_was_left_open_is_neither_good_nor_bad(status: Status) -> None:
    left = replace(generator(), completed=False)
    job = replace(job_of(retriever(), left), status=status)

    assert statuses(job) == [StatusCode.UNSET, StatusCode.OK, StatusCode.UNSET]


@pytest.mark.parametrize("status", [Status.NO_CONTEXT, Status.NO_ANSWER])
def test_a_pipeline_without_context_or_answer_has_ended_well(status: Status) -> None:
    assert statuses(replace(job_of(), status=status)) == [StatusCode.OK]


# --- documents ---


def test_a_retriever_shows_its_documents_as_its_output() -> None:
    _, span = built(job_of(retriever()))

    shown = attributes(span)
    assert json.loads(str(shown["output.value"])) == [
        {"page_content": f"text {n}", "id": f"c{n}"} for n in range(3)
    ]
    assert shown["output.mime_type"] == "application/json"
    assert shown["input.mime_type"] == "text/plain"


def test_for_mlflow_a_retriever_shows_the_metadata_of_its_documents_as_well() -> None:
    _, span = built(whole(job_of(retriever())))

    assert json.loads(str(attributes(span)["output.value"])) == [
        {"page_content": f"text {n}", "metadata": {"page": n}, "id": f"c{n}"} for n in range(3)
    ]


TEXTS = ("x" * 1500, 'say "so"\n' * 150, "検" * 500, "\\" * 1500)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(("for_mlflow", "most"), [(False, 1024), (True, 8 * 1024)])
def test_the_output_of_a_retriever_is_whole_json_of_few_bytes_with_every_document(
    text: str, for_mlflow: bool, most: int
) -> None:
    chunks = tuple(
        Chunk(id=f"{n}" * 900, text=text, metadata={"of": "m" * 5000}) for n in range(20)
    )
    _, span = built(replace(job_of(retriever(chunks)), whole_values=for_mlflow))

    output = str(attributes(span)["output.value"])
    assert len(output.encode()) <= most
    documents = json.loads(output)
    assert len(documents) == 20
    assert all(text.startswith(each["page_content"]) and each["page_content"] for each in documents)


def test_short_documents_leave_their_room_to_a_long_one() -> None:
    chunks = (*CHUNKS, Chunk(id="long", text="x" * 1900))
    _, short = built(job_of(retriever(chunks)))
    _, long = built(whole(job_of(retriever(chunks))))

    said = [json.loads(str(attributes(span)["output.value"]))[-1] for span in (short, long)]
    assert len(said[0]["page_content"]) > 800
    assert said[1]["page_content"] == "x" * 1900


def test_each_text_is_whole_on_its_span_once_and_in_its_value_only_the_beginning() -> None:
    text, prompt = "chunk " * 300, "read " * 1500
    messages = Message(role="system", text=prompt), Message(role="user", text="why?")
    chunk = Chunk(id="c", text=text)
    _, found, model = built(job_of(retriever((chunk,)), generator(*messages)))

    values = [str(each) for span in (found, model) for each in attributes(span).values()]
    assert [value.count(text) for value in values if text in value] == [1]
    assert [value.count(prompt) for value in values if prompt in value] == [1]
    assert len(str(attributes(found)["output.value"])) <= 1024
    assert len(str(attributes(model)["input.value"])) <= 1024


def test_a_retriever_that_found_nothing_shows_an_empty_list() -> None:
    _, span = built(job_of(retriever(())))

    assert attributes(span)["output.value"] == "[]"


# --- messages ---

ASKED = (Message(role="system", text="be brief"), Message(role="user", text="why?"))


def test_a_prompt_has_its_messages_with_roles_beside_its_text() -> None:
    _, span = built(job_of(generator(*ASKED)))

    shown = attributes(span)
    assert shown["llm.input_messages.0.message.role"] == "system"
    assert shown["llm.input_messages.0.message.content"] == "be brief"
    assert shown["llm.input_messages.1.message.role"] == "user"
    assert shown["llm.input_messages.1.message.content"] == "why?"
    assert shown["llm.output_messages.0.message.role"] == "assistant"
    assert shown["llm.output_messages.0.message.content"] == "said"


def test_the_input_of_a_model_is_its_messages_as_json_which_mlflow_shows_as_a_chat() -> None:
    _, span = built(job_of(generator(*ASKED)))

    shown = attributes(span)
    assert shown["input.mime_type"] == "application/json"
    assert json.loads(str(shown["input.value"])) == {
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "why?"},
        ]
    }


def test_the_input_of_a_model_stays_whole_json_where_its_messages_do_not_fit() -> None:
    long = [Message(role="user", text='"\n' * 3_000), Message(role="user", text="é" * 6_000)]
    _, span = built(whole(job_of(generator(ASKED[0], *long))))

    value = str(attributes(span)["input.value"])
    first, *said = [message["content"] for message in json.loads(value)["messages"]]
    assert len(value.encode()) <= 8 * 1024
    assert first == "be brief"
    assert all(full.text.startswith(text) for text, full in zip(said, long, strict=True))
    assert all(len(text.encode()) > 1_900 for text in said)


def test_the_input_of_a_model_shows_where_a_long_message_begins_and_where_it_ends() -> None:
    chunks_and_question = Message(role="user", text='Chunks: "é"\n' * 600 + "Why?")
    _, span = built(job_of(generator(ASKED[0], chunks_and_question)))

    value = str(attributes(span)["input.value"])
    first, last = [message["content"] for message in json.loads(value)["messages"]]
    assert len(value.encode()) <= 1024
    assert first == "be brief"
    assert last.startswith('Chunks: "é"')
    assert " … " in last
    assert last.endswith("Why?")


def test_messages_without_room_for_attributes_of_their_own_are_whole_in_the_input() -> None:
    chunks = tuple(
        Chunk(id=f"c{n}", text=f"text {n}", score=0.5, metadata={"page": n}) for n in range(20)
    )
    long = Message(role="user", text="why? " * 1000)
    job = job_of(retriever(chunks), replace(generator(*ASKED, long, model="m"), **FULL))
    reranked = job.record.model_copy(update={"chunks": chunks[::-1]})
    _, _, span = built(replace(job, record=reranked))

    messages = json.loads(str(attributes(span)["input.value"]))["messages"]
    assert messages[-1]["content"] == long.text


def test_the_input_of_a_model_is_its_prompt_where_nobody_knows_who_said_what() -> None:
    _, span = built(job_of(generator(ASKED[0], Message(role="", text="why?"))))

    assert attributes(span)["input.value"] == "p"
    assert "input.mime_type" not in attributes(span)


def test_a_model_that_takes_a_plain_text_has_no_messages() -> None:
    _, span = built(job_of(generator()))

    assert not [name for name in attributes(span) if "messages" in name]


def test_without_content_roles_stay_and_no_text_and_no_document_is_written() -> None:
    shown = without_content(job_of(retriever(), generator(*ASKED)))
    written = [attributes(span) for span in built(shown)]

    assert written[2]["llm.input_messages.1.message.role"] == "user"
    of_texts = ("content", ".value", "mime_type")
    assert [name for names in written for name in names if name.endswith(of_texts)] == []


def test_no_span_has_more_than_110_attributes_whatever_is_on_it() -> None:
    chunks = tuple(
        Chunk(id=f"c{n}", text=f"text {n}", score=0.5, metadata={"page": n}) for n in range(60)
    )
    messages = [Message(role="user", text=f"m{n}") for n in range(10)]
    full = replace(generator(*messages, model="m"), **FULL)
    job = job_of(replace(retriever(chunks, "s"), error_type="E"), replace(full, error_type="E"))
    reranked = job.record.model_copy(
        update={"chunks": chunks[::-1], "metadata": {"session_id": "s"}}
    )
    spans = built(replace(job, record=reranked))

    counts = [len(attributes(span)) for span in spans]
    # Later come two lists of numbers for each, two scores of the retriever, six of the generator.
    assert counts[1] + 4 <= 110
    assert counts[2] + 8 <= 110
    assert attributes(spans[2])["retrieval.documents.19.document.content"] == "text 40"


# --- ids ---


def test_each_run_knows_the_id_of_its_span() -> None:
    job = job_of(retriever(), generator())
    spans = opened(job)

    known = with_span_ids(job, spans)

    assert [run.span_id for run in known.runs] == [
        format_span_id(span.get_span_context().span_id) for span in spans.runs
    ]
    assert Job.from_json(known.to_json()) == known


def test_a_span_that_did_not_start_gives_its_run_no_id() -> None:
    class Refusing(SimpleSpanProcessor):
        def on_start(self, span: SdkSpan, parent_context: object = None) -> None:
            if span.name == "chat":
                raise ZeroDivisionError

    exported = Spans(InMemorySpanExporter())
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Refusing(exported.exporter))
    tracer = provider.get_tracer("test")
    job = job_of(retriever(), generator())
    spans = build_spans(job, tracer.start_span("root"), tracer, Guard())
    for span, ended in spans.ends():
        span.end(ended)

    found, missing = with_span_ids(job, spans).runs

    assert found.span_id == format_span_id(ids(exported.one("RETRIEVER")).span_id)
    assert missing.span_id == ""
