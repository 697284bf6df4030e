"""Which suites are run, and where their tests come from: sdists, or tagged public source."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tomllib
import urllib.request
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, TypeAdapter

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
SECONDS: Final = 300.0
INDEX: Final = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")


class SourceUnavailableError(Exception):
    """The source of a peer cannot be had now, so that its suite is not run."""


class Peer(BaseModel):
    """A package of others, whose tests are run with us and without."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """As its index knows it."""

    version: str
    """Whose tests, and whose code."""

    tests: tuple[str, ...]
    """What of the source is given to pytest."""

    part: str = ""
    """Which part of the suite that is; empty for all of it."""

    requirements: tuple[str, ...] = ()
    """What the tests need beside the package; ``locks/NAME.txt`` pins all of it."""

    environment: dict[str, str] = {}
    """Variables that the suite reads."""

    options: tuple[str, ...] = ()
    """Options of pytest."""

    deselect: tuple[str, ...] = ()
    """Tests that need a server, or minutes."""

    captures: bool = True
    """Whether the suite runs queries; where it does, a run that captures none shows nothing."""

    repository: str = ""
    """Where the source is, if the sdist has no tests."""

    ref: str = ""
    """What is fetched of it: a tag, or a commit."""

    commit: str = ""
    """What the ref has to be."""

    folder: str = ""
    """Where in the repository the package is."""


class Published(NamedTuple):
    """A file that the index has."""

    name: str
    url: str
    sha256: str


def peers() -> dict[str, Peer]:
    """Return all peers by name, in the order in which they are run."""
    listed = tomllib.loads((HERE / "peers.toml").read_text(encoding="utf-8"))
    found = TypeAdapter(dict[str, dict[str, object]]).validate_python(listed)
    return {name: Peer.model_validate({"name": name, **each}) for name, each in found.items()}


@cache
def published(name: str) -> tuple[Published, ...]:
    """Return the files of a project on the index, by PEP 691."""
    accepted = {"Accept": "application/vnd.pypi.simple.v1+json"}
    request = urllib.request.Request(f"{INDEX}/{name}/", headers=accepted)  # noqa: S310 - the index
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - as above
        files = json.load(answer)["files"]
    return tuple(
        Published(each["filename"], each["url"], each["hashes"]["sha256"]) for each in files
    )


def source(peer: Peer, into: Path) -> Path:
    """Return the folder with the source of a peer, which is brought there once.

    Args:
        peer: Whose source.
        into: An own folder of the peer.

    Raises:
        SourceUnavailableError: Its index or its repository does not give it.
    """
    stamp = f"{peer.version} {peer.commit}"
    folder, done = into / "source", into / "source.txt"
    if not done.exists() or done.read_text(encoding="utf-8") != stamp:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            (_check_out if peer.repository else _unpack)(peer, folder)
        except (OSError, subprocess.SubprocessError) as error:
            raise SourceUnavailableError(f"its source cannot be fetched: {error}") from error
        done.write_text(stamp, encoding="utf-8")
    # Pytest looks upwards for settings where a suite has none, and would find those of this
    # project, to which each warning is an error.
    into.joinpath("pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    return folder / peer.folder


def _unpack(peer: Peer, folder: Path) -> None:
    wanted = f"{peer.name.replace('-', '_')}-{peer.version}.tar.gz"
    file = next(each for each in published(peer.name) if each.name == wanted)
    with urllib.request.urlopen(file.url, timeout=SECONDS) as answer:  # noqa: S310 - the index's
        content: bytes = answer.read()
    # Not ``pip download``, which needs the package's build backend to unpack an archive.
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise SystemExit(f"{file.name} is not what the index says")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(folder, filter="data")
    inner = folder / wanted.removesuffix(".tar.gz")
    for each in list(inner.iterdir()):
        each.rename(folder / each.name)


def _check_out(peer: Peer, folder: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
        return done.stdout.strip()

    git("init", "--quiet")
    git("fetch", "--quiet", "--depth", "1", peer.repository, peer.ref)
    found = git("rev-parse", "FETCH_HEAD^{commit}")
    if found != peer.commit:
        raise SystemExit(f"{peer.ref} of {peer.repository} is {found}, and was {peer.commit}")
    git("checkout", "--quiet", "FETCH_HEAD")
