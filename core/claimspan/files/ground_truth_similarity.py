"""Finds the known query that asks the same as a live one, among thousands.

By letters or by embeddings the most similar are found; their words have the last say. If it is not
sure that two questions ask the same, they do not: a wrong ground truth is worse than none, since it
marks right answers as wrong. So questions that differ in a number, a name, a negation, a tense or
any other word that carries content are different questions, however alike they look ("revenue in
2022", "revenue in 2023").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from claimspan.errors import ConfigError, GroundTruthError, MissingExtraError
from claimspan.text.percentages import percent_hint
from claimspan.text.words import CARDINALS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Embed", "SimilarQueries", "normalise"]

CANDIDATES: Final = 50
"""Known queries that are looked at, the most similar first: questions made from one template are
alike by the dozen, and differ in the word that matters."""

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""From texts to their embeddings, one vector of the same length for each."""

_Candidates = Callable[[str], Iterable[tuple[str, float]]]
"""From a query to known ones with their similarity, 0 to 1, the most similar first."""


class SimilarQueries:
    """Known queries that can be searched by similarity."""

    def __init__(
        self, queries: Sequence[str], threshold: float, embed: Embed | None = None
    ) -> None:
        """Index queries, with the options of ``GroundTruth``.

        Raises:
            ConfigError: The threshold is no number above 0 up to 1.
            GroundTruthError: ``embed`` returned something else than vectors.
            MissingExtraError: A package that compares is not installed.
        """
        is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
        if not is_number or not 0 < threshold <= 1:
            hint = percent_hint(threshold)
            raise ConfigError(f"similarity is {threshold!r}: give a number above 0 up to 1{hint}")
        if embed is None:
            self._candidates, self._is_same = _by_letters(queries, threshold), _asks_the_same
        else:
            self._candidates = _by_embedding(queries, threshold, embed)
            self._is_same = _may_ask_the_same

    def find(self, query: str) -> tuple[str, float] | None:
        """Return the most similar known query that asks the same, with its similarity, 0 to 1."""
        found = self._candidates(query)
        return next(((known, s) for known, s in found if self._is_same(query, known)), None)


def _by_letters(queries: Sequence[str], threshold: float) -> _Candidates:
    """Compare normalised queries by the share of letters that both have in order."""
    try:
        from rapidfuzz import fuzz, process
    except ImportError as error:
        raise MissingExtraError("rapidfuzz", "similarity") from error
    normalised = [normalise(query) for query in queries]

    def candidates(query: str) -> Iterable[tuple[str, float]]:
        # In C++: 10,000 queries take milliseconds.
        found = process.extract(
            normalise(query),
            normalised,
            scorer=fuzz.ratio,
            # Normalised already; its own processor would drop the signs that we keep.
            processor=None,
            limit=CANDIDATES,
            # rapidfuzz counts from 0 to 100, and stops early at what cannot reach the cutoff.
            score_cutoff=100 * threshold,
        )
        return ((queries[place], score / 100) for _, score, place in found)

    return candidates


def _by_embedding(queries: Sequence[str], threshold: float, embed: Embed) -> _Candidates:
    known = _vectors(queries, embed) if queries else None

    def candidates(query: str) -> Iterable[tuple[str, float]]:
        if known is None:
            return
        cosines = known @ _vectors([query], embed)[0]
        # argsort has no order from high to low, so the signs are turned.
        for place in map(int, (-cosines).argsort()[:CANDIDATES]):
            if cosines[place] < threshold:
                return
            # In single precision the cosine of a vector with itself may be 1.0000001.
            yield queries[place], min(float(cosines[place]), 1.0)

    return candidates


def _vectors(texts: Sequence[str], embed: Embed) -> NDArray[np.float32]:
    """Embeddings of length 1, of shape ``(n_texts, n_dimensions)``."""
    try:
        import numpy as np
    except ImportError as error:
        raise MissingExtraError("numpy", "similarity") from error
    wanted = "return one list of numbers for each text, all of the same length"
    try:
        vectors = np.asarray(embed(texts), dtype=np.float32)
    except (TypeError, ValueError):
        raise GroundTruthError(f"embed returned something else than vectors: {wanted}") from None
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise GroundTruthError(
            f"embed returned the shape {vectors.shape} for {len(texts)} texts: {wanted}"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    # A vector of nothing is like nothing.
    lengths[lengths == 0] = np.inf
    units: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
    return units


_NAME_SIGNS: Final = frozenset("#%&@*/\\_")
"""Punctuation that is part of a name or a quantity: "C#", "50 %"."""

_MINUS: Final = re.compile(r"(?<![\w.,)])[-\u2013](?=\d)")
"""A hyphen that is the sign of a number: "-5", not "2019-2022"."""

_RAISED: Final = re.compile(r"[⁺⁻]?[⁰¹²³⁴-⁹]+")
"""An exponent: in Unicode's compatibility form, "2³" would be "23"."""

_FRACTION: Final = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
"""Between a number and a fraction in one character: without a space, "2½" would be "21/2"."""

# Without its sign "1/2" would be "1.2", and "1.000" would be "1,000".
_WITHIN_NUMBER: Final = re.compile(r"(?<=\d)[^\w\s](?=\d)")
_DASH: Final = re.compile(r"(?<=\d)[\u2010-\u2015](?=\d)")
_PARTS: Final = re.compile(r"\u2212?\d+(?:[^\w\s]\d+)*|[^\d\u2212]+")
"""Numbers, and what stands between them: "FY2022" is two parts, and "3.5" is one."""

_CONTRACTED: Final = re.compile(r"\b(what|who|where|when|how|that|it|there)['\u2019]s\b", re.I)
_CANNOT: Final = re.compile(r"\bcan['\u2019]?t\b", re.I)
_POSSESSIVE: Final = re.compile(r"['\u2019]s\b", re.I)
_ADDRESS: Final = re.compile(
    r"^(?:(?:please|kindly|hi|hello|hey|can you|could you|would you|tell me|"
    r"i want to know|i would like to know|do you know) )+|(?: (?:please|thanks|thank you))+$"
)
_EMPTY_WORDS: Final = frozenset("the an of in do does".split())
"""English words without which a question asks the same. Tenses and directions are not among them
("was", "from", "to"), and neither is "a", which may be a name ("vitamin A")."""

_NEGATIONS: Final = frozenset(
    "not no never none neither nor nobody nothing without except excluding unless cannot "
    "isn aren wasn weren don doesn didn won wouldn shouldn couldn hasn haven hadn mustn needn "
    "nicht nie niemals niemand nichts kein keine keinem keinen keiner keines ohne außer ausser "
    "ne ni nisem nisi nista niste nismo niso nima nimam nimajo noben nobena nobenega nikoli nihče "
    "nihce nič nic brez razen pas sans non sin nunca bez".casefold().split()
)
"""Words in lower case that turn a question around, in the languages that are asked most."""

_TURNING: Final = ("un", "in", "im", "il", "ir", "dis", "non", "ne", "mis")
"""Beginnings that turn a word around: "illegal", "ungültig", "nevaren"."""

_NUMERALS: Final = frozenset(CARDINALS) | frozenset(
    "half double twice hundred thousand million billion zwei drei vier fünf sechs sieben acht neun "
    "zehn hundert tausend halb doppelt dva dve tri štiri pet šest sedem osem devet deset sto tisoč "
    "pol dvakrat".split()
)
"""Numbers in words. "Ein" and "en" are articles as well, and are not among them."""

_NO_PLURALS: Final = frozenset("customs damages goods minutes premises proceeds spirits".split())
"""Words that mean something else without their "s", as in "the customs of a port"."""


def normalise(query: str) -> str:
    """A query without case, punctuation, white space and form, which do not change its meaning.

    Marks and symbols stay, since they tell words apart ("C++", Devanagari vowels), and so do signs
    that belong to names and quantities ("C#", "50 %", "-5", "2³").
    """
    apart = _FRACTION.sub(" ", _RAISED.sub(r"^\g<0>", query))
    text = _MINUS.sub("\u2212", unicodedata.normalize("NFKC", apart)).replace("\u2044", "/")
    text = _DASH.sub("-", text.casefold())
    kept = {match.start() for match in _WITHIN_NUMBER.finditer(text)}
    signs = (c if i in kept or _carries_meaning(c) else " " for i, c in enumerate(text))
    return " ".join("".join(signs).split())


def _asks_the_same(query: str, known: str) -> bool:
    """Whether two questions ask the same: the same words in the same order, up to plurals.

    A number may stand elsewhere: "In 2019, who won?", "Who won in 2019?".
    """
    (words, numbers), (others, other_numbers) = _parted(query), _parted(known)
    if numbers != other_numbers or len(words) != len(others):
        return False
    exact = _capitalised(query) | _capitalised(known)
    # "Roberts" are no plural of "Robert".
    return all(
        left == right or (not exact & {left, right} and _singular(left) == _singular(right))
        for left, right in zip(words, others, strict=True)
    )


def _may_ask_the_same(query: str, known: str) -> bool:
    """Whether nothing forbids that two questions ask the same, whose words need not be the same.

    Numbers have to agree in their order, and so do names, which have to stand in both; negations,
    and signs such as "%" and "€", have to be the same.
    """
    (words, numbers), (others, other_numbers) = _parted(query), _parted(known)
    # "From 3 to 5" is not "from 5 to 3"; an embedding hardly tells them apart.
    if numbers != other_numbers or _only(_NUMERALS, words) != _only(_NUMERALS, others):
        return False
    if len(_only(_NEGATIONS, words)) != len(_only(_NEGATIONS, others)) or _turned(words, others):
        return False
    if _signs(words) != _signs(others) or _lettered(query) != _lettered(known):
        return False
    # The first word has a capital letter anyway.
    names = _capitalised(query, first=1) | _capitalised(known, first=1)
    return _only(names, words) == _only(names, others) and names <= set(words)


def _carries_meaning(character: str) -> bool:
    return character in _NAME_SIGNS or unicodedata.category(character)[0] in "LMNS"


def _said(query: str) -> list[str]:
    """The words that carry content as they are written, in lower case."""
    # "Can't" would be "can" and "t", which is no negation.
    spelt = _CANNOT.sub("cannot", _CONTRACTED.sub(r"\1 is", query))
    said = _POSSESSIVE.sub("", spelt)
    plain = _ADDRESS.sub("", normalise(said))
    return [word for word in plain.split() if word not in _EMPTY_WORDS]


def _parted(query: str) -> tuple[list[str], list[str]]:
    """The words without and with digits; "FY2022" is two."""
    parted: tuple[list[str], list[str]] = ([], [])
    for word in _said(query):
        for part in _PARTS.findall(word):
            parted[_has_digit(part)].append(part)
    return parted


def _has_digit(word: str) -> bool:
    return any(character.isdigit() for character in word)


def _turned(words: Iterable[str], others: Iterable[str]) -> bool:
    """Whether a word of one has a beginning in the other that turns it around."""
    one, other = set(words), set(others)
    alone = one ^ other
    return any(
        turned in alone and (word in one) != (turned in one)
        for word in alone
        for turned in (f"{beginning}{word}" for beginning in _TURNING)
    )


def _signs(words: Iterable[str]) -> set[str]:
    return {c for word in words for c in word if not c.isalnum() and _carries_meaning(c)}


def _only(wanted: Container[str], words: Iterable[str]) -> list[str]:
    return [word for word in words if word in wanted]


def _lettered(query: str) -> list[str]:
    """Numbers with a letter behind them: "5a" is another paragraph than "5"."""
    return [word for word in _said(query) if _has_digit(word) and word[-1].isalpha()]


def _capitalised(query: str, first: int = 0) -> set[str]:
    """Words with a capital letter from the first on; the whole query may be in capitals."""
    if query.isupper():
        return set()
    said = _POSSESSIVE.sub("", query).split()[first:]
    capital = " ".join(word for word in said if any(c.isupper() for c in word))
    return set(_parted(capital)[0])


def _singular(word: str) -> str:
    if word in _NO_PLURALS:
        return word
    # "Glass", "bus", "basis" and "atlas" are singular, and so may be words of other alphabets.
    if len(word) > 4 and word.isascii() and word.endswith("s") and word[-2] not in "suia":
        return word[:-1]
    return word
