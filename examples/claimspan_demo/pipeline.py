"""The pipeline that the demo evaluates: a plain LangChain RAG chain."""

from __future__ import annotations

from typing import Final, TypeAlias

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

__all__ = ["CHAIN_NAME", "ChainInput", "build_chain", "chat_model"]

CHAIN_NAME: Final = "handbook-rag"

ChainInput: TypeAlias = str | dict[str, str]
"""Input of the chain: the question, or a mapping with the key ``question``."""

_MAX_TOKENS: Final = 48  # enough for three sentences
_TIMEOUT_SECONDS: Final = 300.0  # a small machine under load needs minutes

# A model this small follows examples better than instructions: without them it invents more.
_PROMPT: Final = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer the question in one sentence from the text."),
        (
            "human",
            "Library\nBooks may be borrowed for four weeks. The library opens at 9:00 and is "
            "closed on Sundays. Its head is Karin Olsen.\n\n"
            "Question: For how long may books be borrowed?",
        ),
        ("ai", "Books may be borrowed for four weeks."),
        (
            "human",
            "Garden\nThe garden has 60 plots. A plot costs 35 euros a year.\n\n"
            "Workshop\nThe workshop is in the old barn. Anna Berg leads it.\n\n"
            "Question: Who leads the workshop?",
        ),
        ("ai", "Anna Berg leads the workshop."),
        ("human", "{context}\n\nQuestion: {question}"),
    ]
)


def build_chain(model: BaseChatModel, retriever: BaseRetriever) -> Runnable[ChainInput, str]:
    """Build a chain that retrieves passages, puts them into the prompt and calls the model.

    Args:
        model: Any chat model.
        retriever: Any retriever.

    Returns:
        A chain from a question to the text of the answer.
    """
    inputs = {"context": retriever | _join, "question": RunnablePassthrough[str]()}
    chain = RunnableLambda(_question) | inputs | _PROMPT | model | StrOutputParser()
    return chain.with_config(run_name=CHAIN_NAME)


def chat_model(base_url: str, model: str, api_key: str) -> ChatOpenAI:
    """Create a client for one model over the OpenAI protocol, with repeatable answers.

    Args:
        base_url: The endpoint, such as `claimspan_demo.model.serve_model` yields.
        model: The name of the model at that endpoint.
        api_key: The key for that endpoint; the included server accepts any.

    Returns:
        The chat model.
    """
    return ChatOpenAI(
        base_url=base_url,
        model=model,
        api_key=SecretStr(api_key),
        temperature=0,
        seed=0,
        max_completion_tokens=_MAX_TOKENS,
        timeout=_TIMEOUT_SECONDS,
        max_retries=0,
    )


def _question(value: ChainInput) -> str:
    return value if isinstance(value, str) else value["question"]


def _join(documents: list[Document]) -> str:
    """Join the passages in reverse, so that the best one is next to the question."""
    return "\n\n".join(document.page_content for document in reversed(documents))
