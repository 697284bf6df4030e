"""What an import costs: nothing is loaded before it is used, and nothing that is not needed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

import claimspan
from claimspan.judges import LexicalJudge

HEAVY: Final = frozenset(
    """
    haystack jinja2 langchain langchain_core llama_index onnxruntime openai opentelemetry
    opentelemetry.sdk rich torch typer
    """.split()
)

EVALUATE: Final = """
from claimspan import Chunk, RagRecord, evaluate
record = RagRecord(
    query="Where is the Eiffel Tower?",
    response="The Eiffel Tower is in Paris.",
    chunks=(Chunk(id="1", text="The Eiffel Tower is in Paris, France."),),
    ground_truth="It is in Paris.",
)
found = evaluate(record)
assert found.judge_name == "lexical", found.judge_name
assert found.response_claims, "no claim was found"
"""


def loaded_by(code: str) -> set[str]:
    """Names of the modules that stand in a fresh interpreter after the code has run."""
    environment = os.environ | {"PYTHONWARNINGS": "error", "CLAIMSPAN_JUDGE": "lexical"}
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        check=False,
        encoding="utf-8",
        env=environment,
    )
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def test_the_check_sees_what_is_loaded() -> None:
    assert "rich" in loaded_by("import rich") & HEAVY


def test_importing_claimspan_loads_nothing_heavy() -> None:
    loaded = loaded_by("import claimspan")

    assert loaded & HEAVY == set()
    assert "claimspan" in loaded


def test_importing_claimspan_loads_none_of_its_own_modules() -> None:
    loaded = loaded_by("import claimspan")

    assert {name for name in loaded if name.startswith("claimspan.")} == set()
    assert "pydantic" not in loaded


def test_plain_english_is_judged_by_words_without_an_import() -> None:
    # A child that is forked while another thread imports a module waits for it without end.
    loaded_by("""
import asyncio, sys
from claimspan.judges import LexicalJudge
from claimspan.verdicts import Claim
judge, loaded = LexicalJudge(), {*sys.modules}
matrix = asyncio.run(judge.check([Claim(text="The river is long.")], ["The river is 20 km long."]))
assert matrix[0][0] is not None
assert {*sys.modules} == loaded, {*sys.modules} - loaded
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("markdown_it", "# Rivers\n\n* The **Sava** is long.\n* The Drava is *not*.\n"),
        ("_claimspan_snowball.german", "Der Fluss ist sehr lang, die Brücke ist nicht neu."),
    ],
)
def test_a_child_forked_while_a_thread_imports_what_a_text_needs_reads_texts_too(
    module: str, text: str
) -> None:
    loaded_by(f"""
import asyncio, os, sys, threading, time, warnings
from importlib.abc import MetaPathFinder
from claimspan.judges import LexicalJudge
from claimspan.verdicts import Claim

warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
importing = threading.Event()

class Slow(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.startswith({module!r}) and not importing.is_set():
            importing.set()
            time.sleep(0.5)  # long enough to fork meanwhile
        return None

def judge():
    return asyncio.run(LexicalJudge().check([Claim(text={text!r})], [{text!r}]))

sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=judge)
thread.start()
assert importing.wait(20), "the text needs no import"
child = os.fork()
if child == 0:
    judge()
    os._exit(7)
until = time.monotonic() + 20
while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
    time.sleep(0.02)
if ended == (0, 0):
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise SystemExit("the child waits for an import that no thread of its own makes")
assert os.waitstatus_to_exitcode(ended[1]) == 7, ended
thread.join()
""")


def test_evaluating_with_the_lexical_judge_loads_nothing_heavy() -> None:
    loaded = loaded_by(EVALUATE)

    assert loaded & HEAVY == set()
    assert "claimspan.judges.lexical" in loaded


def test_the_lexical_judge_evaluates_from_an_archive(tmp_path: Path) -> None:
    # Where applications are shipped as one file, as by zipapp, shiv or a zip on PYTHONPATH.
    archive, package = tmp_path / "app.zip", Path(claimspan.__file__).parent
    with ZipFile(archive, "w") as zipped:
        for file in package.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                zipped.write(file, file.relative_to(package.parent))
    first = f"import sys\nsys.path.insert(0, {str(archive)!r})\nimport claimspan\n"

    loaded_by(f"{first}assert {str(archive)!r} in claimspan.__file__\n{EVALUATE}")


def test_the_judges_load_no_client_before_it_is_used() -> None:
    loaded = loaded_by(
        "import claimspan.judges as judges\n"
        "from claimspan.judges import Judge, LexicalJudge, SparseJudge, default_judge\n"
        "assert default_judge().name == 'lexical'"
    )

    assert loaded & HEAVY == set()
    assert "openai" in loaded_by("from claimspan.judges import OpenAIJudge")
    assert loaded_by("from claimspan.judges import CascadeJudge, ChatModel") & HEAVY == set()


def test_the_judge_by_words_is_loaded_when_it_is_chosen() -> None:
    package = "claimspan.judges.lexical"

    assert package not in loaded_by("import claimspan.evaluation, claimspan.judges")
    assert package in loaded_by("from claimspan.judges import judge_of\njudge_of('lexical')")
    assert package in loaded_by("from claimspan.judges import LexicalJudge")


def test_the_scripted_judge_needs_no_test_framework() -> None:
    loaded = loaded_by("from claimspan.testing import ScriptedJudge")

    assert loaded & (HEAVY | {"pytest", "unittest"}) == set()


@pytest.mark.parametrize("name", claimspan.__all__)
def test_every_public_name_is_there_on_first_use_and_loads_nothing_heavy(name: str) -> None:
    loaded = loaded_by(f"from claimspan import {name}\nassert {name}.__name__ == {name!r}")

    assert loaded & HEAVY == set()


@pytest.mark.parametrize("name", claimspan.__all__)
def test_every_public_name_is_listed_and_the_same_each_time(name: str) -> None:
    assert name in dir(claimspan)
    assert getattr(claimspan, name) is getattr(import_module("claimspan"), name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'claimspan' has no attribute 'nonsense'"):
        _ = claimspan.nonsense


def test_an_unknown_name_cannot_be_imported() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "from claimspan import nonsense"],
        capture_output=True,
        check=False,
        encoding="utf-8",
    )

    assert run.returncode == 1
    assert "ImportError: cannot import name 'nonsense'" in run.stderr


def test_the_lexical_judge_stands_with_the_judges() -> None:
    assert LexicalJudge.__module__ == "claimspan.judges.lexical.judge"
    assert LexicalJudge().name == "lexical"


def test_the_version_is_that_of_the_installed_package() -> None:
    assert claimspan.__version__ == version("claimspan")


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'evaluations'"):
        claimspan.__getattr__("evaluations")
