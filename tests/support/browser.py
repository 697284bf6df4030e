"""A real browser without a window: what a person sees of our traces in a backend.

Playwright drives it: its locators wait for what a page shows, so that a test needs no pauses, and
it takes any Chromium by its path. Selenium needs a driver of the same version beside the browser.
Playwright is not asked to download a browser: the one of the machine is used, else Debian's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, expect, sync_playwright

__all__ = ["PICTURES", "find_browser", "open_page", "picture"]

PICTURES: Final = Path(__file__).parents[2] / "test-results" / "backends"
"""Where screenshots are kept; git ignores it."""

WAIT_SECONDS: Final = 60.0
"""Longest wait for something on a page; a busy machine needs several seconds for a big page."""

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

_INSTALL_SECONDS: Final = 300.0  # 20 s for about 110 MB on a fast line


class BrowserError(Exception):
    """No Chromium was found, and none could be installed."""


@contextmanager
def open_page(
    width: int = 1600, height: int = 1000, *, headers: dict[str, str] | None = None
) -> Generator[Page]:
    """Open an empty page in a browser of its own, which is closed with the block.

    Playwright leaves an event loop running on this thread until then. So no fixture may keep a
    page open over several tests: an asynchronous one among them could not start its own loop.

    Args:
        width: Of the window, in pixels.
        height: Of the window, in pixels.
        headers: Sent with each request, such as those that a server behind a proxy wants.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), headless=True)
        try:
            page = browser.new_page(
                viewport={"width": width, "height": height}, extra_http_headers=headers
            )
            page.set_default_timeout(WAIT_SECONDS * 1000)
            expect.set_options(timeout=WAIT_SECONDS * 1000)
            yield page
        finally:
            browser.close()


def picture(page: Page, name: str) -> Path:
    """Keep what the page shows now as ``name.png`` for a person to look at."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path)
    return path


def find_browser() -> str:
    """The path of a Chromium: the one that CHROME names, one on the PATH, else Debian's package.

    Raises:
        BrowserError: There is none, and none can be installed; the message says what to do.
    """
    named = os.environ.get("CHROME")
    if named and not Path(named).is_file():
        raise BrowserError(f"CHROME names {named}, which is no file: correct it, or unset it")
    return named or _on_path() or _install()


def _on_path() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


def _install() -> str:
    """Install Debian's package, which only root can."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise BrowserError(
            "no Chromium on this machine: install one (on Debian `apt-get install chromium` as "
            "root), or set CHROME to the path of a Chromium or Chrome"
        )
    _apt("update")
    _apt("install", "--yes", "--no-install-recommends", "chromium")
    found = _on_path()
    if found is None:
        raise BrowserError(
            "apt-get installed chromium, but it is not on the PATH: set CHROME to it"
        )
    return found


def _apt(*arguments: str) -> None:
    ended = subprocess.run(
        ["apt-get", "--quiet", *arguments],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        timeout=_INSTALL_SECONDS,
    )
    if ended.returncode != 0:
        raise BrowserError(
            f"`apt-get {' '.join(arguments)}` failed: {ended.stderr.strip()[-500:]}. Install a "
            "Chromium, or set CHROME to the path of one"
        )
