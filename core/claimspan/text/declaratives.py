"""Turns the clause of an English question and its answer into a statement.

Each form knows the questions that open in one way. Where a form is not sure how the words go
together it gives nothing, and ``answers`` writes the question's words and the answer side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from claimspan.text.inflections import BASE_VERBS, past, third_person
from claimspan.text.subjects import (
    AUXILIARIES,
    BE,
    DETERMINERS,
    DO,
    HAVE,
    PREPOSITIONS,
    Clause,
    begins_predicate,
    is_participle,
    split_complement,
    split_subject,
)
from claimspan.text.word_order import (
    addressed,
    chosen,
    denied,
    ordered,
    with_adverbial,
    with_object,
)

__all__ = ["closed_statement", "open_statement"]

_AUXILIARY: Final = "|".join(sorted(AUXILIARIES))
_PREPOSITION: Final = "|".join(sorted(PREPOSITIONS))
_COUNTED: Final = re.compile(rf"(.+?)\s+({_AUXILIARY})\s+(.+)", re.I)
_AT_QUESTION: Final = re.compile(
    rf"({_PREPOSITION})\s+(what|which|whom|how many|how much|how long)\b\s*(.*?)\s*\b({_AUXILIARY})"
    r"\s+(.+)",
    re.I,
)
_ADJECTIVE: Final = re.compile(
    rf"(long|old|tall|far|big|large|high|deep|wide|heavy|fast|often|soon|late|early|quickly|small)"
    rf"\s+({_AUXILIARY})\s+(.+)",
    re.I,
)
_TIMES: Final = {
    "year": "in", "month": "in", "century": "in", "decade": "in", "quarter": "in", "season": "in",
    "day": "on", "date": "on", "weekday": "on", "time": "at", "age": "at", "temperature": "at",
}  # fmt: skip
_ATTRIBUTES: Final = frozenset(
    "color colour size shape age height length width weight price language currency nationality "
    "religion gender flavour flavor temperature distance speed type kind status version".split()
)
_BOUND_ANSWER: Final = re.compile(
    rf"(?:{_PREPOSITION}|of|every|each|once|twice|daily|weekly|monthly|annually|never|always|today|"
    r"tomorrow|yesterday|now|immediately|online|everywhere|nowhere|here|there|because|due|later|"
    r"approximately|about|between)\b",
    re.I,
)
_MONTH: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_ON: Final = re.compile(
    rf"(?:{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?!\d)|\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?{_MONTH}|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2})",
    re.I,
)
_IN: Final = re.compile(rf"(?:{_MONTH}\b|\d{{4}}\b|(?:fy|q[1-4])|the \d|spring|summer|fall|autumn|"
                        r"winter|early|mid|late)", re.I)  # fmt: skip
_AT: Final = re.compile(
    r"\d{1,2}(?::\d\d)?\s*(?:[ap]\.?m\b|o'clock)|\d{1,2}:\d\d|noon|midnight", re.I
)


def open_statement(clause: str, answer: str) -> str | None:
    """Returns the statement of a question with a question word, or of an order to name something.

    Args:
        clause: The question from its question word on, without its mark.
        answer: What is answered, without the mark at its end.

    Returns:
        A clause without its mark; None where no form is sure.
    """
    if asked := _AT_QUESTION.fullmatch(clause):
        return _at(asked, answer)
    opener, _, rest = clause.partition(" ")
    form = _FORMS.get(opener.casefold())
    return form(rest.strip(), answer) if form and rest.strip() else None


def closed_statement(clause: str, answer: str | None, *, is_true: bool = True) -> str | None:
    """Returns the statement of a question that opens with an auxiliary.

    Args:
        clause: The question without its mark.
        answer: The alternative that is chosen (``Is it A or B?``); None for yes and no.
        is_true: Whether it is answered by yes.

    Returns:
        A clause without its mark; None where it is not sure where the subject ends.
    """
    auxiliary, _, rest = clause.partition(" ")
    auxiliary = auxiliary.casefold()
    parts = split_subject(auxiliary, rest)
    if auxiliary not in AUXILIARIES or parts is None:
        return None
    if answer is not None:
        return chosen(auxiliary, parts, answer)
    return ordered(auxiliary, parts) if is_true else denied(auxiliary, parts)


# --- forms by question word ---


def _at(asked: re.Match[str], answer: str) -> str | None:
    """``In which year was X founded``."""
    preposition, word, noun, auxiliary, rest = asked.groups()
    if not noun or noun.casefold() in answer.casefold():
        told = answer
    elif word.casefold() in ("what", "which"):
        told = f"the {noun} {answer}"
    else:
        told = f"{answer} {noun}"
    if _BOUND_ANSWER.match(answer):
        return with_adverbial(auxiliary.casefold(), rest, told)
    return with_adverbial(auxiliary.casefold(), rest, f"{preposition.casefold()} {told}")


def _what(rest: str, answer: str) -> str | None:
    first, _, behind = rest.partition(" ")
    auxiliary = first.casefold()
    if auxiliary in BE:
        return _is(auxiliary, behind, answer)
    if auxiliary in AUXILIARIES:
        if auxiliary in HAVE and is_participle(behind.split(" ")[0].casefold()):
            return f"{answer} {rest}"
        return with_object(auxiliary, behind, answer)
    if _is_finite(auxiliary) and auxiliary not in _TIMES:
        return f"{answer} {rest}"
    return _which(rest, answer)


def _is(auxiliary: str, noun: str, answer: str) -> str | None:
    """``What is X``: ``X is A``, or ``A is included in X``."""
    words = noun.split()
    if not words or (words[-1].casefold().endswith("ing") and len(words) > 1 and (
        words[-2].casefold() not in DETERMINERS | PREPOSITIONS
    )):  # fmt: skip
        return None
    if begins_predicate(words[0].casefold()):
        return f"{answer} {auxiliary} {noun}"
    if words[-1].casefold() in PREPOSITIONS or words[-1].casefold() in ("called", "named"):
        parts = split_complement(noun)
        return f"{ordered(auxiliary, parts)} {answer}" if parts else None
    subject, _ = addressed(Clause(noun, ""))
    return f"{subject} {auxiliary} {answer}"


def _which(phrase: str, answer: str) -> str | None:
    """A noun and its question: ``Which company did X acquire``."""
    found = _COUNTED.fullmatch(phrase)
    if found is None:
        return _of_plain_verb(phrase, answer)
    noun, auxiliary, rest = found[1], found[2].casefold(), found[3]
    head = re.split(rf"\s(?:of|{_PREPOSITION})\s", noun)[0].split()[-1].casefold()
    if head in _TIMES:
        adverbial = f"{_TIMES[head]} the {noun} {answer}"
        if _BOUND_ANSWER.match(answer):
            adverbial = answer
        told = with_adverbial(auxiliary, rest, adverbial)
        if told:
            return told
    if noun.casefold().startswith("percentage of "):
        share = answer if re.search(r"%|percent", answer) else f"{answer} percent"
        return f"{share} of {noun[14:]} {auxiliary} {rest}"
    if auxiliary in BE and rest.split()[-1].casefold() in PREPOSITIONS:
        parts = split_complement(rest)
        return f"{ordered(auxiliary, parts)} the {noun} {answer}" if parts else None
    if head in _ATTRIBUTES and auxiliary in BE and not split_complement(rest):
        return f"the {noun} of {rest} {auxiliary} {answer}"
    if auxiliary in BE or _continues_subject(auxiliary, rest):
        return _named(noun, head, answer, f"{auxiliary} {rest}")
    parts = split_subject(auxiliary, rest)
    return _named(noun, head, answer, ordered(auxiliary, parts)) if parts else None


def _continues_subject(auxiliary: str, rest: str) -> bool:
    """Tells whether the noun before the auxiliary is its subject: ``which region had the most``."""
    first = rest.split()[0].casefold()
    if auxiliary in HAVE:
        return begins_predicate(first) or first in DETERMINERS or first == "more"
    return auxiliary not in DO and (first in BASE_VERBS or first == "be")


def _of_plain_verb(phrase: str, answer: str) -> str | None:
    """``Which city hosted the games``: the noun is the subject of a verb without auxiliary."""
    words = phrase.split()
    at = next((at for at, word in enumerate(words) if at and _is_finite(word.casefold())), None)
    if at is None:
        return None
    noun = " ".join(words[:at])
    head = re.split(rf"\s(?:of|{_PREPOSITION})\s", noun)[0].split()[-1].casefold()
    return _named(noun, head, answer, " ".join(words[at:]))


def _named(noun: str, head: str, answer: str, clause: str) -> str:
    is_one = noun.casefold().startswith("of ")  # "which of the segments"
    is_plural = head.endswith("s") and not head.endswith(("ss", "us", "is")) and not is_one
    noun = f"one {noun}" if is_one else noun
    return f"{answer} {'are' if is_plural else 'is'} the {noun} that {clause}"


def _is_finite(word: str) -> bool:
    """Tells whether a word may be a verb with its ending: ``hosted``, ``wrote``, ``covers``."""
    return is_participle(word) or word in _FINITE_FORMS


_FINITE_FORMS: Final = frozenset({past(verb) for verb in BASE_VERBS}
                                 | {third_person(verb) for verb in BASE_VERBS}
                                 ) - {"sales", "orders", "plans", "terms"}  # fmt: skip


def _who(rest: str, answer: str) -> str | None:
    first, _, behind = rest.partition(" ")
    auxiliary = first.casefold()
    if auxiliary in BE:
        return _is(auxiliary, behind, answer)
    if auxiliary in AUXILIARIES and behind:
        if _continues_subject(auxiliary, behind):
            return f"{answer} {rest}"
        return with_object(auxiliary, behind, answer)
    return f"{answer} {rest}"


def _when(rest: str, answer: str) -> str | None:
    return with_adverbial(*_auxiliary_and(rest), _dated(answer))


def _where(rest: str, answer: str) -> str | None:
    place = answer if _BOUND_ANSWER.match(answer) else f"in {answer}"
    return with_adverbial(*_auxiliary_and(rest), place)


def _auxiliary_and(rest: str) -> tuple[str, str]:
    auxiliary, _, behind = rest.partition(" ")
    return auxiliary.casefold(), behind


def _dated(answer: str) -> str:
    if _BOUND_ANSWER.match(answer):
        return answer
    for pattern, preposition in ((_AT, "at"), (_ON, "on"), (_IN, "in")):
        if pattern.match(answer):
            return f"{preposition} {answer}"
    return answer


def _why(rest: str, answer: str) -> str | None:
    if re.match(r"(?:to|for|since|as|due to|because)\b", answer, re.I):
        reason = answer
    else:
        reason = f"because of {answer}"
    parts = split_subject(*_auxiliary_and(rest))
    return f"{ordered(_auxiliary_and(rest)[0], parts)} {reason}" if parts else None


def _how(rest: str, answer: str) -> str | None:
    kind, _, behind = rest.partition(" ")
    if kind.casefold() in ("many", "much"):
        return _counted(behind, answer)
    if asked := _ADJECTIVE.fullmatch(rest):
        return _measured(asked, answer)
    if re.match(r"by\b", answer, re.I):
        return with_adverbial(*_auxiliary_and(rest), answer)
    return None


def _counted(rest: str, answer: str) -> str | None:
    """``How many employees does X have``, ``How much does it cost``, ``How much is it``."""
    first, _, behind = rest.partition(" ")
    if first.casefold() in AUXILIARIES:
        auxiliary = first.casefold()
        return _is(auxiliary, behind, answer) if auxiliary in BE else with_object(
            auxiliary, behind, answer
        )  # fmt: skip
    found = _COUNTED.fullmatch(rest)
    if found is None:
        return f"{_counting(answer, '')} {rest}" if len(rest.split()) > 1 else None
    noun, auxiliary, behind = found[1], found[2].casefold(), found[3]
    if noun.startswith("("):  # "How much (in USD billions) did X pay"
        told = with_object(auxiliary, behind, answer)
        return f"{told} {noun}" if told else None
    amount = _counting(answer, noun)
    if behind.casefold().split()[0] == "there":
        return f"there {auxiliary} {amount}{behind[5:]}"
    if (auxiliary in BE and not split_complement(behind)) or _continues_subject(auxiliary, behind):
        return f"{amount} {auxiliary} {behind}"
    return with_object(auxiliary, behind, amount)


def _counting(answer: str, noun: str) -> str:
    """Returns the amount with what is counted, unless the answer names it or another unit."""
    return f"{answer} {noun}".strip() if re.fullmatch(r"[\W\d]*|\w+", answer) else answer


def _measured(asked: re.Match[str], answer: str) -> str | None:
    adjective, auxiliary, rest = asked[1].casefold(), asked[2].casefold(), asked[3]
    if auxiliary not in BE:
        return with_object(auxiliary, rest, answer)
    if split_complement(rest):
        return with_adverbial(auxiliary, rest, answer)
    if adjective == "far" and " from " in rest:
        subject, _, origin = rest.partition(" from ")
        return f"{subject} {auxiliary} {answer} from {origin}"
    says_it = adjective in answer.casefold() or adjective in ("often", "far", "soon")
    if says_it or _BOUND_ANSWER.match(answer):
        told = answer
    else:
        told = f"{answer} years old" if adjective == "old" and answer.isdigit() else (
            f"{answer} {adjective}"
        )  # fmt: skip
    return _is(auxiliary, rest, told)


def _order(rest: str, answer: str) -> str | None:
    """``Name the capital of France``."""
    noun = re.sub(r"^(?:me|us)\s+", "", rest)
    head = re.split(rf"\s(?:of|{_PREPOSITION}|that|which|who|\w+ed)\s", noun)[0].split()[-1]
    is_plural = head.casefold().endswith("s") and not head.endswith(("ss", "us", "is"))
    return f"{noun} {'are' if is_plural else 'is'} {answer}"


_FORMS: Final[dict[str, Callable[[str, str], str | None]]] = {
    "what": _what,
    "which": _what,
    "who": _who,
    "whom": _who,
    "when": _when,
    "where": _where,
    "why": _why,
    "how": _how,
    **dict.fromkeys(("name", "list", "give", "state", "identify", "provide", "mention"), _order),
}
