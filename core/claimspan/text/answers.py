"""Reads a short answer as the statement that it makes, given its question.

``Paris`` is true or false only as the answer to a question. A judge compares statements, so it
reads ``The capital of France is Paris.`` if the question is ``What is the capital of France?``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypedDict, cast

from claimspan.text.inflections import (
    BASE_VERBS,
    ENGLISH,
    NOUN_LIKE_VERBS,
    base_form,
    past,
    third_person,
)
from claimspan.text.markdown import without_emphasis
from claimspan.text.questions import (
    AUXILIARIES,
    BE,
    DETERMINERS,
    DO,
    HAVE,
    PREPOSITIONS,
    Clause,
    Posed,
    begins_predicate,
    is_participle,
    posed,
    split_complement,
    split_subject,
)
from claimspan.text.refusals import is_apology, is_filler, normalise, starts_with_abstention
from claimspan.text.tables import read_table
from claimspan.text.words import FUNCTION_WORDS, stem

__all__ = [
    "Labelled",
    "answer_value",
    "as_statement",
    "asks_for_truth",
    "asks_yes_or_no",
    "denied_statement",
    "has_label",
    "is_short_answer",
    "label_of",
    "polarity",
]


# --- labels ---------------------------------------------------------------------------------------

_LABELLED: Final = re.compile(
    r"(?P<label>[^\W\d_][^:：=;\n]{0,40}?)\s*(?:[:：=]|\s[-–—])\s*(?P<value>[^;]*[^;\s])"
)


class _Attribute(TypedDict):
    """An attribute of ``labels.toml``."""

    asking: str
    labels: str


_LABELS: Final = read_table("text", "labels.toml")
_OF_ANSWERS: Final = frozenset(cast("str", _LABELS["answers"]).split())
_ATTRIBUTE_LABELS: Final = tuple(
    (re.compile(rf"\b(?:{each['asking']})\b", re.IGNORECASE), frozenset(each["labels"].split()))
    for each in cast("Sequence[_Attribute]", _LABELS["attributes"])
)
_MIN_ROOT: Final = 4
_ALL: Final = _OF_ANSWERS.union(*(labels for _, labels in _ATTRIBUTE_LABELS))


class Labelled(NamedTuple):
    """A value behind its name."""

    label: str
    value: str


def label_of(line: str) -> Labelled | None:
    """Returns the label of a line and its value; None if it has none, or several.

    Args:
        line: A line without markup, such as ``Length: 725 km`` or ``Status - shipped``.
    """
    found = _LABELLED.fullmatch(line)
    return Labelled(found["label"], found["value"]) if found else None


def _names_attribute(label: str, question: str) -> bool:
    """Tells whether a label names an attribute, and no thing that the question does not name."""
    return _own_words(label, question) <= _ALL


def _names_what_is_asked(label: str, question: str) -> bool:
    """Tells whether a label names the attribute that a question asks for."""
    fitting = (labels for asking, labels in _ATTRIBUTE_LABELS if asking.search(question))
    return _own_words(label, question) <= _OF_ANSWERS.union(*fitting)


def _own_words(label: str, question: str) -> set[str]:
    """Returns the words of a label in lower case that the question has in no form."""
    asked = {base_form(word) for word in re.findall(r"\w+", question.casefold())}
    given = asked | set(map(stem, asked))
    words = set(re.findall(r"\w+", label.casefold())) - FUNCTION_WORDS
    # The "builder" is who "built" it.
    roots = tuple(word for word in asked if len(word) >= _MIN_ROOT)
    return {word for word in words if stem(word) not in given and not word.startswith(roots)}


# --- declaratives ---------------------------------------------------------------------------------

# A question is turned by the places of its words: what is asked for, the auxiliary, the subject and
# the predicate. If these are not sure, it is not turned, and its words and the answer are written
# side by side.

_PERSON: Final = {"i": "you", "me": "you", "my": "your", "mine": "yours", "myself": "yourself",
           "you": "we", "your": "our", "yours": "ours"}  # fmt: skip
_YOURS: Final = {"am": "are", "was": "were"}
_PARTICLES: Final = frozenset({"out", "up", "off", "down", "back", "away"})
_AUXILIARY: Final = "|".join(sorted(AUXILIARIES))
_PREPOSITION: Final = "|".join(sorted(PREPOSITIONS))
_ASKED: Final = re.compile(
    rf"(?:(?P<preposition>{_PREPOSITION}) )?(?:(?P<word>what|which|how)(?P<noun>(?: \S+)*?)"
    rf"|(?P<bare>who|whom|when|where|why)) (?P<auxiliary>{_AUXILIARY}) (?P<rest>.+)",
    re.IGNORECASE,
)
# "Who wrote X", "What caused X", "How many people live in X": the verb follows its subject.
_SUBJECT: Final = re.compile(r"(?P<word>who|what|how (?:many|much)) (?P<rest>.+)", re.IGNORECASE)
_ORDER: Final = re.compile(
    r"(?:name|list|give|state|identify|provide|mention) (?:me |us )?(?P<noun>.+)", re.IGNORECASE
)
_TIMES: Final = {
    "year": "in", "month": "in", "century": "in", "decade": "in", "quarter": "in", "season": "in",
    "day": "on", "date": "on", "weekday": "on", "time": "at", "age": "at", "temperature": "at",
}  # fmt: skip
_ATTRIBUTES: Final = frozenset(ENGLISH["attributes"])
_BOUND_ANSWER: Final = re.compile(
    rf"(?:{_PREPOSITION}|of|every|each|once|twice|daily|weekly|monthly|annually|never|always|today|"
    r"tomorrow|yesterday|now|immediately|online|everywhere|nowhere|here|there|because|due|later|"
    r"approximately|about|between)\b",
    re.I,
)
_MONTH: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATED: Final = {
    "at": re.compile(
        r"\d{1,2}(?::\d\d)?\s*(?:[ap]\.?m\b|o'clock)|\d{1,2}:\d\d|noon|midnight", re.I
    ),
    "on": re.compile(
        rf"(?:{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?!\d)"
        rf"|\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?{_MONTH}|(?:mon|tues|wednes|thurs|fri|satur|sun)"
        r"days?\b|\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2})",
        re.I,
    ),
    "in": re.compile(
        rf"(?:{_MONTH}\b|\d{{4}}\b|(?:fy|q[1-4])|the \d|spring|summer|fall|autumn|winter|early|mid|"
        r"late)",
        re.I,
    ),
}
_FINITE_VERBS: Final = frozenset(map(past, BASE_VERBS)) | frozenset(map(third_person, BASE_VERBS))


def _open_statement(clause: str, answer: str) -> str | None:
    """Returns the statement of a question with a question word, or of an order to name something.

    Returns:
        A clause without its mark; None if the order of its words is not sure.
    """
    if order := _ORDER.fullmatch(clause):
        return f"{order['noun']} {_is_or_are(answer)} {answer}"
    asked, subject = _ASKED.fullmatch(clause), _SUBJECT.fullmatch(clause)
    noun = (asked["noun"] or "").strip() if asked else ""
    if subject and (asked is None or _opens_with_verb(noun)):
        is_sure = subject["word"].casefold() != "what" or _opens_with_verb(subject["rest"])
        return f"{answer} {subject['rest']}" if is_sure else None
    if asked is None:
        return None
    word = (asked["word"] or asked["bare"]).casefold()
    auxiliary, rest = asked["auxiliary"].casefold(), asked["rest"]
    preposition = asked["preposition"] or _TIMES.get(noun.casefold())
    if preposition or word in ("when", "where", "why") or (word == "how" and not noun):
        told = _adverbial(word, preposition, noun, answer)
        is_noun = auxiliary in BE and word != "why"
        return _with_adverbial(auxiliary, rest, told, is_noun=is_noun) if told else None
    if word == "how":
        kind, _, counted = noun.partition(" ")
        if kind.casefold() in ("many", "much"):
            is_bare = re.fullmatch(r"[\W\d]*|\w+", answer)
            return _with_object(
                auxiliary, rest, f"{answer} {counted}".strip() if is_bare else answer
            )
        if auxiliary not in BE:
            return _with_object(auxiliary, rest, answer)
        return _with_adverbial(auxiliary, rest, _measured(kind.casefold(), answer), is_noun=True)
    if not noun:
        return _with_object(auxiliary, rest, answer)
    return _named(noun, auxiliary, rest, answer)


def _closed_statement(clause: str, *, is_true: bool) -> str | None:
    """Returns the statement of a question that opens with an auxiliary.

    Returns:
        A clause without its mark; None if the end of the subject is uncertain.
    """
    auxiliary, _, rest = clause.partition(" ")
    auxiliary = auxiliary.casefold()
    parts = split_subject(auxiliary, rest)
    if auxiliary not in AUXILIARIES or parts is None:
        return None
    if is_true:
        return _ordered(auxiliary, parts)
    subject, predicate = _addressed(parts)
    negated = "cannot" if auxiliary == "can" else f"{_agreeing(auxiliary, subject)} not"
    return f"{subject} {negated} {predicate}"


def _named(noun: str, auxiliary: str, rest: str, answer: str) -> str | None:
    """``Which company did X acquire``: ``A is the company that X acquired``."""
    if auxiliary in BE and noun.split()[-1].casefold() in _ATTRIBUTES:
        return f"the {noun} of {rest} {auxiliary} {answer}"
    told = f"{auxiliary} {rest}"
    if auxiliary not in BE and not _continues_subject(auxiliary, rest):
        parts = split_subject(auxiliary, rest)
        if parts is None:
            return None
        told = _ordered(auxiliary, parts)
    return f"{answer} {_is_or_are(answer)} the {noun} that {told}"


def _is_or_are(answer: str) -> str:
    return "are" if re.search(r",|\band\b", answer) else "is"


def _chosen(clause: str, answer: str) -> str | None:
    """Returns the alternative that an answer names: ``Is it vegan or vegetarian?``."""
    auxiliary, _, rest = clause.partition(" ")
    auxiliary = auxiliary.casefold()
    parts = split_subject(auxiliary, rest)
    said, offered = answer.casefold().split(), parts.predicate.casefold().split() if parts else []
    if parts is None or "or" not in offered or not {*said} <= {*offered}:
        return None
    head = [offered[0]] if auxiliary in DO and offered[0] not in said else []
    return _ordered(auxiliary, Clause(parts.subject, " ".join([*head, answer])))


def _opens_with_verb(words: str) -> bool:
    first = words.split(" ", 1)[0].casefold()
    return is_participle(first) or first in _FINITE_VERBS


def _ordered(auxiliary: str, parts: Clause) -> str:
    """Returns subject, auxiliary and predicate; ``did acquire`` becomes ``acquired``."""
    subject, predicate = _addressed(parts)
    if auxiliary not in DO:
        return f"{subject} {_agreeing(auxiliary, subject)} {predicate}"
    words = predicate.split()
    at = next((at for at, word in enumerate(words[:2]) if word.casefold() in BASE_VERBS), None)
    if at is None:
        return f"{subject} {auxiliary} {predicate}"
    verb = words[at].casefold()
    if auxiliary != "do":
        words[at] = past(verb) if auxiliary == "did" else third_person(verb)
    return f"{subject} {' '.join(words)}"


def _addressed(parts: Clause) -> Clause:
    """Returns a user's words about himself as an answer says them: ``my card`` as ``your card``."""
    return Clause(
        *(" ".join(_PERSON.get(word.casefold(), word) for word in part.split()) for part in parts)
    )


def _agreeing(auxiliary: str, subject: str) -> str:
    return _YOURS.get(auxiliary, auxiliary) if subject.casefold() == "you" else auxiliary


def _with_object(auxiliary: str, rest: str, answer: str) -> str | None:
    """``did Apple acquire in 2014`` and an answer: ``Apple acquired Beats in 2014``."""
    if auxiliary in BE:
        return _is(auxiliary, rest, answer)
    if _continues_subject(auxiliary, rest):
        return f"{answer} {auxiliary} {rest}"
    parts = split_subject(auxiliary, rest)
    if parts is None:
        return None
    told = _ordered(auxiliary, parts)
    words = told.split()
    # The verb is the first word of the predicate, behind an auxiliary that has stayed.
    end = len(parts.subject.split()) + 1 + (auxiliary not in DO or auxiliary in words)
    while end < len(words) and words[end].casefold() in _PARTICLES:
        end += 1
    # The object is behind its verb if a preposition follows; "GDPR stands for" has it at the end.
    takes_it = end + 1 < len(words) and words[end].casefold() in PREPOSITIONS | {"per"}
    at = end if takes_it else len(words)
    return " ".join([*words[:at], answer, *words[at:]])


def _continues_subject(auxiliary: str, rest: str) -> bool:
    """Tells whether the subject stands before the auxiliary: ``which region had the most``."""
    first = rest.split()[0].casefold()
    if auxiliary in HAVE:
        return begins_predicate(first) or first in DETERMINERS or first == "more"
    return auxiliary not in DO and (first in BASE_VERBS or first == "be")


def _is(auxiliary: str, noun: str, answer: str) -> str | None:
    """``What is X``: ``X is A``, or ``A is included in X``."""
    words = noun.casefold().split()
    # "What is the company doing?"
    if words[-1].endswith("ing") and not {*words[-2:-1]} <= DETERMINERS | PREPOSITIONS:
        return None
    if words[0] == "there":
        return f"there {auxiliary} {answer}{noun[len('there') :]}"
    if begins_predicate(words[0]):
        return f"{answer} {auxiliary} {noun}"
    if words[-1] in PREPOSITIONS | {"called", "named"}:
        parts = split_complement(noun)
        return f"{_ordered(auxiliary, parts)} {answer}" if parts else None
    return f"{_addressed(Clause(noun, '')).subject} {auxiliary} {answer}"


def _with_adverbial(auxiliary: str, rest: str, adverbial: str, *, is_noun: bool) -> str | None:
    """``was X founded`` and ``in 1889``: ``X was founded in 1889``; of a noun: ``X is in A``."""
    parts = split_complement(rest) if is_noun else split_subject(auxiliary, rest)
    if parts is None:
        subject = _addressed(Clause(rest, "")).subject
        return f"{subject} {auxiliary} {adverbial}" if is_noun else None
    return f"{_ordered(auxiliary, parts)} {adverbial}"


def _adverbial(word: str, preposition: str | None, noun: str, answer: str) -> str | None:
    """Returns an answer as it stands in a statement: ``in 1889``, ``in the city Salzburg``."""
    if _BOUND_ANSWER.match(answer):
        return answer
    if preposition:
        is_named = not noun or noun.casefold() in answer.casefold()
        return f"{preposition.casefold()} {answer if is_named else f'the {noun} {answer}'}"
    if word == "when":
        dated = (before for before, form in _DATED.items() if form.match(answer))
        return f"{next(dated, '')} {answer}".lstrip()
    before = {"where": "in", "why": "because of"}.get(word)
    return f"{before} {answer}" if before else None


def _measured(adjective: str, answer: str) -> str:
    """``how long``: ``two years long``."""
    if adjective in ("often", "far", "soon") or adjective in answer or _BOUND_ANSWER.match(answer):
        return answer
    return (
        f"{answer} years old"
        if (adjective, answer.isdigit()) == ("old", True)
        else (f"{answer} {adjective}")
    )


# --- short answers --------------------------------------------------------------------------------

# A longer text says something by itself, with verbs or without.
_MAX_WORDS: Final = 14
_MAX_CHARACTERS: Final = 200
# As many words with a full stop are a sentence, in languages too whose verbs are not known here.
_MIN_SENTENCE_WORDS: Final = 5
_MIN_UNSPACED_WORDS: Final = 3
_DO: Final = re.compile(r"\b(?:do|does|did)\b", re.IGNORECASE)
_WORDS: Final = re.compile(r"\w+")
_INFLECTED: Final = ("s", "es", "d", "ed")
# A longer question is a prompt: its words stand before the answer, and are not put in order.
_MAX_CLAUSE: Final = 300

# Chinese and Japanese have no blanks between words, nor behind a full stop.
# Thai, Lao, Myanmar and Khmer, which have blanks between sentences and not between words; kana and
# Chinese.
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
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
    r"[\s*_\"'“>]*+(?:(?:(?:final|short) )?answer\s*:[\s*_]*+)?"
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
    the answer is (``Length: 725 km``) is left out. If the grammar is not sure, the words of the
    question stand before the answer, and nothing is put in order::

        How do I reset the password?  Settings > Security  ->
        How do I reset the password: Settings > Security.

    That form is used for questions that only name a topic, that ask for a way or a definition, or
    for several things, in which no word shows where the subject ends, for answers with another
    label, and in other languages than English, except for ``Was ist X?`` and its like, which read
    ``X ist A.``

    Returns:
        ``The capital of France is Paris.`` for ``What is the capital of France?`` and ``Paris``;
        the answer unchanged if it is a statement already, or there is no question.
    """
    if not question or not is_short_answer(answer):
        return answer
    asked = posed(question)
    told, is_asked = _told(asked, answer)
    repeats = told.casefold().strip(" ?") == asked.clause.casefold()
    if not asked.clause or not re.search(r"\w", told) or repeats:
        return answer
    if _has_verb_of(asked.clause, told):
        return answer
    opening = _OPENING.match(told)
    if opening and _asks_yes_or_no(asked):
        return _sentence(asked, _resolved(asked, told, opening))
    if is_filler(normalise(answer)):  # "Of course!" where no yes or no is asked
        return answer
    turned = _turned(asked, told) if is_asked else None
    return _sentence(asked, turned or f"{asked.clause}: {told}")


def answer_value(question: str | None, answer: str) -> str:
    """Returns a short answer without emphasis, full stop, and a label that repeats the question.

    Args:
        question: The question; None if unknown.
        answer: A short answer, such as ``**Length:** 725 km``.
    """
    return _told(posed(question or ""), answer)[0]


def has_label(question: str | None, line: str) -> bool:
    """Tells whether a line is the value of an attribute, by its label: ``Length: 725 km``.

    Args:
        question: The question; None if unknown.
        line: A line, an item of a list, or a sentence.
    """
    labelled = label_of(_trimmed(line)) if question and is_short_answer(line) else None
    return labelled is not None and _names_attribute(labelled.label, posed(question or "").clause)


def denied_statement(question: str | None, statement: str, answer: str) -> str | None:
    """Returns what an answer denies by calling it false, such as ``The Drava rises in Italy.``.

    Args:
        question: A question such as ``True or false: the Drava rises in Italy.``; None if unknown.
        statement: The result of ``as_statement`` for the question and the answer.
        answer: The answer: ``False``.

    Returns:
        None if the question asks otherwise, or the answer says anything else.
    """
    if not question or polarity(answer) is not False or not asks_for_truth(question):
        return None
    denied = as_statement(question, "No"), as_statement(question, answer)
    return as_statement(question, "Yes") if statement in denied else None


def is_short_answer(text: str) -> bool:
    """Tells whether a text is a few words that make no statement by themselves."""
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
    # The stop of scripts without blanks ends sentences, seldom names.
    if n_words > _MIN_UNSPACED_WORDS and rest.endswith(("。", "！")):
        return False
    return not _has_finite_verb(rest) or bool(opening and _only_echoes(rest))


def polarity(text: str) -> bool | None:
    """Returns whether a text opens by affirming or by denying: ``Yes, ...``, ``No.``, ``Nein``.

    Returns:
        True, False, or None if it opens by neither.
    """
    opening = _OPENING.match(text)
    return None if opening is None else opening["no"] is None


def _has_verb_of(question: str, answer: str) -> bool:
    """Tells whether an answer says the verb of a question anew: ``does it cost``, ``it costs``.

    Of "Pro costs $20" no word shows that "costs" is a verb. Its question does, which has "do"
    before the subject and the base form behind it.
    """
    auxiliary = _DO.search(question)
    if auxiliary is None:
        return False
    asked = [each.casefold() for each in _WORDS.findall(question[auxiliary.end() :])]
    said = [each.casefold() for each in _WORDS.findall(answer)]
    verbs = {each + ending: each for each in asked for ending in _INFLECTED}
    return any(
        subject in asked and verbs[verb] in asked[asked.index(subject) + 1 :]
        for subject, verb in pairwise(said)
        if verb in verbs
    )


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
    if _names_attribute(labelled.label, asked.clause):
        return labelled.value, _names_what_is_asked(labelled.label, asked.clause)
    return told, False


def _asks_yes_or_no(asked: Posed) -> bool:
    if asked.is_statement or _opens_with_auxiliary(asked) or _YES_OR_NO.match(asked.clause):
        return True
    # "You offer refunds?" asks by its mark alone; "What ...?" does not ask for yes or no.
    return asked.has_mark and not re.match(r"wh|how\b|kaj|kdo|kj|ka", asked.clause, re.I)


def asks_yes_or_no(question: str | None) -> bool:
    """Tells whether a question asks for yes or no, and denies nothing itself."""
    if not question:
        return False
    asked = posed(question)
    negated = re.search(r"\b(?:not|never|no|or)\b|n['’]t\b", asked.clause, re.I)
    return bool(asked.clause) and not negated and _asks_yes_or_no(asked)


def asks_for_truth(question: str | None) -> bool:
    """Tells whether a question asks if a statement is true: ``True or false: ...``."""
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
    statement = None if foreign else _closed_statement(asked.clause, is_true=is_true)
    if statement is None and is_true and not foreign and not _opens_with_auxiliary(asked):
        statement = asked.clause  # "The store is open, right?"
    if statement is None:
        return f"{asked.clause}: {told}"
    rest = told[opening.end() :].strip()
    return statement if not rest or _only_echoes(rest) else f"{statement}, {rest}"


def _turned(asked: Posed, told: str) -> str | None:
    """Returns the declarative form; None if no form is sure."""
    # "Keep the receipt" is no length, whatever is asked.
    is_single = len(asked.clause) <= _MAX_CLAUSE and not _SEVERAL.search(asked.clause)
    if not is_single or _IMPERATIVE.match(told):
        return None
    if foreign := _COPULAS.fullmatch(asked.clause):
        return f"{foreign['noun']} {foreign['verb']} {told}"
    is_closed = _opens_with_auxiliary(asked)
    return _chosen(asked.clause, told) if is_closed else _open_statement(asked.clause, told)


def _sentence(asked: Posed, statement: str) -> str:
    whole = f"{asked.preface}, {statement}" if asked.preface else statement
    end = "" if whole.endswith((".", "!")) else "."
    return f"{whole[:1].upper()}{whole[1:]}{end}"
