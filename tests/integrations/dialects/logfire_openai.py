"""A RAG pipeline traced by Logfire: a decorated function, and its instrumentation of OpenAI."""

import os

import logfire
from openai import OpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from shelf import QUESTION, prompt_of, search

logfire.configure(
    send_to_logfire=False,
    console=False,
    additional_span_processors=[SimpleSpanProcessor(OTLPSpanExporter(os.environ["TRACES_URL"]))],
)
client = OpenAI(base_url=os.environ["MODEL_URL"], api_key="none")
if os.environ.get("WITH") == "openinference":
    from openinference.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument()
else:
    logfire.instrument_openai(client)


@logfire.instrument("retrieve", record_return=True)
def retrieve(query: str) -> list[dict[str, str]]:
    return [{"id": id_, "text": text} for id_, text in search(query)]


@logfire.instrument("answer", record_return=True)
def answer(question: str) -> str:
    prompt = prompt_of(question, [each["text"] for each in retrieve(question)])
    said = client.chat.completions.create(
        model="scripted", messages=[{"role": "user", "content": prompt}]
    )
    return said.choices[0].message.content or ""


answer(QUESTION)
