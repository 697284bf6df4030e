"""What is in a wheel and in an sdist, and how the weights of the local judge come beside them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from email import message_from_bytes
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
WEIGHTS: Final = ROOT / "core" / "local_weights"
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION: Final = tomllib.loads((WEIGHTS / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "version"
]

NAME: Final = "claimspan-local-weights"
PINNED: Final = f"{NAME}=={VERSION}"
BRINGING: Final = frozenset({"local", "demo", "train", "all"})
"""Extras that bring the local judge."""

LARGEST_WHEEL: Final = 2_000_000
"""Bytes: 1.29 million without the weights, which alone are 23 million."""

LARGEST_SDIST: Final = 8_000_000
"""Bytes: 3.9 million without the weights, half of them images."""

JUDGED: Final = """
from claimspan import Chunk, RagRecord, evaluate
from claimspan.errors import ClaimspanError
from claimspan.judges import LocalJudge
chunk = Chunk(id="a", text="The Drava is 725 km long and rises in Italy, near the border.")
record = RagRecord(query="q", chunks=(chunk,), response="The Drava has its source in Italy.")
try:
    print(evaluate(record, judge=LocalJudge()).metrics["faithfulness"])
except ClaimspanError as error:
    print(error)
"""


def ran(*command: str, cwd: Path, variables: Mapping[str, str] | None = None) -> str:
    """What a command prints; it has to end well."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | (variables or {}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def build(kind: str, source: Path, target: Path) -> Path:
    """Build a wheel or an sdist of claimspan from a folder, as every front end has it built."""
    ran(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target), cwd=source)
    (built,) = target.glob("claimspan-*.whl" if kind == "wheel" else "claimspan-*.tar.gz")
    return built


def required(metadata: bytes) -> dict[str, str]:
    """Extra to what it says of the weights."""
    lines: list[str] = message_from_bytes(metadata).get_all("Requires-Dist", [])
    parts = [line.partition(";") for line in lines if line.startswith(NAME)]
    return {marker.split("'")[1]: named.strip() for named, _, marker in parts}


def required_by_wheel(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as content:
        return required(content.read("claimspan-0.1.0.dist-info/METADATA"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


# --- what a build holds ---


def test_a_wheel_holds_no_weights_and_says_where_this_checkout_has_them(tmp_path: Path) -> None:
    wheel = build("wheel", ROOT, tmp_path)

    assert wheel.stat().st_size < LARGEST_WHEEL
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    assert "claimspan/judges/local/combination.json" in names
    assert [name for name in names if name.endswith(".onnx") or "weights" in name] == []
    assert required_by_wheel(wheel) == dict.fromkeys(BRINGING, f"{NAME} @ {WEIGHTS.as_uri()}")


def test_an_sdist_holds_no_weights_and_requires_them_by_name(sdist: Path) -> None:
    assert sdist.stat().st_size < LARGEST_SDIST
    with tarfile.open(sdist) as content:
        names = content.getnames()
        metadata = content.extractfile("claimspan-0.1.0/PKG-INFO")
        assert metadata is not None
        assert required(metadata.read()) == dict.fromkeys(BRINGING, PINNED)
    assert [name for name in names if "/local_weights" in name] == []


def test_a_wheel_of_an_sdist_requires_the_weights_by_name(sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as content:
        content.extractall(tmp_path, filter="data")

    wheel = build("wheel", tmp_path / "claimspan-0.1.0", tmp_path)

    assert required_by_wheel(wheel) == dict.fromkeys(BRINGING, PINNED)


def test_what_is_pinned_is_what_the_checkout_has() -> None:
    source: str = PROJECT["tool"]["uv"]["sources"][NAME]["path"]

    assert PINNED in PROJECT["project"]["optional-dependencies"]["local"]
    assert (ROOT / source).samefile(WEIGHTS)
    assert (WEIGHTS / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


# --- a clone that pip deletes ---


def cloned_by_pip(folder: Path, origin: str) -> tuple[Path, str]:
    """As much of a clone of pip's as a build reads, and its commit."""
    clone = folder / "pip-install-0a1b2c" / "claimspan_0a1b2c"
    (clone / "core" / "local_weights").mkdir(parents=True)
    (clone / "core" / "claimspan").mkdir()
    (clone / "core" / "claimspan" / "__init__.py").touch()
    for name in ("pyproject.toml", "README.md", "LICENSE", "core/hatch_build.py"):
        shutil.copy(ROOT / name, clone / name)
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    ran("git", "init", "--quiet", cwd=clone)
    ran("git", "add", ".", cwd=clone)
    ran("git", *author, "commit", "--quiet", "--message", "All", cwd=clone)
    ran("git", "remote", "add", "origin", origin, cwd=clone)
    return clone, ran("git", "rev-parse", "HEAD", cwd=clone)


def test_a_wheel_of_a_clone_that_pip_deletes_names_the_repository(tmp_path: Path) -> None:
    clone, commit = cloned_by_pip(tmp_path, "https://git.example.org/claimspan.git")

    repository = f"git+https://git.example.org/claimspan.git@{commit}"
    assert required_by_wheel(build("wheel", clone, tmp_path))["local"] == (
        f"{NAME} @ {repository}#subdirectory=core/local_weights"
    )


@pytest.mark.parametrize("origin", ["https://a:secret@git.example.org/c.git", "file:///srv/c.git"])
def test_no_password_and_no_address_that_pip_refuses_gets_into_a_wheel(
    tmp_path: Path, origin: str
) -> None:
    clone, _ = cloned_by_pip(tmp_path, origin)

    named = required_by_wheel(build("wheel", clone, tmp_path))["local"]
    assert named == f"{NAME} @ {(clone / 'core' / 'local_weights').as_uri()}"


# --- pip ---


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment without claimspan, which sees the other packages of this one."""
    folder = tmp_path_factory.mktemp("other")
    # A pip of its own takes seconds; that of this environment does as well, where it has one.
    without = ["--without-pip"] if find_spec("pip") else []
    ran(sys.executable, "-m", "venv", *without, str(folder), cwd=folder)
    return folder


def in_other(folder: Path, *arguments: str) -> str:
    # Packages, and none of the .pth files, by which this checkout is found here.
    packages = os.pathsep.join({path for path in sys.path if path.endswith("site-packages")})
    python = str(folder / "bin" / "python")
    return ran(python, *arguments, cwd=folder, variables={"PYTHONPATH": packages})


def install(folder: Path, requirement: str) -> None:
    offline = ("--isolated", "--no-index", "--no-build-isolation", "--no-cache-dir")
    in_other(folder, "-m", "pip", "install", "--quiet", *offline, requirement)


def test_pip_brings_the_weights_with_the_extra_alone_and_without_an_index(other: Path) -> None:
    install(other, str(ROOT))

    assert list(other.rglob("local.onnx")) == []
    assert in_other(other, "-c", JUDGED) == (
        "judge 'local' failed: 'claimspan_local_weights' is not installed: "
        "pip install 'claimspan[local]'"
    )

    install(other, f"{ROOT}[local]")

    assert len(list(other.rglob("local.onnx"))) == 1
    assert in_other(other, "-c", JUDGED) == "1.0"
