"""What a run has done so far: a file that grows by one line with every question."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from claimspan.errors import ConfigError, FileError
from claimspan.files.private import cannot_write, open_private
from claimspan_bench.pandachat.dataset import Dataset
from claimspan_bench.pandachat.matching import MatchedBy

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
        self._head = json.dumps({"run": _digest(system, dataset)})
        complete = self._complete_lines()
        self.answered = {each.query: each for each in map(self._parsed, complete[1:])}
        self._file = self._opened("".join(f"{line}\n" for line in complete))

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
        # It would write the torn line once more; ``add`` has said what is wrong.
        with suppress(OSError):
            self._file.close()

    def remove(self) -> None:
        """Close the file and remove it: the submission is complete."""
        self.close()
        self.path.unlink(missing_ok=True)

    def _complete_lines(self) -> list[str]:
        """All lines but one that was torn by the end of the process; none in a new file."""
        try:
            *complete, torn = self.path.read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError):
            raise self._foreign() from None
        # A file that ends within its first line was torn as well, and belongs to this run if it
        # begins so.
        if complete[:1] != [self._head] and (complete or not self._head.startswith(torn)):
            raise self._foreign()
        return complete

    def _parsed(self, line: str) -> Answered:
        try:
            return Answered.model_validate_json(line)
        except ValidationError:
            raise self._foreign() from None

    def _foreign(self) -> ConfigError:
        return ConfigError(
            f"{str(self.path)!r} is not of this run: remove it to begin anew, or give another path "
            "with -o"
        )

    def _opened(self, complete: str) -> TextIO:
        """The file, cut behind its complete lines and opened for more."""
        try:
            handle = open_private(self.path, os.O_WRONLY | os.O_CREAT)
            file = open(handle, "w", encoding="utf-8")  # noqa: SIM115 - closed by close()
            # Not written anew: what is done would be lost if the process ended right now.
            os.ftruncate(handle, file.seek(len(complete.encode())))
            if not complete:
                file.write(f"{self._head}\n")
                file.flush()
        except OSError as error:
            raise cannot_write(self.path, error, what="what is done so far") from None
        return file


def _digest(system: str, dataset: Dataset) -> str:
    """Tells one run from another: the same system over the same questions."""
    # Not the texts: who mends a typing error in a document does not ask all questions again.
    asked = [(question.query, question.document) for question in dataset.questions]
    return hashlib.sha256(json.dumps([system, asked]).encode()).hexdigest()[:16]
