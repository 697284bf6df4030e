"""A RAG chain of LangChain's that OpenLLMetry traces."""

import os

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.langchain import LangchainInstrumentor
from shelf import INSTRUCTION, QUESTION, SESSION, search
from traceloop.sdk import Traceloop

Traceloop.init(
    app_name="rag",
    disable_batch=True,
    exporter=OTLPSpanExporter(os.environ["TRACES_URL"]),
    telemetry_enabled=False,
)
LangchainInstrumentor().instrument()


class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=text, id=id_) for id_, text in search(query)]


PROMPT = ChatPromptTemplate([("system", INSTRUCTION), ("user", "{context}\n\n{question}")])
chain = (
    {
        "context": Shelf() | RunnableLambda(lambda found: "\n".join(d.page_content for d in found)),
        "question": RunnablePassthrough(),
    }
    | PROMPT
    | FakeListChatModel(responses=["The Drava is 725 kilometres long."])
    | StrOutputParser()
)
chain.invoke(QUESTION, {"metadata": {"session_id": SESSION}})
