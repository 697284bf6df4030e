"""A RAG pipeline on Chroma, traced by OpenLLMetry's instrumentations of Chroma and of OpenAI."""

import os

import chromadb
from openai import OpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from shelf import QUESTION, SESSION, TEXTS, prompt_of
from traceloop.sdk import Traceloop
from traceloop.sdk.decorators import workflow

Traceloop.init(
    app_name="rag",
    disable_batch=True,
    exporter=OTLPSpanExporter(os.environ["TRACES_URL"]),
    telemetry_enabled=False,
)
client = OpenAI(base_url=os.environ["MODEL_URL"], api_key="none")
settings = chromadb.Settings(anonymized_telemetry=False)
shelf = chromadb.EphemeralClient(settings).create_collection("shelf", embedding_function=None)


@workflow(name="answer")
def answer(question: str) -> str:
    found = shelf.query(query_embeddings=[[1.0, 0.0]], query_texts=None, n_results=2)
    prompt = prompt_of(question, found["documents"][0])
    said = client.chat.completions.create(
        model="scripted", messages=[{"role": "user", "content": prompt}]
    )
    return said.choices[0].message.content or ""


vectors = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]
shelf.add(ids=[*TEXTS], documents=[*TEXTS.values()], embeddings=vectors)
Traceloop.set_association_properties({"session_id": SESSION})
answer(QUESTION)
