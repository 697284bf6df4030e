"""Reads a short answer as the statement that it makes, given its question.

``Paris`` is true or false only as the answer to a question. A judge compares statements, so it
reads ``The capital of France is Paris.`` where the question is ``What is the capital of France?``.
"""

from __future__ import annotations

import re
from typing import Final

from claimspan.text.declaratives import closed_statement, open_statement
from claimspan.text.inflections import BASE_VERBS, NOUN_LIKE_VERBS, third_person
from claimspan.text.labels import label_of, names_attribute, names_what_is_asked
from claimspan.text.markdown import without_emphasis
from claimspan.text.phrases import is_apology, is_filler, normalise, starts_with_abstention
from claimspan.text.questions import Posed, posed
from claimspan.text.subjects import AUXILIARIES
from claimspan.text.words import FUNCTION_WORDS

__all__ = [
    "answer_value",
    "as_statement",
    "asks_for_truth",
    "asks_yes_or_no",
    "denied_statement",
    "has_label",
    "is_short_answer",
    "polarity",
]

# A longer text says something by itself, with verbs or without.
_MAX_WORDS: Final = 14
_MAX_CHARACTERS: Final = 200
# As many words with a full stop are a sentence, in languages too whose verbs are not known here.
_MIN_SENTENCE_WORDS: Final = 5
# A longer question is a prompt: its words stand before the answer, and are not put in order.
_MAX_CLAUSE: Final = 300

# Chinese and Japanese have no blanks between words, nor behind a full stop.
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_CHARACTERS_OF_WORD: Final = 2
_GOES_ON: Final = re.compile(r"[^\W\d_]{3}[.!;]\s+\S|[。！？；]\s*\w")

# "How long is it and where does it rise?" Which of the two an answer is to, no order tells.
_SEVERAL: Final = re.compile(
    r",?\s(?:and|or)\s(?:\w+\s)?(?:what|which|who|when|where|why|how)\b", re.I
)
_YES: Final = (
    r"yes|yep|yeah|correct|true|right|indeed|definitely|certainly|absolutely|affirmative|of course"
)
_NO: Final = (
    r"no|nope|nay|incorrect|false|wrong|negative|not at all|definitely not|absolutely not|"
    r"certainly not|of course not|not really|never"
)
_YES_ELSEWHERE: Final = (
    r"ja|jawohl|da|oui|sí|si|sim|sì|tak|ano|igen|wahr|richtig|vrai|verdadero|vero|waar|drži|res"
)
_NO_ELSEWHERE: Final = (
    r"nein|ne drži|ni res|ne|non|nee|não|nie|nem|falsch|unwahr|faux|falso|onwaar|napačno"
)
# "No refunds" and "No. 5" are no denials, "Correct answers" is no affirmation.
_OPENING: Final = re.compile(
    r"[\s*_\"'“>]*(?:(?:(?:final|short) )?answer\s*:[\s*_]*)?"
    rf"(?:(?P<no>{_NO}|(?P<foreign_no>{_NO_ELSEWHERE}))"
    rf"|(?P<yes>{_YES}|(?P<foreign_yes>{_YES_ELSEWHERE})))"
    r"(?=[\"'”*_]*(?:\s*$|\s*[,;:!–—]|\s+[-–—]|\.(?!\s?\d)))[\"'”*_]*[\s,;:.!–—-]*",
    re.I,
)
_FINITE: Final = re.compile(
    r"\b(?:is|are|was|were|has|had|have|will|would|can|cannot|could|may|might|must|shall|should|"
    r"does|do|did|became|began|bought|built|came|fell|gave|got|grew|held|made|paid|ran|rose|said|"
    r"sold|spent|stood|took|went|won|wrote|contains?|includes?|requires?|allows?|provides?|lies|"
    r"needs?|means|covers?|applies|offers?|ist|sind|war|waren|hat|haben|wurde|wird|kann|muss|"
    r"darf|sta|so|bil|bila|bilo|ima|lahko|est|sont|était|peut|es|son|era|fue|puede|zijn|"
    r"heeft|werd|wordt)\b|\w+n['’]t\b|\b(?:it|he|she|that|there|they|we|you|i)['’](?:s|re|ve|ll|m|d)\b",
    re.I,
)
# "US sales increased 3.0%", but not "the increased sales", "Beats, acquired in 2014".
_PAST: Final = re.compile(r"(?<=[^\W_])\s+(?:\w+ly\s+)?[a-z]{2,}[^\We]ed\b")
_FINITE_FORMS: Final = frozenset({third_person(verb) for verb in BASE_VERBS - NOUN_LIKE_VERBS}) - {
    "means",
    "uses",
    "reports",
}
_PRONOUN_AND_VERB: Final = re.compile(
    r"(?:[Ii]t|[Hh]e|[Ss]he|[Tt]hey|[Ww]e|[Yy]ou|I|[Tt]his|[Tt]here)\s+[a-z]"
)
_NO_VERB: Final = re.compile(
    r"\b(?:an?|the|and|or|of|in|by|for|to|with|from|per|as|at|on|un|newly|fully|not)\s*$", re.I
)
_IMPERATIVE: Final = re.compile(
    r"(?:(?:first|then|next|finally|please|just|simply),? )?"
    rf"(?:{'|'.join(sorted(BASE_VERBS))}) (?:the|your|an?|it|them|this|that|all|me|us)\b",
    re.I,
)
_ABBREVIATED: Final = re.compile(r"\b(?:Inc|Ltd|Co|Corp|Jr|Sr|[A-Z])\.$")
_ECHOED: Final = frozenset("not no yes n't that this correct right true so indeed".split())
_YES_OR_NO: Final = re.compile(
    r"(?:ali|ist|sind|war|waren|hat|haben|kann|können|darf|dürfen|muss|müssen|wird|werden|gibt|"
    r"est-ce|est-il|peut-on|puis-je|es|está|son|puede|puedo|hay|tiene|heeft|mag|moet|zijn|je|"
    r"so|sta|lahko|ima|imajo)\b",
    re.I,
)
_COPULAS: Final = re.compile(
    r"(?:was|wer|wie|welches|wat|quel(?:le)?s?|qui|cu[aá]l(?:es)?|qui[eé]n|kaj|kdo|kakšn[aeo]?|"
    r"katero?a?)\s+(?P<verb>ist|sind|war|waren|zijn|est|sont|était|es|son|era|je|so|"
    r"bila?|bilo)\s+(?P<noun>.+)",
    re.I,
)


def as_statement(question: str | None, answer: str) -> str:
    """Returns the statement that a short answer makes: question and answer in declarative form.

    Short means a few words without a finite verb of their own. ``Yes`` and ``No`` affirm and deny
    the question; what they say beside it (``Yes, within 14 days``) follows. A label that says what
    the answer is (``Length: 725 km``) is left out. Where the grammar is not sure, the words of the
    question stand before the answer, and nothing is put in order::

        How do I reset the password?  Settings > Security  ->
        How do I reset the password: Settings > Security.

    That form is used for questions that only name a topic, that ask for a way or a definition, or
    for several things, in which no word shows where the subject ends, for answers with another
    label, and in other languages than English, except for ``Was ist X?`` and its like, which read
    ``X ist A.``

    Args:
        question: The question; None where unknown.
        answer: A response, a ground truth or any other text.

    Returns:
        ``The capital of France is Paris.`` for ``What is the capital of France?`` and ``Paris``;
        the answer unchanged where it is a statement already, or there is no question.
    """
    if not question or not is_short_answer(answer):
        return answer
    asked = posed(question)
    told, is_asked = _told(asked, answer)
    if not asked.clause or not re.search(r"\w", told) or _repeats(asked.clause, told):
        return answer
    opening = _OPENING.match(told)
    if opening and _asks_yes_or_no(asked):
        return _sentence(asked, _resolved(asked, told, opening))
    if is_filler(normalise(answer)):  # "Of course!" where no yes or no is asked
        return answer
    turned = _turned(asked, told) if is_asked else None
    return _sentence(asked, turned or f"{asked.clause}: {told}")


def answer_value(question: str | None, answer: str) -> str:
    """Returns a short answer without emphasis, its full stop, and the label of what is asked.

    Args:
        question: The question; None where unknown.
        answer: A short answer, such as ``**Length:** 725 km``.
    """
    return _told(posed(question or ""), answer)[0]


def has_label(question: str | None, line: str) -> bool:
    """Tells whether a line is the value of an attribute, by its label: ``Length: 725 km``.

    Args:
        question: The question; None where unknown.
        line: A line, an item of a list, or a sentence.
    """
    labelled = label_of(_trimmed(line)) if question and is_short_answer(line) else None
    return labelled is not None and names_attribute(labelled.label, posed(question or "").clause)


def denied_statement(question: str | None, statement: str, answer: str) -> str | None:
    """Returns what an answer denies by calling it false, such as ``The Drava rises in Italy.``.

    Args:
        question: A question such as ``True or false: the Drava rises in Italy.``; None if unknown.
        statement: What ``as_statement`` has made of the question and the answer.
        answer: The answer: ``False``.

    Returns:
        None if the question asks otherwise, or the answer says anything else.
    """
    if not question or polarity(answer) is not False or not asks_for_truth(question):
        return None
    denied = as_statement(question, "No"), as_statement(question, answer)
    return as_statement(question, "Yes") if statement in denied else None


def is_short_answer(text: str) -> bool:
    """Tells whether a text is a few words that make no statement by themselves.

    Args:
        text: A response, a ground truth or any other text.
    """
    stripped = text.strip()
    if not stripped or len(stripped) > _MAX_CHARACTERS or "\n" in stripped or "?" in stripped:
        return False
    opening = _OPENING.match(stripped)
    rest = stripped[opening.end() :] if opening else stripped
    sentence = normalise(stripped)
    if starts_with_abstention(sentence) or is_apology(sentence) or stripped.endswith(":"):
        return False
    n_words = len(rest.split()) + len(_UNSPACED.findall(rest)) // _CHARACTERS_OF_WORD
    if n_words > _MAX_WORDS or _GOES_ON.search(rest):
        return False
    # "Yes, it is" says no more than "yes".
    if n_words >= _MIN_SENTENCE_WORDS and rest.endswith((".", "!", "。", "！")):
        return False
    return not _has_finite_verb(rest) or bool(opening and _only_echoes(rest))


def polarity(text: str) -> bool | None:
    """Returns whether a text opens by affirming or by denying: ``Yes, ...``, ``No.``, ``Nein``.

    Args:
        text: An answer.

    Returns:
        True, False, or None where it opens by neither.
    """
    opening = _OPENING.match(text)
    return None if opening is None else opening["no"] is None


def _has_finite_verb(text: str) -> bool:
    # "May 2021" and "Will Smith" have none; "US sales increased" has one.
    if _PRONOUN_AND_VERB.match(text) or any(
        not match[0].istitle() for match in _FINITE.finditer(text)
    ):
        return True
    words = text.split()[1:-1]  # "Customer deposits" ends in no verb
    if any(word in _FINITE_FORMS for word in words):
        return True
    return any(
        not _NO_VERB.search(text[max(match.start() - 12, 0) : match.start()])
        for match in _PAST.finditer(text)
    )


def _only_echoes(text: str) -> bool:
    words = re.findall(r"[\w'’]+", text.casefold())
    return all(
        word in FUNCTION_WORDS or word in _ECHOED or re.search(r"n['’]t$|^cannot$", word)
        for word in words
    )


def _trimmed(answer: str) -> str:
    told = without_emphasis(answer).strip().strip('*_`"“”').strip()
    return told if _ABBREVIATED.search(told) else told.rstrip(" .!")


def _told(asked: Posed, answer: str) -> tuple[str, bool]:
    """Returns a short answer without its label, and whether its words fit into the question's."""
    told = _trimmed(answer)
    labelled = label_of(told)
    if labelled is None:
        return told, True
    if names_attribute(labelled.label, asked.clause):
        return labelled.value, names_what_is_asked(labelled.label, asked.clause)
    return told, False


def _repeats(clause: str, told: str) -> bool:
    """Tells whether the answer is the question again, which makes no statement."""
    return told.casefold().strip(" ?") == clause.casefold()


def _asks_yes_or_no(asked: Posed) -> bool:
    if asked.is_statement or _opens_with_auxiliary(asked) or _YES_OR_NO.match(asked.clause):
        return True
    # "You offer refunds?" asks by its mark alone; "What ...?" does not ask for yes or no.
    return asked.has_mark and not re.match(r"wh|how\b|kaj|kdo|kj|ka", asked.clause, re.I)


def asks_yes_or_no(question: str | None) -> bool:
    """Tells whether a question asks for yes or no, and denies nothing itself.

    Args:
        question: The question; None where unknown.
    """
    if not question:
        return False
    asked = posed(question)
    negated = re.search(r"\b(?:not|never|no|or)\b|n['’]t\b", asked.clause, re.I)
    return bool(asked.clause) and not negated and _asks_yes_or_no(asked)


def asks_for_truth(question: str | None) -> bool:
    """Tells whether a question asks if a statement is true: ``True or false: ...``.

    Args:
        question: The question; None where unknown.
    """
    return bool(question) and posed(question or "").is_statement


def _opens_with_auxiliary(asked: Posed) -> bool:
    return asked.clause.split(" ", 1)[0].casefold() in AUXILIARIES


def _resolved(asked: Posed, told: str, opening: re.Match[str]) -> str:
    """Returns the question as it is affirmed or denied, with what the answer adds."""
    is_true = opening["no"] is None
    if asked.is_statement:
        return (
            asked.clause if is_true else f"{asked.clause}: {told[: opening.end()].strip(' ,;:.')}"
        )
    foreign = opening["foreign_yes"] or opening["foreign_no"]
    statement = None if foreign else closed_statement(asked.clause, None, is_true=is_true)
    if statement is None and is_true and not foreign and not _opens_with_auxiliary(asked):
        statement = asked.clause  # "The store is open, right?"
    if statement is None:
        return f"{asked.clause}: {told}"
    rest = told[opening.end() :].strip()
    return statement if not rest or _only_echoes(rest) else f"{statement}, {rest}"


def _turned(asked: Posed, told: str) -> str | None:
    """Returns the declarative form; None where no form is sure."""
    # "Keep the receipt" is no length, whatever is asked.
    is_single = len(asked.clause) <= _MAX_CLAUSE and not _SEVERAL.search(asked.clause)
    if not is_single or _IMPERATIVE.match(told):
        return None
    if foreign := _COPULAS.fullmatch(asked.clause):
        return f"{foreign['noun']} {foreign['verb']} {told}"
    if _opens_with_auxiliary(asked):
        return closed_statement(asked.clause, told)
    return open_statement(asked.clause, told)


def _sentence(asked: Posed, statement: str) -> str:
    whole = f"{asked.preface}, {statement}" if asked.preface else statement
    end = "" if whole.endswith((".", "!")) else "."
    return f"{whole[:1].upper()}{whole[1:]}{end}"
