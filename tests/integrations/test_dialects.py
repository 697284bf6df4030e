"""What others have traced in their own words is read as the record that their program was.

The spans in ``dialects`` were written by real libraries; ``dialects/README.md`` says by which.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace import Span as SdkSpan
from opentelemetry.trace import Span, SpanKind, set_span_in_context, use_span
from opentelemetry.util.types import AnyValue

from claimspan_openinference import why_no_record
from claimspan_openinference._dialects import DIALECTS
from claimspan_openinference._documents import reranked, retrieved
from claimspan_openinference._kinds import Attributes
from claimspan_openinference._messages import answered, messages_of, prompted
from claimspan_openinference._translation import in_openinference, say_what_to_set
from claimspan_tracing.otlp.decoding import spans_of_json

from captured import texts
from linear_time import grows_linearly
from oi_spans import ai, generate, monitored
from support import attributes, ids

WRITTEN: Final = Path(__file__).parent / "dialects"
DOCS: Final = Path(__file__).parents[2] / "docs"

QUESTION: Final = "How long is the Drava?"
ANSWER: Final = "The Drava is 725 kilometres long."
DRAVA: Final = (
    "The Drava rises in South Tyrol and is 725 kilometres long, and flows into the Danube."
)
SAVA: Final = "The Sava is a river of the western Balkans, and flows into the Danube in Belgrade."
MURA: Final = "The Mura rises in the Hohe Tauern, and flows into the Drava near Legrad."
TOGETHER: Final = f"{DRAVA}\n\n{SAVA}"
"""A retriever that made no span is known by the prompt alone."""

SESSION: Final = "session-7"
OWN: Final = "an id of its own"
"""What pydantic-ai writes: an id that it makes for each conversation."""

RECORDS: Final[dict[str, tuple[list[str], str]]] = {
    "haystack": ([DRAVA, MURA], ""),
    "haystack_agent": ([f"{DRAVA}\n{MURA}"], ""),
    "langchain_js": ([DRAVA, SAVA], SESSION),
    "langfuse": ([DRAVA, SAVA], SESSION),
    "langfuse_langchain": ([DRAVA, SAVA], SESSION),
    "langsmith": ([DRAVA, SAVA], SESSION),
    "mastra": ([DRAVA, MURA], SESSION),
    "logfire_openai": ([DRAVA, SAVA], ""),
    "logfire_openinference": ([DRAVA, SAVA], ""),
    "logfire_pydantic_ai": ([DRAVA, MURA], OWN),
    "mlflow": ([DRAVA, SAVA], ""),
    "openllmetry_chroma": ([DRAVA, SAVA], SESSION),
    "openllmetry_langchain": ([DRAVA, SAVA], SESSION),
    "openllmetry_numbered": ([DRAVA, MURA], SESSION),
    "openllmetry_prompt": ([DRAVA, SAVA], SESSION),
    "openllmetry_tool": ([DRAVA, MURA], SESSION),
    "otel_openai_latest": ([DRAVA, SAVA], SESSION),
    "pydantic_ai_2": ([DRAVA, MURA], OWN),
    "pydantic_ai_3": ([DRAVA, MURA], OWN),
    "typescript": ([DRAVA, MURA], SESSION),
    "vercel6_prompt": ([TOGETHER], SESSION),
    "vercel6_tool": ([DRAVA, MURA], SESSION),
    "vercel7_legacy": ([DRAVA, MURA], SESSION),
    "vercel7_prompt": ([TOGETHER], SESSION),
    "vercel7_tool": ([DRAVA, MURA], SESSION),
}
"""Chunks and session of the record in each file; question and answer are always the same."""

SILENT: Final = {
    "haystack_off": "HAYSTACK_CONTENT_TRACING_ENABLED=true",
    "openllmetry_off": "TRACELOOP_TRACE_CONTENT=true",
    "vercel6_off": "recordInputs",
    "otel_openai": "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only",
}
"""Files whose programs were not told to write texts, and what to set."""


def written(name: str) -> Sequence[ReadableSpan]:
    return spans_of_json((WRITTEN / f"{name}.json").read_text("utf-8")).spans


def replay(provider: TracerProvider, spans: Sequence[ReadableSpan]) -> None:
    """Start and end spans as their program did, in the order of their times."""
    by_id = {ids(each).span_id: each for each in spans}

    def depth(span: ReadableSpan) -> int:
        above = by_id.get(span.parent.span_id) if span.parent is not None else None
        return 0 if above is None else 1 + depth(above)

    starts = [(each.start_time or 0, 0, depth(each), each) for each in spans]
    ends = [(each.end_time or 0, 1, -depth(each), each) for each in spans]
    made: dict[int, Span] = {}
    for _, is_end, _, each in sorted([*starts, *ends], key=lambda event: event[:3]):
        if is_end:
            span = made[ids(each).span_id]
            for event in each.events:
                span.add_event(event.name, event.attributes, event.timestamp)
            span.set_status(each.status)
            span.end(each.end_time)
            continue
        above = None if each.parent is None else made.get(each.parent.span_id)
        scope = each.instrumentation_scope
        made[ids(each).span_id] = provider.get_tracer(
            "" if scope is None else scope.name
        ).start_span(
            each.name,
            None if above is None else set_span_in_context(above),
            each.kind,
            each.attributes,
            start_time=each.start_time,
        )


@pytest.mark.parametrize("name", RECORDS)
def test_a_program_traced_in_a_dialect_is_the_one_record_that_it_was(name: str) -> None:
    chunks, session = RECORDS[name]
    with monitored() as monitor:
        replay(monitor.provider, written(name))
        record = monitor.only_record()

    assert (record.record.query, record.record.response) == (QUESTION, ANSWER)
    assert texts(record) == chunks
    found = str(record.record.metadata.get("session.id", ""))
    assert found if session is OWN else found == session


@pytest.mark.parametrize("name", SILENT)
def test_texts_that_a_dialect_leaves_out_are_named_once_with_what_to_set(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    say_what_to_set.cache_clear()
    with monitored() as monitor, caplog.at_level(logging.WARNING, "claimspan"):
        for _ in range(2):
            replay(monitor.provider, written(name))
        states = {str(each.status) for each in monitor.records()}

    assert states <= {"no_answer", "no_context"}
    told = [each.getMessage() for each in caplog.records if "without texts" in each.getMessage()]
    assert len(told) == 1
    assert SILENT[name] in told[0]


def test_no_program_that_writes_texts_is_told_to_write_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    say_what_to_set.cache_clear()
    for name in RECORDS:
        for each in written(name):
            in_openinference(each)

    assert caplog.messages == []


def test_a_span_of_openinference_or_of_no_ai_is_left_as_it_is() -> None:
    own = written("langchain_js")
    provider = TracerProvider()
    others = [provider.get_tracer("http").start_span("GET", attributes={"http.route": "/"})]

    assert all(in_openinference(each) is each for each in own)
    assert all(in_openinference(each) is each for each in others if isinstance(each, ReadableSpan))


def spans_of(
    *events: tuple[str, dict[str, str]], **values: AnyValue
) -> tuple[ReadableSpan, Attributes]:
    """Return a span with attributes and events, and its attributes in OpenInference's words."""
    span = TracerProvider().get_tracer("app").start_span("chat")
    assert isinstance(span, SdkSpan)
    span.set_attributes({name.replace("__", "."): value for name, value in values.items()})
    for name, told in events:
        span.add_event(name, told)
    return span, attributes(in_openinference(span))


def test_messages_in_events_of_a_span_are_read_as_those_in_its_attributes() -> None:
    _, found = spans_of(
        ("gen_ai.system.message", {"content": "Be brief."}),
        ("gen_ai.user.message", {"content": QUESTION}),
        ("gen_ai.choice", {"message": json.dumps({"role": "assistant", "content": ANSWER})}),
        gen_ai__operation__name="chat",
    )

    assert prompted(found) == f"Be brief.\n{QUESTION}"
    assert answered(found) == ANSWER


def test_parts_that_an_event_has_as_json_are_read_as_parts() -> None:
    told = {"toolResult": {"toolUseId": "a", "content": [{"text": DRAVA}]}}
    _, found = spans_of(
        ("gen_ai.user.message", {"content": json.dumps([{"text": QUESTION}])}),
        ("gen_ai.tool.message", {"content": json.dumps([told])}),
        ("gen_ai.choice", {"message": json.dumps([{"text": ANSWER}])}),
        gen_ai__operation__name="chat",
    )

    assert messages_of(found) == [("user", QUESTION), ("tool", DRAVA)]
    assert answered(found) == ANSWER


def test_what_a_model_thinks_is_no_answer_and_an_image_is_no_question() -> None:
    image = {"type": "blob", "mime_type": "image/png", "content": "aGVsbG8="}
    asked = [image, {"type": "text", "content": QUESTION}]
    said = [
        {"type": "reasoning", "content": "The user asks of a river."},
        {"type": "text", "content": ANSWER},
    ]
    _, found = spans_of(
        gen_ai__operation__name="chat",
        gen_ai__input__messages=json.dumps([{"role": "user", "parts": asked}]),
        gen_ai__output__messages=json.dumps([{"role": "assistant", "parts": said}]),
    )

    assert (prompted(found), answered(found)) == (QUESTION, ANSWER)


@pytest.mark.parametrize("output", [[DRAVA, SAVA], {"documents": [DRAVA, SAVA]}])
def test_texts_that_a_retriever_has_returned_are_its_documents(output: object) -> None:
    _, found = spans_of(
        langfuse__observation__type="retriever", langfuse__observation__output=json.dumps(output)
    )

    assert [each.text for each in retrieved(found)] == [DRAVA, SAVA]


def test_an_event_with_all_messages_is_read_as_well() -> None:
    said = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
    asked = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
    told = {"gen_ai.input.messages": asked, "gen_ai.output.messages": said}
    event = "gen_ai.client.inference.operation.details"
    _, found = spans_of(
        (event, {name: json.dumps(each) for name, each in told.items()}),
        gen_ai__operation__name="chat",
    )

    assert (prompted(found), answered(found)) == (QUESTION, ANSWER)


REPLIES: Final[dict[str, tuple[object, object]]] = {
    "chat completions": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]},
        {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]},
    ),
    "responses": (
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]},
        {
            "output": [
                {"type": "reasoning", "summary": []},
                {"role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]},
            ]
        },
    ),
    "anthropic": (
        {"messages": [{"role": "user", "content": QUESTION}]},
        {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
    ),
    "texts": ({"prompt": QUESTION}, ANSWER),
}
"""Requests and replies as clients of models write them."""


@pytest.mark.parametrize("name", REPLIES)
def test_what_a_client_was_given_and_has_returned_are_messages(name: str) -> None:
    given, returned = REPLIES[name]
    _, found = spans_of(
        mlflow__spanType='"CHAT_MODEL"',
        mlflow__spanInputs=json.dumps(given),
        mlflow__spanOutputs=json.dumps(returned),
    )

    assert (prompted(found), answered(found)) == (QUESTION, ANSWER)


RESULTS: Final[dict[str, object]] = {
    "opentelemetry": {"role": "user", "parts": [{"type": "tool_call_response", "response": DRAVA}]},
    "vercel": {
        "role": "tool",
        "content": [{"type": "tool-result", "output": {"type": "text", "value": DRAVA}}],
    },
    "anthropic": {
        "role": "user",
        "content": [{"type": "tool_result", "content": [{"type": "text", "text": DRAVA}]}],
    },
    "responses": {"type": "function_call_output", "output": DRAVA},
    "haystack": {"role": "tool", "content": [{"tool_call_result": {"result": DRAVA}}]},
    "bedrock": {"role": "user", "content": [{"toolResult": {"content": [{"text": DRAVA}]}}]},
    "chat completions": {"role": "tool", "content": DRAVA},
}


@pytest.mark.parametrize("name", RESULTS)
def test_what_a_tool_has_told_a_model_is_no_word_of_its_user(name: str) -> None:
    asked = {"role": "user", "content": QUESTION}
    _, found = spans_of(
        langfuse__observation__type="generation",
        langfuse__observation__input=json.dumps([asked, RESULTS[name]]),
    )

    assert messages_of(found) == [("user", QUESTION), ("tool", DRAVA)]


def test_a_retriever_that_was_given_documents_is_a_reranker() -> None:
    listed = [{"id": "a", "content": DRAVA}, {"id": "b", "content": SAVA}]
    _, found = spans_of(
        haystack__component__output_spec=json.dumps({"documents": {}}),
        haystack__component__input=json.dumps({"query": QUESTION, "documents": listed}),
        haystack__component__output=json.dumps({"documents": listed[:1]}),
    )

    assert found["openinference.span.kind"] == "RERANKER"
    assert [each.text for each in reranked(found)] == [DRAVA]


@pytest.mark.parametrize(
    ("name", "chunks"),
    [("otel_openai_latest", [TOGETHER]), ("openllmetry_numbered", [f"{DRAVA}\n{MURA}"])],
)
def test_models_that_are_traced_alone_are_judged_by_what_their_prompts_hold(
    name: str, chunks: list[str]
) -> None:
    models = [each for each in written(name) if "chat" in each.name]
    starts, ends = ([getattr(each, at) for each in models] for at in ("start_time", "end_time"))
    with monitored() as monitor:
        tracer = monitor.provider.get_tracer("http")
        request = tracer.start_span("POST /ask", kind=SpanKind.SERVER, start_time=min(starts))
        with use_span(request):
            replay(monitor.provider, models)
        request.end(max(ends))
        record = monitor.only_record()

    assert (record.record.query, record.record.response) == (QUESTION, ANSWER)
    assert texts(record) == chunks


def test_a_function_that_returns_texts_is_no_retriever_and_one_with_documents_is() -> None:
    _, texts_alone = spans_of(
        traceloop__span__kind="task", traceloop__entity__output=json.dumps([DRAVA, SAVA])
    )
    _, found = spans_of(
        traceloop__span__kind="task", traceloop__entity__output=json.dumps([{"text": DRAVA}])
    )

    assert texts_alone["openinference.span.kind"] == "CHAIN"
    assert found["openinference.span.kind"] == "RETRIEVER"


@pytest.mark.parametrize(
    ("output", "is_told"), [([], False), ({"documents": []}, False), ([{"id": "a"}], True)]
)
def test_a_retriever_that_found_nothing_is_not_told_to_write_texts(
    output: object, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    say_what_to_set.cache_clear()
    spans_of(mlflow__spanType='"RETRIEVER"', mlflow__spanOutputs=json.dumps(output))

    assert bool(caplog.messages) is is_told


def test_documents_of_opentelemetry_on_a_span_of_openinference_are_read() -> None:
    with monitored() as monitor:
        tracer = monitor.provider.get_tracer("app")
        with ai(tracer, "CHAIN", {"input.value": QUESTION, "output.value": ANSWER}):
            with ai(tracer, "CHAIN", {"input.value": QUESTION}) as span:
                span.set_attribute("gen_ai.retrieval.documents", json.dumps([{"content": DRAVA}]))
            generate(tracer, f"{DRAVA}\n{QUESTION}", ANSWER)
        record = monitor.only_record()

    assert texts(record) == [DRAVA]


@pytest.mark.parametrize(
    "value",
    [
        "[" * 100_000,
        "[" * 900 + "]" * 900,
        '{"messages":' * 900 + "1" + "}" * 900,
        '{"messages": [null, 7, {"content": {"a": 1}}, {"role": [], "parts": [[[]]]}]}',
        '{"args": {}, "kwargs": []}',
        '{"choices": 5}',
        "",
    ],
)
@pytest.mark.parametrize("name", ["langfuse.observation.input", "gen_ai.input.messages", "return"])
def test_no_value_of_an_attribute_raises(name: str, value: str) -> None:
    kinds = {"langfuse.observation.type": "generation", "logfire.json_schema": value}
    spans_of(**kinds, **{name: value})


def test_the_time_to_read_messages_grows_as_their_number_does() -> None:
    def read(listed: str) -> None:
        last = '{"role": "tool", "content": ""}'
        spans_of(
            langfuse__observation__type="generation",
            langfuse__observation__input=f"[{listed.rpartition('},')[0]}}}, {last}]",
        )

    assert grows_linearly(read, f'{{"role": "user", "content": "{QUESTION}"}},', 400_000)


@pytest.mark.parametrize("name", ["haystack_off", "otel_openai"])
def test_why_a_trace_is_no_record_is_told_in_the_words_of_its_dialect(name: str) -> None:
    # Its retriever and its model are known without their texts.
    assert why_no_record(written(name)) == "no answer that certainly rests on what was retrieved"


def test_every_file_is_read_by_a_test_and_says_no_place_of_its_machine() -> None:
    files = {path.stem: path.read_text("utf-8") for path in WRITTEN.glob("*.json")}

    assert {*files} == {*RECORDS, *SILENT}
    # Nor does a library's own path, which would be absolute: it names the machine.
    assert not [name for name, text in files.items() if re.search(r'"(/|[A-Z]:\\\\)\w', text)]


def test_the_page_has_each_dialect_with_what_to_set() -> None:
    page = (DOCS / "dialects.md").read_text("utf-8")
    rows = {row.split("|")[1].strip(): row for row in page.splitlines() if row.startswith("|")}

    assert {each.name for each in DIALECTS} | {"OpenInference"} == {*rows} - {"dialect", "---"}
    assert all(each.contents in rows[each.name] for each in DIALECTS)


def test_the_tutorial_has_the_programs_that_wrote_its_spans() -> None:
    page = (DOCS / "typescript.md").read_text("utf-8")

    for path in (WRITTEN / "typescript").iterdir():
        assert f"```ts\n{path.read_text('utf-8')}```" in page


def test_every_file_and_program_stands_in_the_table_of_them() -> None:
    table = (WRITTEN / "README.md").read_text("utf-8")
    programs = {path.name for path in WRITTEN.iterdir() if path.suffix in (".py", ".mjs")}

    assert {name for name in programs if name not in table} == {
        "shelf.py",
        "shelf.mjs",
        "traced.mjs",
    }
    for name in (*RECORDS, *SILENT):
        head, _, tail = name.rpartition("_")
        assert f"`{name}`" in table or (f"`{head}_" in table and f"`_{tail}`" in table), name
