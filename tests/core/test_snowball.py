"""The stemmer of one language is loaded alone, and stems as the package's own does."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Final, Protocol, cast

import pytest

from claimspan.text.words import stemmer


class Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 - snowballstemmer's name


class Package(Protocol):
    """The public functions of snowballstemmer, which has no annotations."""

    def algorithms(self) -> list[str]: ...

    def stemmer(self, lang: str) -> Stemmer: ...


PACKAGE: Final = cast("Package", import_module("snowballstemmer"))

WORDS = (
    "häusern gegangen nationalités continuellement ciudades corriendo παιδιά красивыми "
    "государственного kuulevat járművek evlerinde případech كتابات lietuvos parameter_list "
    "kurtarılmasından przeciwnikami mahasiswa katangian nationale vriendelijkheid computadores"
).split()

LOADED = (
    "import sys; from claimspan.text.words import stem; assert stem('Häusern', 'de') == 'haus'; "
    "print(*(name for name in sys.modules if name.endswith('_stemmer')))"
)


@pytest.mark.parametrize("name", PACKAGE.algorithms())
def test_a_stemmer_gives_what_the_package_gives(name: str) -> None:
    stem, reference = stemmer(name), PACKAGE.stemmer(name)
    assert stem is not None
    assert [stem(word) for word in WORDS] == [reference.stemWord(word) for word in WORDS]


def test_a_language_that_snowball_does_not_have_has_no_stemmer() -> None:
    assert stemmer("klingon") is None


def test_a_text_in_another_language_loads_the_tables_of_that_language_alone() -> None:
    command = [sys.executable, "-c", LOADED]
    found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    loaded = found.stdout.split()
    assert [name.rpartition(".")[2] for name in loaded] == ["german_stemmer"]
