"""An agent of Haystack's with a tool that searches, traced by Haystack's own tracer."""

import os
from typing import Annotated

from haystack import tracing
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack.utils import Secret
from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from shelf import INSTRUCTION, QUESTION
from shelf import search as found_for

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(os.environ["TRACES_URL"])))
trace.set_tracer_provider(provider)
tracing.enable_tracing(OpenTelemetryTracer(trace.get_tracer("haystack")))


@tool
def search(query: Annotated[str, "what to search for"]) -> str:
    """Search the texts."""
    return "\n".join(text for _, text in found_for(query))


model = OpenAIChatGenerator(
    model="scripted", api_key=Secret.from_token("none"), api_base_url=os.environ["MODEL_URL"]
)
agent = Agent(chat_generator=model, tools=[search], system_prompt=INSTRUCTION)
agent.run(messages=[ChatMessage.from_user(QUESTION)])
