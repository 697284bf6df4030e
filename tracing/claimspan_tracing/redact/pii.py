"""The built-in redactor: addresses, numbers and keys that can be recognised by their form."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Final, Literal, get_args

from claimspan.errors import ConfigError, MissingExtraError
from claimspan_tracing.redact.folding import Place, fold, unfolded
from claimspan_tracing.redact.keys import find_jwts, find_keys

__all__ = ["PiiKind", "PiiRedactor"]

PiiKind = Literal["jwt", "key", "email", "iban", "card", "phone"]
"""What ``PiiRedactor`` finds. If two kinds overlap, the earlier one names the whole."""

KINDS: Final[tuple[str, ...]] = get_args(PiiKind)

REGIONS: Final = ("US", "GB", "DE", "FR", "ES", "IT")
"""Countries whose national telephone numbers are recognised by default."""


# Every repetition below is possessive or bounded, and begins where the character before cannot be
# a part of it: no text takes more than linear time.

# Latin, Greek and Cyrillic letters; scripts without spaces would make a whole sentence the name.
_LETTERS: Final = r"A-Za-z0-9\u00c0-\u024f\u0370-\u052f"
# Without the signs that separate an address from what stands before it in a link.
_NAME: Final = rf"{_LETTERS}.!#$'*+^_`|~-"
_OTHER: Final = rf"[^\W{_LETTERS}]"
# A line may break at the sign before the host, and before the host's first dot is passed; spaces
# may stand there if a dot in the name says that it is one. Some write the signs as words, so that
# no machine may read them.
_AT: Final = r"(?:(?(dotted)\s?@\s?|\n?@\n?)|%40| ?[\[({<] ?(?i:at|@) ?[\])}>] ?)"
_DOT: Final = r"(?:\.| ?[\[({<] ?(?i:dot|\.) ?[\])}>] ?)"
_EMAIL: Final = re.compile(
    rf"(?:(?<![{_NAME}])(?P<dotted>(?=[{_LETTERS}-]+[._][{_LETTERS}]))?"
    rf"[{_NAME}]++(?:(?<=[_+-])\n[{_NAME}]++)?|(?<!{_OTHER}){_OTHER}++){_AT}"
    rf"(?P<host>[{_LETTERS}-]++(?:\n[{_LETTERS}-]++)?(?:{_DOT}\n?[{_LETTERS}-]++)"
    rf"(?:{_DOT}[{_LETTERS}-]++)*+|\w++(?:\.\w++)++)"
)


class PiiRedactor:
    """Replaces e-mail addresses, telephone numbers, cards, bank accounts, tokens and keys.

    Each becomes its kind in brackets, such as ``[email]``. Recognised by form, and passwords by the
    name in front of them: names of people, street addresses and dates of birth need a redactor of
    your own. Invisible and typographic signs hide nothing. The same text gives the same result.
    """

    def __init__(
        self, kinds: Collection[PiiKind] | None = None, regions: Sequence[str] = REGIONS
    ) -> None:
        """Choose the kinds that are replaced.

        Args:
            kinds: Which kinds, of ``key``, ``jwt``, ``email``, ``iban``, ``card`` and ``phone``;
                None for all of them.
            regions: Two-letter codes of the countries whose national spelling of a telephone number
                is recognised; numbers that begin with ``+`` or ``00`` are, from anywhere.

        Raises:
            ConfigError: A kind or a region is unknown.
            MissingExtraError: The packages for numbers are not installed.
        """
        wanted = set[str](KINDS if kinds is None else kinds)
        if isinstance(kinds, str) or not wanted <= set(KINDS):
            raise ConfigError(f"kinds is {kinds!r}: give a list with any of {', '.join(KINDS)}")
        finders: dict[str, _Finder] = {"jwt": find_jwts, "key": find_keys, "email": _find_emails}
        if wanted & {"phone", "iban", "card"}:
            finders |= _number_finders(regions)
        self._finders = {kind: finders[kind] for kind in KINDS if kind in wanted}

    def __call__(self, text: str) -> str:
        """Return a text without its findings."""
        folded, places = fold(text)
        found = [
            (*unfolded(place, places), kind)
            for kind, find in self._finders.items()
            for place in find(folded)
        ]
        parts: list[str] = []
        done = 0
        for start, end, kind in _merged(sorted(found)):
            parts += [text[done:start], f"[{kind}]"]
            done = end
        return "".join([*parts, text[done:]])

    def __repr__(self) -> str:
        return f"PiiRedactor(kinds={list(self._finders)})"


_Finder = Callable[[str], Iterator[Place]]
_Found = tuple[int, int, str]


def _merged(found: Sequence[_Found]) -> list[_Found]:
    """Join what overlaps: half of it must not be left."""
    merged: list[_Found] = []
    for start, end, kind in found:
        if merged and start < merged[-1][1]:
            before, until, first = merged[-1]
            merged[-1] = (before, max(until, end), min(first, kind, key=KINDS.index))
        else:
            merged.append((start, end, kind))
    return merged


def _number_finders(regions: Sequence[str]) -> dict[str, _Finder]:
    for package in ("phonenumbers", "stdnum"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "redact")
    # Only now: the extra is not installed everywhere, and its tables take 30 ms to load.
    import phonenumbers

    from claimspan_tracing.redact.numbers import find_cards, find_ibans, find_phones

    unknown = set(regions) - phonenumbers.SUPPORTED_REGIONS
    if isinstance(regions, str) or unknown:
        raise ConfigError(f"regions is {regions!r}: give a list of codes, such as ['US', 'GB']")
    phones = partial(find_phones, regions=tuple(regions))
    return {"iban": find_ibans, "card": find_cards, "phone": phones}


def _find_emails(text: str) -> Iterator[Place]:
    for found in _EMAIL.finditer(text):
        # A version behind a package, ``left-pad@1.3.0``, is no host.
        if not found["host"].rpartition(".")[2].isdecimal():
            yield found.span()
