"""The object that `path.py:name` or `package.module:name` stands for on a command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from claimspan.errors import ConfigError
from claimspan.loading import load_object


def test_a_file_is_imported_by_its_path_even_under_a_name_of_pythons(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("name = 'mine'\n")

    assert load_object(f"{tmp_path / 'json.py'}:name") == "mine"


def test_a_module_is_imported_by_its_name() -> None:
    assert load_object("claimspan.loading:load_object") is load_object


def test_dataclasses_of_a_users_file_find_their_module(tmp_path: Path) -> None:
    lines = (
        *("from __future__ import annotations", "from dataclasses import dataclass"),
        *("@dataclass", "class R:", "    n: int = 1", "r = R()"),
    )
    (tmp_path / "my_records.py").write_text("\n".join(lines))

    assert getattr(load_object(f"{tmp_path / 'my_records.py'}:r"), "n", None) == 1
    assert "my_records" in sys.modules


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError"),
        ("def (", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_file_that_cannot_be_imported_says_why(tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "faulty.py").write_text(source)

    with pytest.raises(ConfigError, match=message):
        load_object(f"{tmp_path / 'faulty.py'}:x")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no file '.*absent\.py'"):
        load_object(f"{tmp_path / 'absent.py'}:x")


def test_a_name_may_have_dots(tmp_path: Path) -> None:
    (tmp_path / "shelf.py").write_text("class Shelf:\n    class Best:\n        size = 7\n")

    assert load_object(f"{tmp_path / 'shelf.py'}:Shelf.Best.size") == 7
    with pytest.raises(ConfigError, match=r"has no 'Shelf\.Worst'"):
        load_object(f"{tmp_path / 'shelf.py'}:Shelf.Worst")


def test_a_module_of_the_working_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_beside_the_user.py").write_text("answer = 42\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each not in ("", ".")])

    assert load_object("module_beside_the_user:answer") == 42


def test_a_script_that_ends_itself_is_an_error_and_no_end(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys\nsys.exit(3)\n")

    with pytest.raises(ConfigError, match=r"cannot be imported \(SystemExit: 3\)"):
        load_object(f"{tmp_path / 'script.py'}:main")


@pytest.mark.parametrize("spec", ["", "name", ":name", "module.py:", "module.py:no name", "m:a..b"])
def test_what_names_no_object_is_told_how_to_write_one(spec: str) -> None:
    with pytest.raises(ConfigError, match=r"write path\.py:name"):
        load_object(spec)
