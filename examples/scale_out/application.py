"""A chain whose queries are evaluated by Celery workers, see ``worker.py``."""

from __future__ import annotations

import os

from celery import Celery
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

from claimspan_celery import CeleryDispatcher
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor

QUESTIONS = ("How long is the Drava?", "Where does it rise?")


class Rivers(BaseRetriever):
    """Stands for a vector store."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        text = "The Drava is 725 km long and rises in Italy."
        return [Document(id="drava", page_content=text)]


def answer(question: str) -> str:
    """Stands for a language model."""
    documents = Rivers().invoke(question)
    return documents[0].page_content.replace("725", "900")


def main() -> None:
    broker = os.environ.get("CLAIMSPAN_BROKER_URL", "redis://localhost:6379/0")
    app = Celery("application", broker=broker)
    monitor = Monitor(sample=1.0, dispatch=CeleryDispatcher(app))  # the one line
    chain = RunnableLambda(answer)

    for question in QUESTIONS:
        handler = ClaimspanCallbackHandler(monitor)
        print(chain.invoke(question, config={"callbacks": [handler]}))

    monitor.shutdown()
    print(monitor.stats)


if __name__ == "__main__":
    main()
