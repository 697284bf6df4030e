"""The words of a claim, a sentence or a window, with what detectors find in them.

A record has some 170 cells, and each claim and each sentence is in many of them. What a detector
looks for in one side alone is found once, and kept with the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from operator import itemgetter
from typing import Final, NamedTuple, TypeVar, cast

from claimspan.text.memo import MemoByLanguage
from claimspan.text.words import Token, is_function_word, is_negation_word

__all__ = [
    "DENYING",
    "DENYING_PREFIXES",
    "MIN_PREFIXED",
    "WordKind",
    "Wording",
    "denied_bases",
    "kind_of",
    "kinds_of",
    "stems_of",
]

_T = TypeVar("_T")
_stem_of = itemgetter(Token._fields.index("stem"))

DENYING_PREFIXES: Final = ("un", "in", "im", "ir", "il", "dis", "non", "mis")
"""``Unsafe`` is the opposite of ``safe``."""

MIN_PREFIXED: Final = 5
"""Letters of a word that a prefix may deny; shorter ones mostly begin with these by chance."""

DENYING: Final = frozenset({"not", "non", "never", "isn't", "aren't", "wasn't", "weren't"})
"""Words that deny an adjective behind them: ``not refundable``."""

_PREFIX_STARTS: Final = frozenset(each[:2] for each in DENYING_PREFIXES)

_UNREAD: Final = object()

# Three hundred bytes each.
_MAX_WORDS: Final = 1_500


class Wording(tuple[Token, ...]):
    """The tokens of a claim, a sentence or a window.

    Most sentences of a reference support no claim best: nothing is kept of them but their tokens.
    """

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all words."""
        return stems_of(self)

    @cached_property
    def _kept(self) -> dict[object, object]:
        return {}

    def read(self, reader: Callable[[Wording], _T]) -> _T:
        """Returns what a function finds in the words; it is called once, and the result kept.

        Args:
            reader: A function of a module, which finds the same each time.
        """
        found = self._kept.get(reader, _UNREAD)
        if found is _UNREAD:
            found = self._kept[reader] = reader(self)
        return cast("_T", found)

    @property
    def folded(self) -> tuple[str, ...]:
        """All words in lower case, in order."""
        return self.read(_folded)


def stems_of(tokens: Iterable[Token]) -> frozenset[str]:
    """Returns the stems of some tokens, which are not kept as those of a ``Wording`` are."""
    return frozenset(map(_stem_of, tokens))


class WordKind(NamedTuple):
    """What a word is by itself, in its language."""

    folded: str
    """The word in lower case."""

    is_content: bool
    """Whether it is neither a function word nor a negation."""

    is_function: bool
    """Whether it carries grammar rather than content."""

    is_negation: bool
    """Whether it denies what is beside it: ``not``, ``never``, ``isn't``, ``kein``."""

    bases: tuple[str, ...]
    """What is left of it without a prefix that may deny: ``enforceable``."""


def _kind(language: str, word: str) -> WordKind:
    token = Token(word, "", language)
    folded = word.casefold()
    is_negation, is_function = is_negation_word(token), is_function_word(token)
    is_content = not is_negation and not is_function
    return WordKind(folded, is_content, is_function, is_negation, denied_bases(folded))


_KINDS: Final = MemoByLanguage(_kind, _MAX_WORDS)


def kind_of(token: Token) -> WordKind:
    """Returns what a word is by itself.

    Args:
        token: The word.
    """
    return _KINDS[token.language][token.text]


def kinds_of(words: Iterable[str], language: str) -> list[WordKind]:
    """Returns what words are by themselves.

    Args:
        words: The words as written.
        language: Code of their language.
    """
    known = _KINDS[language]
    return [known[word] for word in words]


def denied_bases(word: str) -> tuple[str, ...]:
    """Returns what is left of a word in lower case without a prefix that may deny."""
    if word[:2] not in _PREFIX_STARTS:
        return ()
    found = (word.removeprefix(each) for each in DENYING_PREFIXES if word.startswith(each))
    return tuple(base for base in found if len(base) >= MIN_PREFIXED)


def _folded(words: Wording) -> tuple[str, ...]:
    return tuple([token.text.casefold() for token in words])
