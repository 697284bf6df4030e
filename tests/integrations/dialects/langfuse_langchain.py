"""A RAG chain of LangChain's that Langfuse's callback traces."""

import os

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langfuse import Langfuse
from langfuse.langchain import CallbackHandler
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from shelf import INSTRUCTION, QUESTION, SESSION, search

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(os.environ["TRACES_URL"])))
Langfuse(public_key="pk", secret_key="sk", base_url="http://127.0.0.1:9", tracer_provider=provider)


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
attached = {"langfuse_session_id": SESSION}
chain.invoke(QUESTION, {"callbacks": [CallbackHandler()], "metadata": attached})
os._exit(0)  # without waiting for the backend that is not there
