"""LangChain: adds one callback to the config of an existing chain.

Run it with ``.venv/bin/python examples/lcel_chain.py`` after ``make demo`` has created ``.venv``.
"""

from __future__ import annotations

from claimspan_demo.corpus import load_corpus
from claimspan_demo.model import MODEL_NAME, serve_model
from claimspan_demo.pipeline import build_chain, chat_model
from claimspan_demo.retriever import Bm25Retriever
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor

QUESTIONS = ("Who is the safety officer?", "When is the calibration laboratory closed?")


def main() -> None:
    monitor = Monitor()
    with serve_model() as base_url:
        model = chat_model(base_url, MODEL_NAME, "none")
        chain = build_chain(model, Bm25Retriever(documents=load_corpus()))

        for question in QUESTIONS:
            handler = ClaimspanCallbackHandler(monitor)  # the one line
            print(chain.invoke(question, config={"callbacks": [handler]}))

    monitor.shutdown()
    print(monitor.stats)


if __name__ == "__main__":
    main()
