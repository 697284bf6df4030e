"""The command line as a whole: what it loads, what it lists, and how it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points, version
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from claimspan.cli.main import COMMANDS, SUMMARIES, build_app, main
from claimspan.errors import ConfigError

RUN: Final = """
import atexit, sys
from claimspan.cli.main import main
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
sys.argv = ["claimspan", *sys.argv[1:]]
main()
"""
"""Runs the command line, and prints last, on standard error, the names of all loaded modules."""


def claimspan(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, with a folder that goes first on its path."""
    environment = os.environ | ({"PYTHONPATH": _path_with(path)} if path else {})
    command = [sys.executable, "-c", RUN, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def _path_with(folder: Path) -> str:
    return os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))


def loaded(done: subprocess.CompletedProcess[str]) -> set[str]:
    return set(done.stderr.splitlines()[-1].split())


def errors(done: subprocess.CompletedProcess[str]) -> list[str]:
    return done.stderr.splitlines()[:-1]


def command_modules() -> set[str]:
    return {entry.module for entry in entry_points(group=COMMANDS)}


def install_plug_in(folder: Path, source: str) -> None:
    """Install a package with one command, ``extra``, into a folder."""
    (folder / "plugged.py").write_text(source, encoding="utf-8")
    info = folder / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{COMMANDS}]\nextra = plugged:extra\n")


# --- what is loaded ---


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_an_option_alone_loads_no_command_and_no_typer(option: str) -> None:
    done = claimspan(option)

    assert done.returncode == 0
    assert loaded(done) & (command_modules() | {"typer", "rich", "pydantic", "openai"}) == set()
    assert {name for name in loaded(done) if name.startswith("claimspan.")} == {
        "claimspan.cli",
        "claimspan.cli.main",
        "claimspan.errors",
    }


def test_a_command_loads_no_other_command() -> None:
    done = claimspan("report", "--help")

    assert done.returncode == 0
    assert loaded(done) & command_modules() == {"claimspan_tracing.commands.report"}


# --- what is listed ---


def test_every_command_is_listed_with_its_summary() -> None:
    listed = claimspan("--help").stdout.splitlines()

    for name, summary in SUMMARIES.items():
        called = name.replace(".", " ")
        rows = [line.strip().removeprefix(called).strip() for line in listed if called in line]
        assert rows.count(summary) == 1


def test_a_summary_is_the_first_line_of_the_commands_own_help() -> None:
    own = {
        entry.name: (entry.load().__doc__ or "").partition("\n")[0]
        for entry in entry_points(group=COMMANDS)
    }

    assert own == SUMMARIES


def test_no_argument_shows_the_same_list_and_fails() -> None:
    bare = claimspan()

    assert bare.returncode == 2
    assert bare.stdout == claimspan("--help").stdout


def test_the_version_is_that_of_the_package() -> None:
    assert claimspan("--version").stdout == version("claimspan") + "\n"


@pytest.mark.parametrize("name", sorted(SUMMARIES))
def test_the_help_of_a_command_names_it_as_it_is_typed(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = name.split(".")
    monkeypatch.setattr(sys, "argv", ["claimspan", *words, "--help"])

    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert f"Usage: claimspan {' '.join(words)} " in capsys.readouterr().out


# --- what fails ---


def test_an_unknown_command_is_one_line_and_exit_code_2() -> None:
    done = claimspan("reprot")

    assert done.returncode == 2
    assert errors(done) == [
        "claimspan: there is no command 'reprot': did you mean `claimspan report`? "
        "`claimspan --help` lists all commands"
    ]


def test_a_mistyped_command_names_the_one_that_was_meant() -> None:
    done = claimspan("evaluat", "records.jsonl")

    assert done.returncode == 2
    assert "did you mean `claimspan evaluate`?" in errors(done)[0]


@pytest.mark.parametrize(("arguments", "code"), [(["bench"], 2), (["bench", "--help"], 0)])
def test_the_first_word_of_several_commands_lists_them(arguments: list[str], code: int) -> None:
    done = claimspan(*arguments)

    assert done.returncode == code
    assert "Usage: claimspan bench COMMAND" in done.stdout
    assert "bench ragchecker" in done.stdout
    assert "judge-agreement" not in done.stdout


@pytest.mark.parametrize("arguments", [[], ["--help"], ["pandachat", "folder"]])
def test_without_their_distribution_the_benchmarks_say_how_they_are_installed(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def others(group: str) -> list[EntryPoint]:
        return [each for each in entry_points(group=group) if "bench" not in each.module]

    monkeypatch.setattr(sys.modules[main.__module__], "entry_points", others)
    monkeypatch.setattr(sys, "argv", ["claimspan", "bench", *arguments])

    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "claimspan: 'claimspan-bench' is not installed: pip install 'claimspan[bench]'\n"
    )


def test_an_unknown_command_is_refused_before_it_is_built() -> None:
    with pytest.raises(ConfigError, match="there is no command '--nonsense'"):
        build_app("--nonsense")


def test_a_plug_in_is_listed_and_runs(tmp_path: Path) -> None:
    install_plug_in(tmp_path, "def extra(word: str) -> None:\n    print(word * 2)\n")

    listed = [line.split() for line in claimspan("--help", path=tmp_path).stdout.splitlines()]
    assert ["extra", "(from", "package", "plugged)"] in listed
    assert claimspan("extra", "ab", path=tmp_path).stdout == "abab\n"


def test_a_plug_in_that_cannot_be_imported_is_listed_and_breaks_no_other_command(
    tmp_path: Path,
) -> None:
    install_plug_in(tmp_path, "import no_such_module\n")

    assert "(from package plugged)" in claimspan("--help", path=tmp_path).stdout
    assert claimspan("--version", path=tmp_path).returncode == 0
    assert claimspan("estimate", "--help", path=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("", "AttributeError: module 'plugged' has no attribute 'extra'"),
    ],
)
def test_a_plug_in_that_cannot_be_imported_is_one_line_and_exit_code_2(
    tmp_path: Path, source: str, cause: str
) -> None:
    install_plug_in(tmp_path, source)

    done = claimspan("extra", path=tmp_path)

    assert done.returncode == 2
    assert errors(done) == [
        f"claimspan: command 'extra' of package 'plugged' cannot be imported ({cause}): "
        "upgrade or uninstall that package"
    ]


def test_a_plug_in_that_misses_an_extra_says_so_itself(tmp_path: Path) -> None:
    source = "from claimspan.errors import MissingExtraError\nraise MissingExtraError('a', 'b')"
    install_plug_in(tmp_path, source)

    done = claimspan("extra", path=tmp_path)

    assert done.returncode == 2
    assert errors(done) == ["claimspan: 'a' is not installed: pip install 'claimspan[b]'"]


def test_where_the_demo_is_not_installed_one_line_says_where_it_is(tmp_path: Path) -> None:
    # What an installed wheel is: the entry point is there, and the package is not.
    hide = "import sys\nsys.meta_path.insert(0, Hidden())\n"
    finder = (
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        import sys\n"
        "        sys.path[:] = [each for each in sys.path if not each.endswith('/examples')]\n"
    )
    (tmp_path / "sitecustomize.py").write_text(finder + hide, encoding="utf-8")

    done = claimspan("demo", path=tmp_path)

    assert done.returncode == 2
    assert errors(done) == [
        "claimspan: the demo is not in the installed package: run `make demo` in the source"
    ]
    assert "  demo " not in claimspan("--help", path=tmp_path).stdout
    assert "  demo " in claimspan("--help").stdout


def test_without_typer_the_options_work_and_a_command_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ImportError('no typer here')", encoding="utf-8")

    for option in ("--version", "--help"):
        assert claimspan(option, path=tmp_path).returncode == 0
    failed = claimspan("estimate", "records.jsonl", path=tmp_path)
    assert failed.returncode == 2
    assert errors(failed) == ["claimspan: 'typer' is not installed: pip install 'claimspan[cli]'"]


def test_an_application_with_all_commands_takes_the_name_of_one_first() -> None:
    result = CliRunner(env={"COLUMNS": "120"}).invoke(build_app(), ["estimate", "--help"])

    assert result.exit_code == 0
    assert "--judge-option" in result.output


def test_a_reader_that_has_read_enough_ends_the_command_without_a_word() -> None:
    command = [sys.executable, "-m", "claimspan", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()

        assert running.stderr.read() == b""
        assert running.wait(60) == 141
