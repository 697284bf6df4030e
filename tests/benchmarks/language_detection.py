"""Counts the profiles of languages by which ``detect_language`` tells them, and measures it.

    python tests/benchmarks/language_detection.py DIR [--write]

``DIR`` has one file of sentences for each language, ``sentences.de`` and so on, a sentence a line:
those of the Wortschatz collection of Leipzig university (CC BY), of which the accuracy reports of
the project lingua carry 1,000 for each language. Lines 1 to 700 are counted, lines 701 to 800 are
for choosing constants, lines 801 to 1,000 measure. ``--write`` writes the profiles.

The table gives for each language how many whole sentences and how many beginnings of six words are
told right, taken for English, and not told at all.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from claimspan.text import languages
from claimspan.text.languages import detect_language, letter_runs, scored_words

PROFILES: Final = Path(languages.__file__).with_name("language_profiles.json")

LANGUAGES: Final = (
    "en de nl da nb sv fr es it pt ro ca hr sl cs sk pl fi et hu tr lt lv is sq id vi"
)
# Languages that are one for the rules of words and sentences.
KIN: Final = {"hr": ("hr", "bs"), "id": ("id", "ms")}
COUNTED: Final = slice(0, 700)
MEASURED: Final = slice(800, 1000)

RUNS_OF_A_LANGUAGE: Final = 220
WORDS_OF_A_LANGUAGE: Final = 80
LOWEST, STEP = -3.0, 0.25
LEVELS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXY"
_SMOOTHING: Final = 0.5
_FEWEST: Final = 4


def sentences(folder: Path, language: str, part: slice) -> Iterator[str]:
    """The sentences of one part of the file of a language and its kin."""
    for code in KIN.get(language, (language,)):
        yield from (folder / f"sentences.{code}").read_text(encoding="utf-8").split("\n")[part]


def counted(folder: Path) -> dict[str, Counter[str]]:
    """How often each run of letters occurs in the words of every language."""
    return {
        language: Counter(
            run
            for sentence in sentences(folder, language, COUNTED)
            for word in scored_words(sentence)
            for run in letter_runs(word.word)
        )
        for language in LANGUAGES.split()
    }


def shares(counts: Mapping[str, Counter[str]]) -> dict[str, dict[str, float]]:
    """The share of each run among those of its language."""
    return {
        language: {run: number / count.total() for run, number in count.items()}
        for language, count in counts.items()
    }


def profiles(counts: Mapping[str, Counter[str]]) -> dict[str, str]:
    """The runs that tell languages apart, each with its level in every language."""
    share = shares(counts)
    mean: Counter[str] = Counter()
    for runs in share.values():
        mean.update({run: part / len(share) for run, part in runs.items()})
    chosen: set[str] = set()
    for language, runs in share.items():
        ranked = sorted(
            (run for run in runs if counts[language][run] >= _FEWEST),
            key=lambda run: (-runs[run] * math.log(runs[run] / mean[run]), run),
        )
        chosen.update(ranked[:RUNS_OF_A_LANGUAGE])
        chosen.update([run for run in ranked if run == f" {run.strip()} "][:WORDS_OF_A_LANGUAGE])
    return {
        run: "".join(
            _level(share[code].get(run, 0.0), mean[run], _SMOOTHING / counts[code].total())
            for code in counts
        )
        for run in sorted(chosen)
    }


def _level(share: float, mean: float, smoothing: float) -> str:
    ratio = math.log((share + smoothing) / (mean + smoothing))
    return LEVELS[round((min(max(ratio, LOWEST), -LOWEST) - LOWEST) / STEP)]


def write(folder: Path) -> None:
    """Writes the profiles to where ``detect_language`` reads them."""
    content = {
        "languages": LANGUAGES,
        "lowest": LOWEST,
        "step": STEP,
        "levels": LEVELS,
        "runs": profiles(counted(folder)),
    }
    PROFILES.write_text(json.dumps(content, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


def measure(folder: Path) -> None:
    """Prints how many sentences are told right, by language."""
    print("     whole: right english none   six words: right english none")
    rows = [_row(folder, language) for language in LANGUAGES.split()]
    for language, row in zip(LANGUAGES.split(), rows, strict=True):
        print(language, "   ", " ".join(f"{share:8.3f}" for share in row))
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    print("mean   ", " ".join(f"{share:8.3f}" for share in means))


def _row(folder: Path, language: str) -> list[float]:
    whole = [each for each in sentences(folder, language, MEASURED) if each.strip()]
    begun = [" ".join(each.split()[:6]) for each in whole]
    row: list[float] = []
    for texts in (whole, begun):
        found = [detect_language(each) for each in texts]
        row += [found.count(code) / len(found) for code in (language, "en", None)]
    return row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Accuracy of detect_language.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="count the profiles, and write them")
    given = parser.parse_args()
    if given.write:
        write(given.folder)
    measure(given.folder)
