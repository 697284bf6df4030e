"""What is in a wheel and in an sdist, and how local judge and benchmarks come beside them."""

from __future__ import annotations

import os
import re
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

from claimspan.cli.main import SUMMARIES

from source_imports import BENCH, imports_of, sources

ROOT: Final = Path(__file__).parents[1]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS: Final = {
    "claimspan-bench": "core/bench",
    "claimspan-local-weights": "core/local_weights",
}
"""Distribution to its folder."""

WEIGHTS: Final = "claimspan-local-weights"
BRINGING: Final = {
    "claimspan-bench": frozenset({"bench", "all"}),
    WEIGHTS: frozenset({"local", "all"}),
}
"""Distribution to the extras that bring it."""

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


def build(kind: str, source: Path, target: Path, *, by_pip: bool = False) -> Path:
    """Build a wheel or an sdist of claimspan from a folder, as pip or any other front end."""
    command = (sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target))
    ran(*command, cwd=source, variables={"PIP_BUILD_TRACKER": str(target)} if by_pip else None)
    (built,) = target.glob("claimspan-*.whl" if kind == "wheel" else "claimspan-*.tar.gz")
    return built


def pinned() -> dict[str, str]:
    """Distribution to the requirement of its version."""
    found: dict[str, str] = {}
    for name, folder in FOLDERS.items():
        text = (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
        found[name] = f"{name}=={tomllib.loads(text)['project']['version']}"
    return found


def by_extra(said: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Distribution to what each extra that brings it says of it, where all say the same."""
    return {name: dict.fromkeys(BRINGING[name], text) for name, text in said.items()}


def required(metadata: bytes) -> dict[str, dict[str, str]]:
    """Distribution to what each extra says of it."""
    found: dict[str, dict[str, str]] = {name: {} for name in FOLDERS}
    lines: list[str] = message_from_bytes(metadata).get_all("Requires-Dist", [])
    for line in lines:
        said, _, marker = line.partition(";")
        for name in FOLDERS:
            if said.startswith(name):
                found[name][marker.split("'")[1]] = said.strip()
    return found


def required_by_wheel(wheel: Path) -> dict[str, dict[str, str]]:
    with zipfile.ZipFile(wheel) as content:
        return required(content.read("claimspan-0.1.0.dist-info/METADATA"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


# --- what a build holds ---


def test_a_wheel_that_pip_builds_says_where_this_checkout_has_the_other_distributions(
    tmp_path: Path,
) -> None:
    wheel = build("wheel", ROOT, tmp_path, by_pip=True)

    assert required_by_wheel(wheel) == by_extra(
        {name: f"{name} @ {(ROOT / folder).as_uri()}" for name, folder in FOLDERS.items()}
    )


def test_a_wheel_holds_no_other_distribution_and_requires_them_by_name(tmp_path: Path) -> None:
    wheel = build("wheel", ROOT, tmp_path)

    assert wheel.stat().st_size < LARGEST_WHEEL
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    assert "claimspan/judges/local/combination.json" in names
    assert [name for name in names if re.search(r"\.onnx$|weights|bench", name)] == []
    with zipfile.ZipFile(wheel) as content:
        assert b"bench" not in content.read("claimspan-0.1.0.dist-info/entry_points.txt")
    assert required_by_wheel(wheel) == by_extra(pinned())


def test_the_readme_of_a_wheel_links_into_the_repository(sdist: Path) -> None:
    with tarfile.open(sdist) as content:
        metadata = content.extractfile("claimspan-0.1.0/PKG-INFO")
        assert metadata is not None
        message = message_from_bytes(metadata.read())

    page = str(message.get_payload())
    links = re.findall(r"\]\(([^)#]+)", page)
    repository = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
    assert f"]({repository}/raw/HEAD/examples/report.png)" in page
    assert [link for link in links if not link.startswith("https://")] == []
    assert f"Homepage, {repository}" in message.get_all("Project-URL", [])
    assert set(message.get_all("License-File", [])) == {"LICENSE", "NOTICE"}


def test_a_wheel_of_the_benchmarks_holds_their_commands(tmp_path: Path) -> None:
    folder = ROOT / FOLDERS["claimspan-bench"]
    ran(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path), cwd=folder)

    (wheel,) = tmp_path.glob("claimspan_bench-*.whl")
    with zipfile.ZipFile(wheel) as content:
        packages = {name.partition("/")[0] for name in content.namelist()}
        commands = content.read("claimspan_bench-0.1.0.dist-info/entry_points.txt").decode()
    assert packages == {"claimspan_bench", "claimspan_bench-0.1.0.dist-info"}
    assert set(re.findall(r"^(bench\.\S+) = claimspan_bench\.", commands, re.MULTILINE)) == {
        name for name in SUMMARIES if name.startswith("bench.")
    }


def test_an_sdist_holds_no_other_distribution_and_requires_them_by_name(sdist: Path) -> None:
    assert sdist.stat().st_size < LARGEST_SDIST
    with tarfile.open(sdist) as content:
        names = content.getnames()
        metadata = content.extractfile("claimspan-0.1.0/PKG-INFO")
        assert metadata is not None
        assert required(metadata.read()) == by_extra(pinned())
    assert [name for name in names if re.search("/core/(bench|local_weights)", name)] == []


def test_a_wheel_of_an_sdist_requires_them_by_name(sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as content:
        content.extractall(tmp_path, filter="data")

    wheel = build("wheel", tmp_path / "claimspan-0.1.0", tmp_path, by_pip=True)

    assert required_by_wheel(wheel) == by_extra(pinned())


@pytest.mark.parametrize(("extra", "name"), [("bench", "claimspan-bench"), ("local", WEIGHTS)])
def test_what_is_pinned_is_what_the_checkout_has(extra: str, name: str) -> None:
    source: str = PROJECT["tool"]["uv"]["sources"][name]["path"]

    assert pinned()[name] in PROJECT["project"]["optional-dependencies"][extra]
    assert (ROOT / source).samefile(ROOT / FOLDERS[name])
    assert (ROOT / FOLDERS[name] / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_benchmarks_are_of_the_same_release_and_require_what_they_import() -> None:
    text = (ROOT / FOLDERS["claimspan-bench"] / "pyproject.toml").read_text(encoding="utf-8")
    benchmarks, version = tomllib.loads(text)["project"], PROJECT["project"]["version"]

    assert benchmarks["version"] == version
    required = {re.split("[<>=]", each)[0] for each in benchmarks["dependencies"]}
    assert f"claimspan[cli,stats]=={version}" in benchmarks["dependencies"]
    # pydantic comes with claimspan, typer and numpy with its extras.
    imported = {name.split(".")[0] for each in sources(BENCH).values() for name in imports_of(each)}
    others = imported - sys.stdlib_module_names - {"claimspan", "claimspan_bench"}
    assert others - required == {"numpy", "pydantic", "typer"}


def test_the_workflows_test_every_python_that_the_metadata_name_on_three_systems() -> None:
    workflow = (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
    prefix = "Programming Language :: Python :: 3."
    named = {each for each in PROJECT["project"]["classifiers"] if each.startswith(prefix)}

    assert {f"3.{each.removeprefix(prefix)}" for each in named} == set(
        re.findall(r'"(3\.\d+)"', workflow)
    )
    assert set(re.findall(r"(\w+)-latest", workflow)) == {"ubuntu", "macos", "windows"}


def test_the_changelog_has_a_date_for_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version = re.escape(PROJECT["project"]["version"])

    assert re.search(rf"^## \[{version}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE)


# --- a clone that pip deletes ---


def cloned_by_pip(folder: Path, origin: str) -> tuple[Path, str]:
    """As much of a clone of pip's as a build reads, and its commit."""
    clone = folder / "pip-install-0a1b2c" / "claimspan_0a1b2c"
    for each in (*FOLDERS.values(), "core/claimspan"):
        (clone / each).mkdir(parents=True)
    (clone / "core" / "claimspan" / "__init__.py").touch()
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "core/hatch_build.py"):
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
    assert required_by_wheel(build("wheel", clone, tmp_path, by_pip=True)) == by_extra(
        {name: f"{name} @ {repository}#subdirectory={each}" for name, each in FOLDERS.items()}
    )


@pytest.mark.parametrize("origin", ["https://a:secret@git.example.org/c.git", "file:///srv/c.git"])
def test_no_password_and_no_address_that_pip_refuses_gets_into_a_wheel(
    tmp_path: Path, origin: str
) -> None:
    clone, _ = cloned_by_pip(tmp_path, origin)

    assert required_by_wheel(build("wheel", clone, tmp_path, by_pip=True)) == by_extra(
        {name: f"{name} @ {(clone / each).as_uri()}" for name, each in FOLDERS.items()}
    )


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


def test_pip_brings_the_benchmarks_with_their_extra_alone_and_without_an_index(
    other: Path,
) -> None:
    install(other, str(ROOT))

    assert list(other.rglob("claimspan_bench")) == []

    install(other, f"{ROOT}[bench]")

    assert len(list(other.rglob("claimspan_bench/pandachat"))) == 1
    # The folder of the environment goes first, so that nothing of this checkout is imported.
    (packages,) = (path.parent for path in other.rglob("claimspan_bench/__init__.py"))
    listed = ran(
        str(other / "bin" / "python"),
        *("-m", "claimspan", "bench", "--help"),
        cwd=other,
        variables={"PYTHONPATH": str(packages)},
    )
    assert "bench pandachat-run" in listed
