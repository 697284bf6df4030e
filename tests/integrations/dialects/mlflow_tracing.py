"""A RAG pipeline that MLflow's decorators trace."""

import os

import mlflow
from mlflow.entities import Document
from openai import OpenAI
from shelf import QUESTION, SESSION, prompt_of, search


@mlflow.trace(span_type="RETRIEVER")
def retrieve(query: str) -> list[Document]:
    return [Document(page_content=text, id=id_) for id_, text in search(query)]


@mlflow.trace(span_type="CHAIN")
def answer(question: str) -> str:
    mlflow.update_current_trace(metadata={"mlflow.trace.session": SESSION})
    prompt = prompt_of(question, [each.page_content for each in retrieve(question)])
    client = OpenAI(base_url=os.environ["MODEL_URL"], api_key="none")
    said = client.chat.completions.create(
        model="scripted", messages=[{"role": "user", "content": prompt}]
    )
    return said.choices[0].message.content or ""


mlflow.openai.autolog()
answer(QUESTION)
mlflow.flush_trace_async_logging()
