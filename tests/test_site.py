"""The site of the documentation: built as it is published, with every page in its menu."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import claimspan
import claimspan_tracing

from processes import start, wait_for

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; mkdocs ends with an error where it has a warning."""
    folder = tmp_path_factory.mktemp("site")
    command = ["-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    ended = wait_for(start(command, ROOT, NO_MKDOCS_2_WARNING="1"))
    assert (ended.code, ended.stdout) == (0, ""), ended.stderr
    return folder


def test_every_page_is_in_the_menu_and_on_the_site(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    menu = set(re.findall(r"(\w+)\.md", (ROOT / "mkdocs.yml").read_text("utf-8")))
    built = {path.parent.name for path in site.glob("*/index.html")} | {"index"}

    assert pages == menu
    assert pages <= built


@pytest.mark.parametrize("package", [claimspan, claimspan_tracing])
def test_the_reference_has_what_an_application_needs(site: Path, package: object) -> None:
    page = (site / "reference" / "index.html").read_text("utf-8")

    for name in ("evaluate", "RagRecord") if package is claimspan else ("Monitor", "observe"):
        assert hasattr(package, name)
        assert f"{getattr(package, '__name__', '')}.{name}" in page
    assert "hold_seconds" in page  # arguments come with their docstrings


def test_the_site_asks_no_other_host_for_anything(site: Path) -> None:
    for page in site.glob("**/*.html"):
        loaded = re.findall(
            r"<(?:script|link|img)[^>]+(?:src|href)=\"(https?://[^\"]+)", page.read_text("utf-8")
        )
        assert loaded == [], page.name
