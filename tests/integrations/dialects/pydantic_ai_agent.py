"""An agent of pydantic-ai's with a tool that searches, traced by Logfire or by its own spans."""

import os

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings
from shelf import INSTRUCTION, QUESTION, search


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    told = any(part.part_kind == "tool-return" for each in messages for part in each.parts)
    if told:
        return ModelResponse([TextPart("The Drava is 725 kilometres long.")])
    return ModelResponse([ToolCallPart("retrieve", {"query": "Drava length"})])


exporter = SimpleSpanProcessor(OTLPSpanExporter(os.environ["TRACES_URL"]))
version = int(os.environ.get("VERSION", "0"))
if version:
    provider = TracerProvider()
    provider.add_span_processor(exporter)
    how = InstrumentationSettings(tracer_provider=provider, version=version)
    Agent.instrument_all(how)
else:
    import logfire

    logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[exporter])
    logfire.instrument_pydantic_ai()

agent = Agent(FunctionModel(scripted), name="answer", instructions=INSTRUCTION)


@agent.tool_plain
def retrieve(query: str) -> list[str]:
    """Search the texts."""
    return [text for _, text in search(query)]


agent.run_sync(QUESTION)
