"""What a run has done so far: a file that grows by one line with every question."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from claimspan.benchmarks.pandachat.dataset import Dataset
from claimspan.benchmarks.pandachat.matching import MatchedBy
from claimspan.errors import ConfigError, FileError
from claimspan.files.private import cannot_write, open_private

__all__ = ["Answered", "PartialRun"]


class Answered(BaseModel):
    """One line: what a retriever returned for one question."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str
    """The question."""

    sources: tuple[str, ...]
    """The documents of the chunks, in the retriever's order."""

    matched_by: tuple[MatchedBy, ...]
    """How each document was found."""

    seconds: float = Field(ge=0)
    """How long the retriever took."""


class PartialRun:
    """The file beside a submission that is being made."""

    def __init__(self, submission: Path, system: str, dataset: Dataset) -> None:
        """Open the file, and read what is done.

        Args:
            submission: Where the submission will stand.
            system: Name of the system.
            dataset: The questions.

        Raises:
            ConfigError: The file cannot be written, or belongs to another run.
        """
        # Not `.json.part`, which the authors' script would take for a submission.
        self.path = submission.with_suffix(".part")
        self._run = _digest(system, dataset)
        self.answered = {each.query: each for each in self._read()}
        self._file = self._rewritten()

    def add(self, answered: Answered) -> None:
        """Append a line, and hand it to the operating system at once.

        Raises:
            FileError: The line cannot be written.
        """
        self.answered[answered.query] = answered
        try:
            self._file.write(f"{answered.model_dump_json()}\n")
            self._file.flush()
        except OSError as error:
            raise FileError(
                f"cannot write to {str(self.path)!r} ({error.strerror}): make room and run the "
                "same command again; it goes on where it was"
            ) from None

    def close(self) -> None:
        """Close the file, which stays for the next run."""
        self._file.close()

    def remove(self) -> None:
        """Close the file and remove it: the submission is complete."""
        self.close()
        self.path.unlink(missing_ok=True)

    def _read(self) -> Iterator[Answered]:
        try:
            lines = self.path.read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError):
            raise self._foreign() from None
        if lines[0] != json.dumps({"run": self._run}):
            raise self._foreign()
        for number, line in enumerate(lines[1:], start=2):
            if not line:
                continue
            try:
                yield Answered.model_validate_json(line)
            except ValidationError:
                if number < len(lines):  # the last one was torn by the end of the process
                    raise self._foreign() from None

    def _foreign(self) -> ConfigError:
        return ConfigError(
            f"{str(self.path)!r} is not of this run: remove it to begin anew, or give another path "
            "with -o"
        )

    def _rewritten(self) -> TextIO:
        """The file without a torn line, opened for more."""
        try:
            handle = open_private(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            file = open(handle, "w", encoding="utf-8")  # noqa: SIM115 - closed by close()
            head = json.dumps({"run": self._run})
            done = (each.model_dump_json() for each in self.answered.values())
            file.write("".join(f"{line}\n" for line in (head, *done)))
            file.flush()
        except OSError as error:
            raise cannot_write(self.path, error, what="what is done so far") from None
        return file


def _digest(system: str, dataset: Dataset) -> str:
    """Tells one run from another: the same system over the same questions."""
    asked = [(question.query, question.document) for question in dataset.questions]
    return hashlib.sha256(json.dumps([system, asked]).encode()).hexdigest()[:16]
