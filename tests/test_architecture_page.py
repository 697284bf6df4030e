"""The pages for contributors are true: rooms are folders, names exist, examples run."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from claimspan_tracing import Monitor
from claimspan_tracing.capture.hooks import Capture
from claimspan_tracing.engine import Engine
from claimspan_tracing.engine.reading import Reading
from claimspan_tracing.write.writer import Writer

ROOT: Final = Path(__file__).parents[1]
ARCHITECTURE: Final = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
EXTENDING: Final = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
LEANED_ON_PAGE: Final = (ROOT / "docs" / "leaned_on.md").read_text(encoding="utf-8")
PAGES: Final = "\n".join(
    [
        ARCHITECTURE,
        EXTENDING,
        LEANED_ON_PAGE,
        *((ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in ("releasing", "workers")),
    ]
)
MOST_WORDS: Final = 3_000
PACKAGES: Final = {
    "core": ROOT / "core" / "claimspan",
    "tracing": ROOT / "tracing" / "claimspan_tracing",
}

SEAMS: Final = ("framework", "judge", "sink", "metric")
LONGEST_RECIPE: Final = 14
"""Lines of a list of steps: about ten, and a step may take two."""


def section(title: str, page: str = ARCHITECTURE) -> str:
    """The text of a section of a page."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no section {title!r}"
    return found[1]


def rooms_on_page(layer: str) -> set[str]:
    first_cells = re.findall(r"^\| (`.*?) \|", section(f"Rooms of {layer}"), re.MULTILINE)
    return {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}


def rooms_on_disk(layer: str) -> set[str]:
    entries = PACKAGES[layer].iterdir()
    names = {e.stem for e in entries if e.suffix == ".py" or (e / "__init__.py").is_file()}
    return {name for name in names if not name.startswith("__")}


@pytest.mark.parametrize("layer", PACKAGES)
def test_the_page_names_every_room_and_no_other(layer: str) -> None:
    assert rooms_on_page(layer) == rooms_on_disk(layer)


@pytest.mark.parametrize("seam", SEAMS)
def test_the_page_tells_in_about_ten_lines_how_to_add(seam: str) -> None:
    steps = section(f"Add a {seam}", EXTENDING).partition("\n1. ")[2].strip().splitlines()

    assert steps
    assert len(steps) <= LONGEST_RECIPE


@pytest.mark.parametrize("seam", SEAMS)
def test_the_example_of_each_seam_runs_and_prints_what_it_says(
    seam: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = re.findall(
        r"^```python\n(.*?)^```", section(f"Add a {seam}", EXTENDING), re.MULTILINE | re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}

    # The text is our own page, and this test exists to run it.
    exec(compile(block, "extending.md", "exec"), names)  # noqa: S102 - see above

    monitor = names.get("monitor")
    if isinstance(monitor, Monitor):
        assert monitor.shutdown(10)
        assert monitor.stats.faults == 0
    (said,) = re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE)
    assert capsys.readouterr().out == f"{said}\n"


def test_the_page_on_the_architecture_is_read_at_one_sitting() -> None:
    assert len(ARCHITECTURE.split()) <= MOST_WORDS


def test_every_path_on_the_page_is_there() -> None:
    paths = set(re.findall(r"`([\w./-]+/[\w./-]*)`", PAGES))

    assert "tracing/claimspan_tracing/job.py" in paths
    missing = {path for path in paths if "NAME" not in path and not (ROOT / path).exists()}
    assert missing == set()


def test_every_dotted_name_of_ours_on_the_page_can_be_imported() -> None:
    names = set(re.findall(r"`(claimspan(?:_\w+)?(?:\.\w+)+)`", PAGES))

    assert "claimspan_tracing.adapters" in names
    for name in names:
        module, _, last = name.rpartition(".")
        owner = import_module(module)
        assert hasattr(owner, last) or import_module(name), name


def test_every_test_on_the_page_is_there() -> None:
    tests = "\n".join(
        path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))
    )
    named = set(re.findall(r"`(test_\w+)`", PAGES))

    assert {name for name in named if f"def {name}(" not in tests} == set()


LEANED_ON: Final = sorted((ROOT / "tests" / "integrations").glob("test_leaned_on_*.py"))


@pytest.mark.parametrize("file", LEANED_ON, ids=lambda file: file.stem)
def test_every_test_of_this_file_is_named_in_the_list_of_what_we_lean_on(file: Path) -> None:
    here = set(re.findall(r"def (test_\w+)\(", file.read_text(encoding="utf-8")))
    listed = set(re.findall(r"`(test_\w+)`", LEANED_ON_PAGE))

    assert here - listed == set()


def test_every_stop_of_the_way_is_there() -> None:
    way = section("The way of a record")
    stops = {
        "Engine.submit": Engine,
        "Reading.process": Reading,
        "Writer.finish": Writer,
        "Capture.start": Capture,
    }

    for stop, owner in stops.items():
        assert f"`{stop}`" in way
        assert stop.partition(".")[2] in vars(owner)
