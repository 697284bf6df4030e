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
from email.message import Message
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest
import yaml

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


def named() -> dict[str, str]:
    """Distribution to the requirement of it, by version only if it does not pin claimspan's."""
    text = (ROOT / FOLDERS[WEIGHTS] / "pyproject.toml").read_text(encoding="utf-8")
    version = tomllib.loads(text)["project"]["version"]
    return {"claimspan-bench": "claimspan-bench", WEIGHTS: f"{WEIGHTS}=={version}"}


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as content:
        (name,) = (each for each in content.namelist() if each.endswith(".dist-info/METADATA"))
        return message_from_bytes(content.read(name))


def by_extra(said: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Distribution to what each extra that brings it says of it, where all say the same."""
    return {name: dict.fromkeys(BRINGING[name], text) for name, text in said.items()}


def required(metadata: Message) -> dict[str, dict[str, str]]:
    """Distribution to what each extra says of it."""
    found: dict[str, dict[str, str]] = {name: {} for name in FOLDERS}
    lines: list[str] = metadata.get_all("Requires-Dist", [])
    for line in lines:
        said, _, marker = line.partition(";")
        for name in FOLDERS:
            if said.startswith(name):
                found[name][marker.split("'")[1]] = said.strip()
    return found


def required_by_wheel(wheel: Path) -> dict[str, dict[str, str]]:
    return required(metadata_of(wheel))


def metadata_of_sdist(sdist: Path) -> Message:
    with tarfile.open(sdist) as content:
        member = content.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert member is not None
        return message_from_bytes(member.read())


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
    (entries,) = (name for name in names if name.endswith("/entry_points.txt"))
    with zipfile.ZipFile(wheel) as content:
        assert b"bench" not in content.read(entries)
    assert required_by_wheel(wheel) == by_extra(named())


def test_the_readme_of_a_wheel_links_into_the_repository(sdist: Path) -> None:
    message = metadata_of_sdist(sdist)

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
        (entries,) = (each for each in content.namelist() if each.endswith("/entry_points.txt"))
        commands = content.read(entries).decode()
    assert packages == {"claimspan_bench", entries.partition("/")[0]}
    assert set(re.findall(r"^(bench\.\S+) = claimspan_bench\.", commands, re.MULTILINE)) == {
        name for name in SUMMARIES if name.startswith("bench.")
    }


def test_an_sdist_holds_no_other_distribution_and_requires_them_by_name(sdist: Path) -> None:
    assert sdist.stat().st_size < LARGEST_SDIST
    with tarfile.open(sdist) as content:
        names = content.getnames()
    assert required(metadata_of_sdist(sdist)) == by_extra(named())
    assert [name for name in names if re.search("/core/(bench|local_weights)", name)] == []


def test_a_wheel_of_an_sdist_requires_them_by_name(sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as content:
        content.extractall(tmp_path, filter="data")

    wheel = build("wheel", tmp_path / sdist.name.removesuffix(".tar.gz"), tmp_path, by_pip=True)

    assert required_by_wheel(wheel) == by_extra(named())
    assert metadata_of(wheel)["Version"] == metadata_of_sdist(sdist)["Version"]


@pytest.mark.parametrize("folder", FOLDERS.values())
def test_a_release_builds_the_wheel_of_each_other_distribution_from_its_sdist(
    folder: str, tmp_path: Path
) -> None:
    build = (sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path), "-t")
    ran(*build, "sdist", cwd=ROOT / folder)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as content:
        content.extractall(tmp_path, filter="data")

    ran(*build, "wheel", cwd=tmp_path / sdist.name.removesuffix(".tar.gz"))

    (wheel,) = tmp_path.glob("*.whl")
    made, source = metadata_of(wheel), metadata_of_sdist(sdist)
    assert made.items() == source.items()


@pytest.mark.parametrize(("extra", "name"), [("bench", "claimspan-bench"), ("local", WEIGHTS)])
def test_what_is_pinned_is_what_the_checkout_has(extra: str, name: str) -> None:
    source: str = PROJECT["tool"]["uv"]["sources"][name]["path"]

    assert named()[name] in PROJECT["project"]["optional-dependencies"][extra]
    assert (ROOT / source).samefile(ROOT / FOLDERS[name])
    for each in ("LICENSE", "NOTICE"):
        assert (ROOT / FOLDERS[name] / each).read_bytes() == (ROOT / each).read_bytes()


def test_the_benchmarks_require_what_they_import() -> None:
    text = (ROOT / FOLDERS["claimspan-bench"] / "pyproject.toml").read_text(encoding="utf-8")
    hook = tomllib.loads(text)["tool"]["hatch"]["metadata"]["hooks"]["custom"]

    required = {re.split("[<>=]", each)[0] for each in hook["others"]}
    # pydantic comes with claimspan, the others with its extras.
    imported = {
        name.split(".")[0]
        for each in sources(BENCH / "claimspan_bench").values()
        for name in imports_of(each)
    }
    others = imported - sys.stdlib_module_names - {"claimspan", "claimspan_bench"}
    assert others - required == {"numpy", "pydantic", "scipy", "typer"}


def test_the_workflows_test_every_python_that_the_metadata_name_on_three_systems() -> None:
    workflow = (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
    prefix = "Programming Language :: Python :: 3."
    named = {each for each in PROJECT["project"]["classifiers"] if each.startswith(prefix)}

    assert {f"3.{each.removeprefix(prefix)}" for each in named} == set(
        re.findall(r'"(3\.\d+)"', workflow)
    )
    assert set(re.findall(r"(\w+)-latest", workflow)) == {"ubuntu", "macos", "windows"}


# --- versions ---


def built_version(folder: Path, target: Path) -> Message:
    """The metadata of the wheel of a folder."""
    ran(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target), cwd=folder)
    (wheel,) = target.glob("*.whl")
    return metadata_of(wheel)


def test_a_tag_is_the_version_of_all_and_the_benchmarks_require_that_claimspan(
    tmp_path: Path,
) -> None:
    clone, _ = cloned_by_pip(tmp_path, "https://git.example.org/claimspan.git")
    ran("git", "tag", "v9.8.7", cwd=clone)

    claimspan = built_version(clone, tmp_path / "claimspan")
    bench = built_version(clone / "core" / "bench", tmp_path / "bench")

    assert claimspan["Version"] == bench["Version"] == "9.8.7"
    assert "claimspan[cli,stats]==9.8.7" in bench.get_all("Requires-Dist", [])


@pytest.mark.parametrize("repository", [True, False])
def test_a_folder_without_a_tag_builds_a_version_below_all_releases(
    tmp_path: Path, repository: bool
) -> None:
    clone, _ = cloned_by_pip(tmp_path, "https://git.example.org/claimspan.git")
    if not repository:
        shutil.rmtree(clone / ".git")

    claimspan = built_version(clone, tmp_path / "claimspan")
    bench = built_version(clone / "core" / "bench", tmp_path / "bench")

    assert claimspan["Version"] == bench["Version"]
    assert claimspan["Version"].startswith("0.0.")


@pytest.mark.parametrize(
    ("tag", "is_released"),
    [("v0.1.0", True), ("v0.1", False), ("v0x1.0", False), ("v9.9.9", False)],
)
def test_a_release_needs_a_dated_section_of_the_changelog(tag: str, is_released: bool) -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    (step,) = (each for each in workflow["jobs"]["build"]["steps"] if "TAG" in each.get("env", {}))

    done = subprocess.run(
        ("bash", "-e", "-c", step["run"]), cwd=ROOT, env=os.environ | {"TAG": tag}, check=False
    )
    assert (done.returncode == 0) is is_released


# --- names by which communities find it ---


@pytest.fixture(scope="module")
def thin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of all of them."""
    folder = tmp_path_factory.mktemp("thin")
    ran(sys.executable, "integrations/thin/build_thin.py", str(folder), cwd=ROOT)
    return folder


@pytest.mark.parametrize(
    ("name", "extra", "modules"),
    [
        ("claimspan-haystack", "haystack", []),
        ("claimspan-langchain", "langchain", []),
        ("claimspan-openinference", "openinference", []),
        (
            "llama-index-observability-claimspan",
            "llama-index",
            ["llama_index/observability/claimspan/__init__.py"],
        ),
    ],
)
def test_the_name_of_a_community_brings_claimspan_of_its_version_and_nothing_else(
    thin: Path, name: str, extra: str, modules: list[str]
) -> None:
    (wheel,) = thin.glob(f"{name.replace('-', '_')}-*.whl")

    metadata = metadata_of(wheel)
    assert metadata["Name"] == name
    assert metadata.get_all("Requires-Dist", []) == [f"claimspan[{extra}]=={metadata['Version']}"]
    assert extra in PROJECT["project"]["optional-dependencies"]
    with zipfile.ZipFile(wheel) as content:
        assert [each for each in content.namelist() if each.endswith(".py")] == modules


def test_the_pages_of_these_names_show_lines_that_run(thin: Path, tmp_path: Path) -> None:
    for wheel in thin.glob("*.whl"):
        with zipfile.ZipFile(wheel) as content:
            content.extractall(tmp_path)  # noqa: S202 - made here
        (lines,) = re.findall(
            r"```python\n(.*?)```", str(metadata_of(wheel).get_payload()), re.DOTALL
        )
        ran(sys.executable, "-c", lines, cwd=tmp_path, variables={"PYTHONPATH": str(tmp_path)})


# --- a clone that pip deletes ---


def cloned_by_pip(folder: Path, origin: str) -> tuple[Path, str]:
    """As much of a clone of pip's as a build reads, and its commit."""
    clone = folder / "pip-install-0a1b2c" / "claimspan_0a1b2c"
    for each in (*FOLDERS.values(), "core/claimspan"):
        (clone / each).mkdir(parents=True)
    (clone / "core" / "claimspan" / "__init__.py").touch()
    bench = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "same_version.py")
    for name in (
        *("pyproject.toml", "README.md", "LICENSE", "NOTICE", "core/hatch_build.py"),
        *(f"core/bench/{each}" for each in bench),
    ):
        shutil.copy(ROOT / name, clone / name)
    (clone / "core" / "bench" / "claimspan_bench").mkdir()
    (clone / "core" / "bench" / "claimspan_bench" / "__init__.py").touch()
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
    """An environment with claimspan without extras, which sees the other packages of this one."""
    folder = tmp_path_factory.mktemp("other")
    # A pip of its own takes seconds; that of this environment does as well, where it has one.
    without = ["--without-pip"] if find_spec("pip") else []
    ran(sys.executable, "-m", "venv", *without, str(folder), cwd=folder)
    install(folder, str(ROOT))
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
