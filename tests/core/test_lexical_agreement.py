"""The figures in the docstring of ``LexicalJudge`` are those that the benchmark measures."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from claimspan.judges import LexicalJudge

ROOT: Final = Path(__file__).resolve().parents[2]
DATA: Final = ROOT.parent / "shared" / "data" / "entailment" / "dev"
SETS: Final = ("lfqa_verification", "factcheckgpt_stance", "begin_dev", "fever_sym_dev", "fm2_dev")
TOLERANCE: Final = 0.005

_ROW: Final = re.compile(r"^\s*(\w+)\s+(\d+)((?:\s+(?:\d\.\d{3}|-))+)$", re.MULTILINE)


def _table(text: str) -> dict[str, list[float]]:
    """Set names with their figures; a dash is no figure."""
    return {
        name: [float(figure) for figure in (n, *figures.split()) if figure != "-"]
        for name, n, figures in _ROW.findall(text)
    }


def test_the_docstring_has_a_row_for_every_set() -> None:
    stated = _table(LexicalJudge.__doc__ or "")
    assert len(stated) == 10
    assert stated.keys() >= set(SETS)


def test_the_docstring_states_what_the_benchmark_measures() -> None:
    if not DATA.is_dir():
        pytest.skip("the shared data is absent: ../shared/data/entailment/dev")
    script = ROOT / "tests" / "benchmarks" / "lexical_agreement.py"
    command = [sys.executable, str(script), "--data", str(DATA), "--sets", *SETS]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    measured, stated = _table(printed), _table(LexicalJudge.__doc__ or "")
    assert measured.keys() == set(SETS)
    for name, figures in measured.items():
        assert figures == pytest.approx(stated[name], abs=TOLERANCE), name
