"""Pipelines as graphs of texts, of which it is known by construction what their answers rest on.

A pipeline is composed step by step: each step takes what earlier ones have made, and what it makes
is worked out at once, together with the passages that have reached it. A framework runs the same
steps afterwards.
"""

from __future__ import annotations

import html
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from xml.sax.saxutils import escape

import yaml

from made_up_texts import Passage

__all__ = [
    "FORMS",
    "Composition",
    "Evidence",
    "Form",
    "Made",
    "Pipeline",
    "Prompt",
    "Step",
    "Value",
    "as_yaml",
    "cut",
    "cut_off",
    "one_line",
    "plain",
    "texts_of",
]

Value = str | list[Passage]
Prompt = tuple[str, str]
"""What the system and what the user says."""

Evidence = frozenset[Passage]
"""The passages that reached a text, each as it was left there."""

NOTHING: Final[Evidence] = frozenset()


@dataclass(frozen=True)
class Made:
    """What a step has made."""

    name: str
    value: Value
    evidence: Evidence = NOTHING


@dataclass(frozen=True)
class Step:
    """One step, as a framework runs it."""

    name: str
    kind: Literal["retrieve", "tool", "model", "code"]
    takes: tuple[str, ...]
    make: Callable[..., Any]
    """Makes of what it takes a query for a retriever or tool, a prompt for a model, or a value."""

    gives: Any
    """What comes of it by construction; None for the call of a model that fails."""


@dataclass(frozen=True)
class Pipeline:
    """Steps, what is returned of what they make, and what the answer rests on."""

    question: str
    given: Mapping[str, list[Passage]]
    """Documents that it is called with, beside the question."""

    steps: tuple[Step, ...]
    answer: str
    """The step that makes the answer."""

    response: str
    beside: tuple[str, ...]
    """Steps after the answer, of which the first is returned beside it and the others are not."""

    read: Mapping[str, frozenset[str]]
    """Each passage that reached the answer, with all of its text and with what was left of it."""

    documents: frozenset[str]
    """Those of them that are documents, which have ids."""

    described: str = field(repr=False)

    def __str__(self) -> str:
        return self.described


class Composition:
    """Composes a pipeline that is asked one question."""

    def __init__(self, question: str) -> None:
        self.question = Made("question", question)
        self._steps: list[Step] = []
        self._lines: list[str] = []
        self._given: dict[str, list[Passage]] = {}
        self._whole: dict[str, str] = {}
        self._pages: set[str] = set()

    def give(self, name: str, documents: Sequence[Passage]) -> Made:
        """Have the pipeline called with documents."""
        self._whole |= {each.id: each.text for each in documents}
        self._given[name] = list(documents)
        self._lines.append(f"{name} = {documents!r}")
        return Made(name, list(documents), frozenset(documents))

    def retrieve(self, name: str, query: Made, found: Sequence[Passage]) -> Made:
        """Have a retriever find passages by a query."""
        self._whole |= {each.id: each.text for each in found}
        step = Step(name, "retrieve", (query.name,), str, list(found))
        return self._add(step, list(found), frozenset(found), found)

    def tool(self, name: str, query: Made, found: Passage) -> Made:
        """Have a tool return a text."""
        self._whole[found.id] = found.text
        self._pages.add(found.id)
        step = Step(name, "tool", (query.name,), str, found)
        return self._add(step, found.text, frozenset({found}), found)

    def model(
        self,
        name: str,
        says: str | None,
        prompt: Callable[..., Prompt],
        *takes: Made,
        reads: Evidence | None = None,
    ) -> Made:
        """Have a model say something.

        Args:
            name: Of the step.
            says: The words of the model; None if the call fails.
            prompt: Makes its prompt of what it takes.
            takes: What earlier steps have made.
            reads: The evidence in the prompt; all that reached what it takes, unless it is given.
        """
        shown = prompt(*(each.value for each in takes))
        step = Step(name, "model", tuple(each.name for each in takes), prompt, says)
        return self._add(step, says or "", _reached(takes) if reads is None else reads, shown)

    def code(
        self, name: str, make: Callable[..., Value], *takes: Made, reads: Evidence | None = None
    ) -> Made:
        """Have code make a value.

        Args:
            name: Of the step.
            make: Makes it of what it takes.
            takes: What earlier steps have made.
            reads: The evidence in it. Unless it is given: the passages that it returns, or for a
                text all that reached what it takes.
        """
        value = make(*(each.value for each in takes))
        if reads is None:
            reads = _reached(takes) if isinstance(value, str) else frozenset(value)
        step = Step(name, "code", tuple(each.name for each in takes), make, value)
        return self._add(step, value, reads, None)

    def pipeline(self, answer: Made, *beside: Made) -> Pipeline:
        """Return the pipeline that gives an answer, and the first of ``beside`` with it."""
        left: dict[str, set[str]] = {}
        for each in answer.evidence:
            left.setdefault(each.id, {one_line(self._whole[each.id])}).add(one_line(each.text))
        return Pipeline(
            question=str(self.question.value),
            given=self._given,
            steps=tuple(self._steps),
            answer=answer.name,
            response=str(answer.value),
            beside=tuple(each.name for each in beside),
            read={each: frozenset(texts) for each, texts in sorted(left.items())},
            documents=frozenset(left) - self._pages,
            described="\n".join(self._lines),
        )

    def _add(self, step: Step, value: Value, evidence: Evidence, shown: object) -> Made:
        self._steps.append(step)
        self._lines.append(f"{step.name} = {step.kind}({', '.join(step.takes)})")
        if step.kind == "model":
            self._lines.append(f"    prompt: {shown!r}")
        self._lines.append(f"    gives: {value!r}")
        return Made(step.name, value, evidence)


def _reached(takes: Sequence[Made]) -> Evidence:
    return NOTHING.union(*(each.evidence for each in takes))


def one_line(text: str) -> str:
    """Return a text with single spaces, and without the sign that it was cut off."""
    return " ".join(text.split()).removesuffix("...").rstrip()


def texts_of(*values: Value) -> list[str]:
    """Return texts, and those of passages."""
    return [
        text
        for value in values
        for text in ([value] if isinstance(value, str) else [each.text for each in value])
    ]


# --- how texts are put into a prompt -------------------------------------------------------------

Form = Callable[[list[str]], str]


def plain(texts: list[str]) -> str:
    """Put texts into a prompt as they are."""
    return "\n\n".join(texts)


def _numbered(texts: list[str]) -> str:
    return "\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1))


def _xml(texts: list[str]) -> str:
    documents = (
        f'<document index="{number}">\n{escape(text)}\n</document>'
        for number, text in enumerate(texts, 1)
    )
    return "\n".join(["<documents>", *documents, "</documents>"])


def _tagged(texts: list[str]) -> str:
    return "\n".join(f"<doc>{text}</doc>" for text in texts)


def _json(texts: list[str]) -> str:
    return json.dumps([{"content": text} for text in texts])


def _json_with_letters(texts: list[str]) -> str:
    return json.dumps({"documents": texts}, ensure_ascii=False, indent=2)


def as_yaml(texts: list[str]) -> str:
    r"""Put texts into a prompt as YAML, which folds lines and writes letters as ``\u010C``."""
    return str(yaml.safe_dump([{"text": text, "rank": rank} for rank, text in enumerate(texts, 1)]))  # pyright: ignore[reportUnknownMemberType] - its width is untyped in the stubs


def _markdown(texts: list[str]) -> str:
    return "\n\n".join(f"### Passage {number}\n\n{text}" for number, text in enumerate(texts, 1))


def _bullets(texts: list[str]) -> str:
    return "\n".join("* " + text.replace("\n", "\n  ") for text in texts)


def _html(texts: list[str]) -> str:
    return "".join(f"<p>{html.escape(text)}</p>" for text in texts)


def cut(text: str) -> str:
    """Cut a text off with a sign that there was more."""
    return textwrap.shorten(text, 90, placeholder="...")


def cut_off(texts: list[str]) -> str:
    """Put texts into a prompt, cut off."""
    return "\n\n".join(cut(text) for text in texts)


FORMS: Final[tuple[Form, ...]] = (
    plain,
    _numbered,
    _xml,
    _tagged,
    _json,
    _json_with_letters,
    as_yaml,
    _markdown,
    _bullets,
    _html,
    cut_off,
)
