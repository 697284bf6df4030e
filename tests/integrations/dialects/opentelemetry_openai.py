"""OpenTelemetry's own instrumentation of OpenAI, and a span of retrieval by hand."""

import json
import os

from openai import OpenAI
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from shelf import QUESTION, SESSION, prompt_of, search

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(os.environ["TRACES_URL"])))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument()
tracer = trace.get_tracer("app")
client = OpenAI(base_url=os.environ["MODEL_URL"], api_key="none")


def retrieve(query: str) -> list[str]:
    with tracer.start_as_current_span("retrieval shelf") as span:
        found = search(query)
        listed = [{"id": id_, "content": text} for id_, text in found]
        span.set_attribute("gen_ai.operation.name", "retrieval")
        span.set_attribute("gen_ai.data_source.id", "shelf")
        span.set_attribute("gen_ai.retrieval.query.text", query)
        span.set_attribute("gen_ai.retrieval.documents", json.dumps(listed))
        return [text for _, text in found]


with tracer.start_as_current_span("invoke_workflow answer") as root:
    root.set_attribute("gen_ai.operation.name", "invoke_workflow")
    root.set_attribute("gen_ai.conversation.id", SESSION)
    prompt = prompt_of(QUESTION, retrieve(QUESTION))
    client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": prompt}])
