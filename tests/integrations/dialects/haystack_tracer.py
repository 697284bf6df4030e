"""A RAG pipeline of Haystack's that its own OpenTelemetry tracer traces."""

import os

from haystack import Document, Pipeline, tracing
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.utils import Secret
from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from shelf import INSTRUCTION, QUESTION, TEXTS

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(os.environ["TRACES_URL"])))
trace.set_tracer_provider(provider)
tracing.enable_tracing(OpenTelemetryTracer(trace.get_tracer("haystack")))

store = InMemoryDocumentStore()
store.write_documents([Document(id=id_, content=text) for id_, text in TEXTS.items()])
TEMPLATE = (
    INSTRUCTION
    + "\n{% for d in documents %}{{ d.content }}\n{% endfor %}\nQuestion: {{ question }}"
)
pipeline = Pipeline()
pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=2))
pipeline.add_component("prompt", ChatPromptBuilder([ChatMessage.from_user(TEMPLATE)]))
pipeline.add_component(
    "model",
    OpenAIChatGenerator(
        model="scripted",
        api_key=Secret.from_token("none"),
        api_base_url=os.environ["MODEL_URL"],
    ),
)
pipeline.connect("retriever.documents", "prompt.documents")
pipeline.connect("prompt.prompt", "model.messages")
pipeline.run({"retriever": {"query": QUESTION}, "prompt": {"question": QUESTION}})
