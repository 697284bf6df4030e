"""An application that LangSmith's SDK traces by OpenTelemetry, with one span processor added."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Final

os.environ |= {
    "LANGSMITH_TRACING": "true",
    "LANGSMITH_OTEL_ENABLED": "true",
    "LANGSMITH_OTEL_ONLY": "true",  # nothing is sent to LangSmith
    "LANGSMITH_API_KEY": "none",
    "LANGSMITH_ENDPOINT": "http://127.0.0.1:9",
}

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from opentelemetry import trace

import claimspan_openinference
from claimspan_tracing.testing import InMemoryMonitor

from captured import texts

FACT: Final = (
    "The Drava rises in South Tyrol and is 725 kilometres long, and flows into the Danube."
)


class Shelf(BaseRetriever):
    """Finds the same each time."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(FACT)]


def main() -> None:
    with InMemoryMonitor() as monitor:
        trace.set_tracer_provider(monitor.provider)
        claimspan_openinference.instrument(monitor, tracer_provider=monitor.provider)
        chain = (
            {"context": Shelf(), "question": RunnablePassthrough()}
            | ChatPromptTemplate.from_template("{context}\n\n{question}")
            | FakeListChatModel(responses=["The Drava is 725 kilometres long."])
            | StrOutputParser()
        )
        chain.invoke("How long is the Drava?")
        while not monitor.records():  # LangSmith makes the spans in a thread of its own
            time.sleep(0.05)
        found = [
            (each.record.query, each.record.response, texts(each), each.status)
            for each in monitor.records()
        ]
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
