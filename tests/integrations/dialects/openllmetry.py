"""A RAG agent and a RAG pipeline that OpenLLMetry's decorators trace."""

import json
import os

from openai import OpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from shelf import INSTRUCTION, QUESTION, SESSION, prompt_of, search
from traceloop.sdk import Traceloop
from traceloop.sdk.decorators import task, tool, workflow

Traceloop.init(
    app_name="rag",
    disable_batch=True,
    exporter=OTLPSpanExporter(os.environ["TRACES_URL"]),
    telemetry_enabled=False,
)
client = OpenAI(base_url=os.environ["MODEL_URL"], api_key="none")
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    },
}


@tool(name="search")
def search_tool(query: str) -> list[str]:
    return [text for _, text in search(query)]


@workflow(name="agent")
def agent(question: str) -> str:
    messages = [
        {"role": "system", "content": INSTRUCTION},
        {"role": "user", "content": question},
    ]
    said = client.chat.completions.create(model="scripted", messages=messages, tools=[SEARCH])
    call = said.choices[0].message.tool_calls[0]
    messages.append(said.choices[0].message.model_dump(exclude_none=True))
    found = search_tool(**json.loads(call.function.arguments))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "\n".join(found)})
    said = client.chat.completions.create(model="scripted", messages=messages, tools=[SEARCH])
    return said.choices[0].message.content or ""


@task(name="retrieve")
def retrieve(query: str) -> list[dict[str, str]]:
    return [{"id": id_, "text": text} for id_, text in search(query)]


@workflow(name="answer")
def answer(question: str) -> str:
    prompt = prompt_of(question, [each["text"] for each in retrieve(question)])
    said = client.chat.completions.create(
        model="scripted", messages=[{"role": "user", "content": prompt}]
    )
    return said.choices[0].message.content or ""


Traceloop.set_association_properties({"session_id": SESSION})
(agent if os.environ["WITH"] == "tool" else answer)(QUESTION)
