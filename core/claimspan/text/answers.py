"""Reads a short answer as the statement that it makes, given its question.

``Paris`` is true or false only as the answer to a question. A judge compares statements, so it
reads ``The capital of France is Paris.`` if the question is ``What is the capital of France?``.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final, NamedTuple

from claimspan.text.markdown import without_emphasis
from claimspan.text.questions import (
    AUXILIARIES,
    BASE_VERBS,
    BE,
    DO,
    NOUN_LIKE_VERBS,
    PREPOSITIONS,
    Clause,
    Posed,
    posed,
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


_LABELS: Final = frozenset(
    word for words in read_table("text", "labels.toml").values() for word in str(words).split()
)
_MIN_ROOT: Final = 4


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
    asked = set(re.findall(r"\w+", question.casefold()))
    given = asked | set(map(stem, asked))
    words = set(re.findall(r"\w+", label.casefold())) - FUNCTION_WORDS
    # The "founder" is who "founded" it.
    roots = tuple(word for word in asked if len(word) >= _MIN_ROOT)
    return all(w in _LABELS or stem(w) in given or w.startswith(roots) for w in words)


# --- declaratives ---------------------------------------------------------------------------------

# "No" denies what is asked, so the subject and the predicate of a question for yes or no are told
# apart. Of most other questions the order of words changes no verdict, neither of a judge of words
# nor of a small model that reads: of 250 realistic answers none.

_PERSON: Final = {"i": "you", "me": "you", "my": "your", "mine": "yours", "myself": "yourself",
           "you": "we", "your": "our", "yours": "ours"}  # fmt: skip
# "What is it used for" has its verb behind it.
_COMPLETE: Final = "".join(f"(?<! {each})" for each in ("of", *sorted(PREPOSITIONS)))
_WHAT: Final = re.compile(rf"what (?P<verb>is|are|was|were) (?P<noun>.+){_COMPLETE}", re.I)
_WHO: Final = re.compile(rf"who (?!(?:{'|'.join(sorted(AUXILIARIES - BE))})\b)(?P<did>.+)", re.I)
_YOURS: Final = {"am": "are", "was": "were"}


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


def _chosen(clause: str, answer: str) -> str | None:
    """Returns the alternative that an answer names: ``Is it vegan or vegetarian?``."""
    auxiliary, _, rest = clause.partition(" ")
    auxiliary = auxiliary.casefold()
    parts = split_subject(auxiliary, rest)
    said, offered = answer.casefold().split(), parts.predicate.casefold().split() if parts else []
    is_choice = auxiliary in AUXILIARIES and "or" in offered and {*said} <= {*offered}
    if parts is None or not is_choice:
        return None
    head = [offered[0]] if auxiliary in DO and offered[0] not in said else []
    return _ordered(auxiliary, Clause(parts.subject, " ".join([*head, answer])))


def _named(clause: str, answer: str) -> str:
    """Returns the words of an open question with its answer, in an order that needs no grammar."""
    if what := _WHAT.fullmatch(clause):
        return f"{what['noun']} {what['verb']} {answer}"
    if who := _WHO.fullmatch(clause):
        return f"{answer} {who['did']}"
    return f"{clause}: {answer}"


def _ordered(auxiliary: str, parts: Clause) -> str:
    """Returns subject, auxiliary and predicate; ``do`` is left out, as in ``you need a visa``."""
    subject, predicate = _addressed(parts)
    verb = "" if auxiliary == "do" else f" {_agreeing(auxiliary, subject)}"
    return f"{subject}{verb} {predicate}"


def _addressed(parts: Clause) -> Clause:
    """Returns a user's words about himself as an answer says them: ``my card`` as ``your card``."""
    return Clause(
        *(" ".join(_PERSON.get(word.casefold(), word) for word in part.split()) for part in parts)
    )


def _agreeing(auxiliary: str, subject: str) -> str:
    return _YOURS.get(auxiliary, auxiliary) if subject.casefold() == "you" else auxiliary


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
# Chinese and Japanese have no blanks between words, nor behind a full stop.
# Thai, Lao, Myanmar and Khmer, which have blanks between sentences and not between words; kana and
# Chinese.
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_CHARACTERS_OF_WORD: Final = 2
_GOES_ON: Final = re.compile(r"[^\W\d_]{3}[.!;]\s+\S|[。！？；]\s*\w")

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
_FINITE_FORMS: Final = frozenset(
    form
    for verb in BASE_VERBS - NOUN_LIKE_VERBS
    for form in (f"{verb}s", f"{verb}es", f"{verb[:-1]}ies")
) - {"means", "uses", "reports"}
_PRONOUN_AND_VERB: Final = re.compile(
    r"(?:[Ii]t|[Hh]e|[Ss]he|[Tt]hey|[Ww]e|[Yy]ou|I|[Tt]his|[Tt]here)\s+[a-z]"
)
_NO_VERB: Final = re.compile(
    r"\b(?:an?|the|and|or|of|in|by|for|to|with|from|per|as|at|on|un|newly|fully|not)\s*$", re.I
)
_ABBREVIATED: Final = re.compile(r"\b(?:Inc|Ltd|Co|Corp|Jr|Sr|[A-Z])\.$")
_ECHOED: Final = frozenset("not no yes n't that this correct right true so indeed".split())
_YES_OR_NO: Final = re.compile(
    r"(?:ali|ist|sind|war|waren|hat|haben|kann|können|darf|dürfen|muss|müssen|wird|werden|gibt|"
    r"est-ce|est-il|peut-on|puis-je|es|está|son|puede|puedo|hay|tiene|heeft|mag|moet|zijn|je|"
    r"so|sta|lahko|ima|imajo)\b",
    re.I,
)


def as_statement(question: str | None, answer: str) -> str:
    """Returns the statement that a short answer makes, given its question.

    Short means a few words without a finite verb of their own. ``Yes`` and ``No`` affirm and deny
    the question; what they say beside it (``Yes, within 14 days``) follows. Of a question for one
    of two it is the statement with that one. A label that says what the answer is (``Length: 725
    km``) is left out. Other questions are not put in order, but for ``What is X?`` and ``Who did
    X?``: their words stand before the answer.

    Returns:
        ``The capital of France is Paris.`` for ``What is the capital of France?`` and ``Paris``;
        ``How long is it: 725 km.`` for ``How long is it?`` and ``725 km``; the answer unchanged if
        it is a statement already, or there is no question.
    """
    if not question or not is_short_answer(answer):
        return answer
    asked = posed(question)
    told = _told(asked, answer)
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
    return _sentence(asked, _chosen(asked.clause, told) or _named(asked.clause, told))


def answer_value(question: str | None, answer: str) -> str:
    """Returns a short answer without emphasis, full stop, and a label that repeats the question.

    Args:
        question: The question; None if unknown.
        answer: A short answer, such as ``**Length:** 725 km``.
    """
    return _told(posed(question or ""), answer)


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


def _told(asked: Posed, answer: str) -> str:
    """Returns a short answer without a label that names what is asked."""
    told = _trimmed(answer)
    labelled = label_of(told)
    names = labelled is not None and _names_attribute(labelled.label, asked.clause)
    return labelled.value if labelled is not None and names else told


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


def _sentence(asked: Posed, statement: str) -> str:
    whole = f"{asked.preface}, {statement}" if asked.preface else statement
    end = "" if whole.endswith((".", "!")) else "."
    return f"{whole[:1].upper()}{whole[1:]}{end}"
