"""docs/architecture.md says what is true: its rooms are the folders, its names exist."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from claimspan_tracing.capture.hooks import Capture
from claimspan_tracing.engine import Engine
from claimspan_tracing.engine.reading import Reading
from claimspan_tracing.write.writer import Writer

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGES: Final = {
    "core": ROOT / "core" / "claimspan",
    "tracing": ROOT / "tracing" / "claimspan_tracing",
}

SEAMS: Final = ("framework", "judge", "sink", "metric")
LONGEST_RECIPE: Final = 14
"""Lines of a list of steps: about ten, and a step may take two."""


def section(title: str) -> str:
    """The text of a section of the page."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/architecture.md has no section {title!r}"
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
    steps = section(f"Add a {seam}").strip().splitlines()

    assert steps[0].startswith("1. ")
    assert len(steps) <= LONGEST_RECIPE


def test_every_path_on_the_page_is_there() -> None:
    paths = set(re.findall(r"`([\w./-]+/[\w./-]*)`", PAGE))

    assert "tracing/claimspan_tracing/job.py" in paths
    missing = {path for path in paths if "NAME" not in path and not (ROOT / path).exists()}
    assert missing == set()


def test_every_dotted_name_of_ours_on_the_page_can_be_imported() -> None:
    names = set(re.findall(r"`(claimspan(?:_\w+)?(?:\.\w+)+)`", PAGE))

    assert "claimspan_tracing.adapters" in names
    for name in names:
        module, _, last = name.rpartition(".")
        owner = import_module(module)
        assert hasattr(owner, last) or import_module(name), name


def test_every_test_on_the_page_is_there() -> None:
    tests = "\n".join(
        path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))
    )
    named = set(re.findall(r"`(test_\w+)`", PAGE))

    assert {name for name in named if f"def {name}(" not in tests} == set()


LEANED_ON: Final = sorted((ROOT / "tests" / "integrations").glob("test_leaned_on_*.py"))


@pytest.mark.parametrize("file", LEANED_ON, ids=lambda file: file.stem)
def test_every_test_of_this_file_is_named_in_the_list_of_what_we_lean_on(file: Path) -> None:
    here = set(re.findall(r"def (test_\w+)\(", file.read_text(encoding="utf-8")))
    listed = set(re.findall(r"`(test_\w+)`", section("Names of others that we lean on")))

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
