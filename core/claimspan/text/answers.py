"""Reads a short answer as the statement that it makes, given its question."""

from __future__ import annotations

__all__ = ["as_statement"]


def as_statement(question: str | None, answer: str) -> str:
    """Returns the statement that a short answer makes: question and answer in declarative form.

    Args:
        question: The question; None where unknown.
        answer: A response, a ground truth or any other text.

    Returns:
        ``The capital of France is Paris.`` for ``What is the capital of France?`` and ``Paris``;
        the answer unchanged where it is a statement already, or the question cannot be turned.
    """
    del question
    return answer
