"""The pipeline under evaluation: a plain LangChain RAG chain, as its users write it."""

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

CHAIN_NAME: Final = "python-reference-rag"

ChainInput: TypeAlias = str | dict[str, str]
"""What the chain takes: the question itself, or a mapping with the key ``question``."""

_MAX_TOKENS: Final = 100  # one to three sentences
_TIMEOUT_SECONDS: Final = 300.0  # a small machine that is busy with other things takes minutes

# Short, with the question last: of the wordings that were tried, the small model kept closest
# to the text with this one.
_PROMPT: Final = ChatPromptTemplate.from_messages(
    [
        ("system", "Repeat the sentences of the text that answer the question."),
        ("human", "Text:\n{context}\n\nQuestion: {question}"),
    ]
)


def build_chain(model: BaseChatModel, retriever: BaseRetriever) -> Runnable[ChainInput, str]:
    """Retrieve, put the passages into the prompt, ask the model.

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
    """Talk to one model over the OpenAI protocol, with answers that can be repeated.

    Args:
        base_url: Such as the one that `claimspan_demo.model.serve_model` yields.
        model: The model's name at that server.
        api_key: The key for that server; a server on loopback takes any.

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
    """The best passage stands last, next to the question, where a small model looks first."""
    return "\n\n".join(document.page_content for document in reversed(documents))
