r"""Packs everything that a training run reads into one folder.

    python -m train_local_judge.pack --out FOLDER --clapnq FILE ... --wiki-split FILE ... \\
        --qed FILE --scitldr FILE --refchecker FOLDER ... --wice FILE --expertqa FILE ... \\
        --vitaminc FILE --summedits FILE ... --rst FOLDER --html FOLDER --wordnet FOLDER \\
        --entailment FOLDER

``--entailment`` has ``train/*.jsonl`` and ``dev/*.jsonl`` with ``{premises, claim, label}``. Of the
development sets only the tune halves become training sets (``dev_...``), and all of them are
written as windows to measure on, ``dev.jsonl``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Final, cast

from claimspan.judges.local.reading import Passage
from train_local_judge import people, texts, written
from train_local_judge.falsehoods import Falsifier
from train_local_judge.lexicon import Lexicon
from train_local_judge.pairs import Document, PairMaker, Summary
from train_local_judge.relations import RelationMaker
from train_local_judge.rewrites import faithful

__all__ = ["main"]

MEASURE: Final = Path(__file__).parents[2] / "tests" / "benchmarks" / "lexical_agreement.py"
_SEED: Final = 1
_N_RULES: Final = 60_000
_N_MADE: Final = 120_000
_TUNED: Final = ("fm2_dev", "fever_sym_dev", "begin_dev", "wice_claim_dev")
"""Development sets under open licences."""


def main() -> None:
    """Write the folder with all training data."""
    options = _options()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    _write(out / "wiki.jsonl", _wikipedia(options.clapnq, options.qed))
    _write(out / "splits.jsonl", (s for path in options.wiki_split for s in texts.wiki_split(path)))
    _write(out / "manuals.jsonl", _manuals(options.rst, options.html))
    _write(out / "summaries.jsonl", _summaries(options.scitldr, options.clapnq))
    _write(
        out / "human_refchecker.jsonl", (p for f in options.refchecker for p in people.triplets(f))
    )
    paragraphs = texts.qed_paragraphs(options.qed)
    _write(
        out / "human_refchecker_nq.jsonl",
        (p for f in options.refchecker for p in people.labelled_triplets(f, paragraphs)),
    )
    _write(out / "human_wice_train.jsonl", people.partly_supported(options.wice))
    for path in sorted((options.entailment / "train").glob("*.jsonl")):
        _write(out / f"human_{path.stem}.jsonl", _human(path))
    _write(out / "human_written.jsonl", written.training_pairs())
    _write(out / "human_written_en.jsonl", written.training_pairs("en"))
    _write(out / "human_mixed_en.jsonl", written.mixed_pairs("en"))
    _write(out / "human_unrelated_en.jsonl", written.unrelated_pairs("en"))
    _write(out / "human_expertqa.jsonl", people.expert_claims(options.expertqa))
    _write(out / "human_vitaminc.jsonl", people.revised_facts(options.vitaminc, _claims(options)))
    _write(
        out / "human_summedits.jsonl",
        (p for path in options.summedits for p in people.edited_summaries(path)),
    )
    measure = _module(MEASURE)
    for name in _TUNED:
        path = options.entailment / "dev" / f"{name}.jsonl"
        _write(out / f"human_{name}.jsonl", _tune_half(measure, name, path))
    _write(out / "dev.jsonl", _dev(measure, options.entailment / "dev"))
    (out / "wordnet").mkdir(exist_ok=True)
    for part in ("noun", "verb", "adj", "adv"):
        for kind in ("index", "data"):
            shutil.copy(options.wordnet / f"{kind}.{part}", out / "wordnet")
    _write(out / "human_rules.jsonl", islice(_relations(options).pairs(_SEED), _N_RULES))
    _write(out / "human_made.jsonl", islice(_maker(out).pairs(_SEED), _N_MADE))


def _maker(folder: Path) -> PairMaker:
    lexicon = Lexicon(folder / "wordnet")
    wiki, manuals = (_lines(folder / f"{name}.jsonl") for name in ("wiki", "manuals"))
    splits = [(whole, first, second) for whole, first, second in _lines(folder / "splits.jsonl")]
    summaries = cast("list[Summary]", _lines(folder / "summaries.jsonl"))
    single = sorted({premise for premise, *_ in _lines(folder / "human_conj_train.jsonl")})
    documents = [*wiki, *wiki, *wiki, *manuals, *([each] for each in single)]
    falsify = Falsifier(lexicon, [*wiki, *([each[0]] for each in splits)])
    return PairMaker(documents, splits, summaries, faithful(lexicon), falsify)


def _lines(path: Path) -> list[list[str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").strip().split("\n")]


def _relations(options: argparse.Namespace) -> RelationMaker:
    documents = [*_wikipedia(options.clapnq, options.qed), *_manuals(options.rst, options.html)]
    splits = [s for path in options.wiki_split for split in texts.wiki_split(path) for s in split]
    return RelationMaker(documents, splits, Lexicon(options.wordnet))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Pack the data of a training run.")
    for name in (
        "out",
        "qed",
        "scitldr",
        "wice",
        "vitaminc",
        "rst",
        "html",
        "wordnet",
        "entailment",
    ):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("clapnq", "wiki-split", "refchecker", "expertqa", "summedits"):
        parser.add_argument(f"--{name}", type=Path, nargs="+", required=True)
    return parser.parse_args()


def _write(path: Path, items: Iterable[object]) -> None:
    lines = [json.dumps(item, ensure_ascii=False) for item in items]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{path.name}: {len(lines)}", flush=True)


def _wikipedia(clapnq: list[Path], qed: Path) -> Iterator[Document]:
    for path in clapnq:
        yield from texts.clapnq(path)
    yield from texts.qed(qed)


def _manuals(rst: Path, pages: Path) -> Iterator[Document]:
    yield from texts.rst_pages(rst)
    yield from texts.html_pages(pages)


def _summaries(scitldr: Path, clapnq: list[Path]) -> Iterator[Summary]:
    yield from people.summaries(scitldr)
    for path in clapnq:
        yield from people.answers(path)


def _claims(options: argparse.Namespace) -> set[str]:
    """Returns the claims of all development sets."""
    files = (options.entailment / "dev").glob("*.jsonl")
    lines = (line for path in files for line in path.read_text(encoding="utf-8").splitlines())
    return {str(json.loads(line)["claim"]) for line in lines}


def _human(path: Path) -> Iterator[tuple[str, str, str]]:
    for line in path.read_text(encoding="utf-8").strip().split("\n"):
        record = json.loads(line)
        yield " ".join(record["premises"]), record["claim"], record["label"]


def _tune_half(measure: ModuleType, name: str, path: Path) -> Iterator[tuple[str, str, str]]:
    records = measure.read(path)
    for record, group in zip(records, measure.groups(name, records), strict=True):
        if measure.half_of(group) == "tune":
            yield " ".join(people.brief(record.premises, record.claim)), record.claim, record.label


def _dev(measure: ModuleType, folder: Path) -> Iterator[tuple[str, int, str, str, str, list[str]]]:
    for name in measure.SETS:
        records = measure.read(folder / f"{name}.jsonl")
        for at, (record, group) in enumerate(
            zip(records, measure.groups(name, records), strict=True)
        ):
            joined = " ".join(record.premises)
            premises = [joined] if name == "wice_claim_dev" else record.premises
            shown = [window for each in premises for window in Passage(each, "en").windows]
            yield name, at, measure.half_of(group), record.label, record.claim, shown


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
