"""Pipelines of steps that are drawn at random, each as applications have it."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Final

from made_up_texts import OwnWords, Passage, made_up_passages
from provenance import (
    FORMS,
    Composition,
    Evidence,
    Form,
    Made,
    Pipeline,
    Prompt,
    Value,
    cut,
    cut_off,
    plain,
    texts_of,
)

__all__ = ["asking", "drawn", "graded", "grading", "noting", "refined"]

QUESTIONS: Final = (
    "What should somebody who comes here for the first time keep in mind?",
    "Can you sum up what we ought to know before our visit?",
    "What is special about these places?",
)

INSTRUCTIONS: Final = (
    "Answer the question from the context alone.",
    "You are a careful assistant. If the context does not say it, say that you do not know.",
    "Answer briefly, and cite the passages that you use.",
)


def asking(
    instruction: str = INSTRUCTIONS[0], form: Form = plain, *, by_system: bool = False
) -> Callable[..., Prompt]:
    """Return what makes a prompt of a question and its context."""

    def prompt(question: str, *context: Value) -> Prompt:
        shown = f"Context:\n{form(texts_of(*context))}"
        if by_system:
            return f"{instruction}\n\n{shown}", question
        return instruction, f"{shown}\n\nQuestion: {question}"

    return prompt


def noting(place: int) -> Callable[..., Prompt]:
    """Return what makes a prompt for a note on one of the passages."""

    def prompt(question: str, documents: list[Passage]) -> Prompt:
        told = f"Write down what this passage says about the question: {question}"
        return told, f"Passage:\n{documents[place].text}"

    return prompt


def refined(place: int) -> Callable[..., Prompt]:
    """Return what makes a prompt that refines an answer by one more of the passages."""

    def prompt(question: str, documents: list[Passage], before: str = "") -> Prompt:
        told = f"Question: {question}\n\nThe answer so far: {before or 'none yet'}"
        more = f"Refine it with this context:\n------\n{documents[place].text}\n------"
        return "You refine answers.", f"{told}\n\n{more}"

    return prompt


def grading(place: int) -> Callable[..., Prompt]:
    """Return what makes a prompt that asks whether one of the passages is relevant."""

    def prompt(question: str, documents: list[Passage]) -> Prompt:
        shown = f"Document:\n{documents[place].text}\n\nQuestion: {question}"
        return "Is the document relevant? Say yes or no.", shown

    return prompt


def graded(documents: list[Passage], *grades: str) -> list[Passage]:
    """Return the passages that a model said yes to."""
    return [each for each, grade in zip(documents, grades, strict=True) if grade == "yes"]


def drawn(seed: int) -> Pipeline:
    """Draw a pipeline; the same seed draws the same."""
    return _Drawing(Random(seed)).pipeline()


class _Drawing:
    """Draws the stages of a pipeline one after the other."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.words = OwnWords(chance)
        *self.store, self.page = made_up_passages(chance, 7)
        self.composition = Composition(chance.choice(QUESTIONS))
        self.question = self.composition.question

    def pipeline(self) -> Pipeline:
        self.retrieved = documents = self.searched()
        for stage in (self.graded, self.reranked):
            if self.often(0.35):
                documents = stage(documents)
        answer = self.answered(documents)
        shown = self.edited(answer, documents) if self.often(0.4) else answer
        return self.composition.pipeline(shown, *self.afterwards(shown))

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    # --- what is read ---

    def searched(self) -> Made:
        first = self.chance.randint(2, 4)
        if self.often(0.1):
            return self.composition.give("documents", self.store[:first])
        query = self.question
        if self.often(0.35):
            query = self.composition.model(
                "rewritten",
                self.words.sentences(),
                _rewriting,
                self.question,
            )
        found = self.composition.retrieve("found", query, self.store[:first])
        if not self.often(0.3):
            return found
        follow_up = self.composition.model(
            "follow_up",
            self.words.sentences(),
            asking("Say what is still missing, as a query."),
            self.question,
            found,
        )
        # A second search often finds again what the first one has found.
        more = self.composition.retrieve("more", follow_up, self.store[first - 1 : first + 2])
        return self.composition.code("merged", _merged, found, more)

    def graded(self, documents: Made) -> Made:
        count = len(documents.value)
        relevant = {place for place in range(count) if self.often(0.65)} or {0}
        grades = [
            self.composition.model(
                f"grade_{place}",
                "yes" if place in relevant else "no",
                grading(place),
                self.question,
                documents,
            )
            for place in range(count)
        ]
        return self.composition.code("kept", graded, documents, *grades)

    def reranked(self, documents: Made) -> Made:
        order = self.chance.sample(range(len(documents.value)), len(documents.value))
        left = order[: self.chance.randint(1, len(order))]
        if self.often(0.5):
            return self.composition.code("top", _picking(*left), documents)
        ranking = self.composition.model(
            "ranking",
            " > ".join(f"[{place}]" for place in left),
            asking("Rank the passages by what they say about the question.", _counted),
            self.question,
            documents,
        )
        return self.composition.code("top", _as_ranked, documents, ranking)

    # --- what becomes of it ---

    def answered(self, documents: Made) -> Made:
        if self.often(0.1):
            return self.refine_chain(documents)
        gather = self.chance.choice(
            [
                self.stuffed,
                self.stuffed,
                self.stuffed,
                self.noted,
                self.noted,
                self.summed_up,
                self.extracted,
                self.shortened,
                self.sentences_kept,
            ]
        )
        material = gather(documents)
        if self.often(0.15):
            material.append(self.composition.tool("page", self.question, self.page))
        if self.often(0.15):
            # A call with all that was found fails, and its words never come.
            self.composition.model("failed", None, asking(), self.question, self.retrieved)
        way = self.chance.choice(
            [self.at_once, self.at_once, self.at_once, self.revised, self.criticised, self.chosen]
        )
        return way(material)

    def stuffed(self, documents: Made) -> list[Made]:
        return [documents]

    def notes(self, documents: Made) -> list[Made]:
        return [
            self.composition.model(
                f"note_{place}",
                self.said_of(_passages(documents)[place]),
                noting(place),
                self.question,
                documents,
                reads=frozenset({_passages(documents)[place]}),
            )
            for place in range(len(documents.value))
        ]

    def noted(self, documents: Made) -> list[Made]:
        notes = self.notes(documents)
        if self.often(0.2):
            return [*notes, documents]
        if self.often(0.3):
            told = asking("Combine the notes.", self.form(*notes))
            combined = self.words.sentences(2)
            return [self.composition.model("combined", combined, told, self.question, *notes)]
        return notes

    def summed_up(self, documents: Made) -> list[Made]:
        form = self.form(documents)
        told = asking("Shorten the context to what the question needs.", form)
        said = self.said_of(self.chance.choice(_passages(documents)))
        reads = _read_in(form, documents)
        return [
            self.composition.model("summary", said, told, self.question, documents, reads=reads)
        ]

    def extracted(self, documents: Made) -> list[Made]:
        """A model writes each passage anew, and code makes documents of its words."""
        made = self.composition.code(
            "compressed",
            _with_texts,
            documents,
            *self.notes(documents),
            reads=documents.evidence,
        )
        return [made]

    def shortened(self, documents: Made) -> list[Made]:
        """Code leaves documents of which there is the first half."""
        return [self.composition.code("shortened", _first_halves, documents)]

    def sentences_kept(self, documents: Made) -> list[Made]:
        """Code makes one text of a sentence of each document."""
        left = frozenset(
            Passage(each.id, sentences[len(sentences) // 2])
            for each in _passages(documents)
            for sentences in [_sentences(each.text)]
        )
        return [self.composition.code("excerpt", _middles, documents, reads=left)]

    def refine_chain(self, documents: Made) -> Made:
        first, *others = range(len(documents.value))
        told = self.composition.model(
            f"answer_{first}",
            self.words.sentences(2),
            refined(first),
            self.question,
            documents,
            reads=frozenset({_passages(documents)[first]}),
        )
        for place in others:
            told = self.composition.model(
                f"answer_{place}",
                self.words.sentences(2),
                refined(place),
                self.question,
                documents,
                told,
                reads=told.evidence | {_passages(documents)[place]},
            )
        return told

    # --- the answer ---

    def at_once(self, material: list[Made]) -> Made:
        return self.ask("reply", material)

    def revised(self, material: list[Made]) -> Made:
        draft = self.ask("draft", material)
        told = asking("Write the draft in the context anew, in better words.")
        again = [draft, *material] if self.often(0.5) else [draft]
        says = self.words.sentences(2)
        return self.composition.model("revision", says, told, self.question, *again)

    def criticised(self, material: list[Made]) -> Made:
        draft = self.ask("draft", material)
        told = asking("Say what is wrong with the draft in the context.")
        critique = self.composition.model(
            "critique", self.words.sentences(), told, self.question, draft
        )
        again = [draft, critique, *(material if self.often(0.5) else [])]
        told = asking(
            "Write the draft in the context anew, as the critique wishes.", self.form(*again)
        )
        says = self.words.sentences(2)
        return self.composition.model("revision", says, told, self.question, *again)

    def chosen(self, material: list[Made]) -> Made:
        """Of two drafts a model chooses one; the second has read a part of the material."""
        drafts = [self.ask("draft_A", material), self.ask("draft_B", [self.first_of(material)])]
        best = self.chance.choice([0, 1])
        told = asking("Which of the two is better? Say A or B.")
        verdict = self.composition.model("verdict", "AB"[best], told, self.question, *drafts)
        return self.composition.code(
            "choice",
            _better,
            *drafts,
            verdict,
            reads=drafts[best].evidence,
        )

    def first_of(self, material: list[Made]) -> Made:
        first = material[0]
        if isinstance(first.value, str):
            return first
        alone = frozenset(each for each in first.evidence if each.id == _passages(first)[0].id)
        return self.composition.code("first", _picking(0), first, reads=alone)

    def ask(self, name: str, material: list[Made]) -> Made:
        form = self.form(*material)
        told = asking(self.chance.choice(INSTRUCTIONS), form, by_system=self.often(0.3))
        says = self.chance.choice(["{}", "{} [1]", "**{}**"]).format(self.words.sentences(2))
        reads = _read_in(form, *material)
        return self.composition.model(name, says, told, self.question, *material, reads=reads)

    def edited(self, answer: Made, documents: Made) -> Made:
        edit = self.chance.choice([_named_sources, _bold_as_html, _with_passages])
        return self.composition.code("edited", edit, answer, documents, reads=answer.evidence)

    def afterwards(self, answer: Made) -> list[Made]:
        after: list[Made] = []
        if self.often(0.2):
            after.append(
                self.composition.model(
                    "title",
                    "A few remarks for guests",
                    _naming,
                    self.question,
                    answer,
                )
            )
        if self.often(0.2):
            check = asking("Is the last text supported by the others? Say yes or no.")
            read = [self.retrieved, answer]
            after.append(self.composition.model("check", "yes", check, self.question, *read))
        return after

    # --- words ---

    def form(self, *material: Made) -> Form:
        form = self.chance.choice(FORMS)
        # Of a text that holds several passages a cut would leave the first ones.
        whole = any(isinstance(each.value, str) for each in material)
        return plain if whole and form is cut_off else form

    def said_of(self, passage: Passage) -> str:
        own = self.words.sentences()
        return self.chance.choice(
            [
                own,
                f'{own} It says: "{self.chance.choice(_sentences(passage.text))}"',
                f"{own} That makes {self.chance.randint(2000, 9000)} of them in all.",
            ]
        )


def _read_in(form: Form, *material: Made) -> Evidence:
    evidence: Evidence = frozenset[Passage]().union(*(each.evidence for each in material))
    if form is not cut_off:
        return evidence
    return evidence | {Passage(each.id, cut(each.text)) for each in evidence}


def _passages(made: Made) -> list[Passage]:
    assert not isinstance(made.value, str)
    return made.value


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.)\s", text)


def _merged(found: list[Passage], more: list[Passage]) -> list[Passage]:
    return list({each.id: each for each in [*found, *more]}.values())


def _rewriting(question: str) -> Prompt:
    return "Rewrite the question for a search engine.", question


def _naming(question: str, answer: str) -> Prompt:
    return "Name this chat.", f"User: {question}\nAssistant: {answer}"


def _picking(*places: int) -> Callable[[list[Passage]], list[Passage]]:
    return lambda documents: [documents[place] for place in places]


def _with_texts(documents: list[Passage], *texts: str) -> list[Passage]:
    return [Passage(each.id, text) for each, text in zip(documents, texts, strict=True)]


def _better(first: str, second: str, verdict: str) -> str:
    return first if verdict == "A" else second


def _counted(texts: list[str]) -> str:
    return "\n".join(f"[{place}] {text}" for place, text in enumerate(texts))


def _as_ranked(documents: list[Passage], ranking: str) -> list[Passage]:
    return _picking(*map(int, re.findall(r"\d+", ranking)))(documents)


def _first_halves(documents: list[Passage]) -> list[Passage]:
    return [
        Passage(each.id, " ".join(sentences[: (len(sentences) + 1) // 2]))
        for each in documents
        for sentences in [_sentences(each.text)]
    ]


def _middles(documents: list[Passage]) -> str:
    sentences = [_sentences(each.text) for each in documents]
    return "\n".join(each[len(each) // 2] for each in sentences)


def _named_sources(answer: str, documents: list[Passage]) -> str:
    return answer.replace("[1]", f"({documents[0].id}.pdf)")


def _bold_as_html(answer: str, documents: list[Passage]) -> str:
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", answer)


def _with_passages(answer: str, documents: list[Passage]) -> str:
    return "\n\n".join([answer, "Sources:", *(each.text for each in documents)])
