"""Reads the systems of a report, each from a trace file or from a file of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from claimspan.errors import ConfigError
from claimspan.report import ReportSystem
from claimspan.report.evaluated import holds_results, read_results
from claimspan_tracing.export.skipped import Skipped
from claimspan_tracing.export.trace_file import read_trace_file

__all__ = ["SystemFile", "system_files"]


@dataclass(frozen=True, slots=True)
class SystemFile:
    """One file, which holds the records of one system."""

    path: Path
    """The file."""

    name: str
    """Name of the system: the file's without its ending, or its path where two are alike."""

    skipped: Skipped
    """Counts what could not be read."""

    @classmethod
    def of(cls, path: Path, name: str, *, strict: bool) -> SystemFile:
        """Return a file that has not been read yet."""
        return cls(path, name, Skipped(path, strict=strict))

    def read(self) -> ReportSystem:
        """Read all records.

        Raises:
            ConfigError: The file cannot be read; or a part of it where reading is strict.
            NoRecordsError: The file has no record.
        """
        # By what the file holds and not by its name: all three kinds are called .json or .jsonl.
        if holds_results(self.path):
            entries = read_results(self.path, skip=self.skipped.add_line)
        else:
            entries = read_trace_file(self.path, skipped=self.skipped)
        return ReportSystem(self.name, tuple(entries))


def system_files(paths: Sequence[Path], *, strict: bool) -> list[SystemFile]:
    """Name the systems of some files.

    Args:
        paths: The files.
        strict: Reading is to stop at the first part that is broken.

    Raises:
        ConfigError: A file is given twice, or is a pipe.
    """
    for path in paths:
        # What tells the kind of a file is read before its records: a pipe would lose that part.
        if path.is_fifo():
            raise ConfigError(f"{path} is a pipe, which can be read once only: give a file")
    # By the file that a path leads to: a system beside itself would differ in nothing.
    if len({path.resolve() for path in paths}) < len(paths):
        raise ConfigError("a file is given twice: give each system once")
    # Runs often lie in a folder each, with files of one name: then the path tells them apart.
    stems = [path.stem for path in paths]
    return [
        SystemFile.of(p, p.stem if stems.count(p.stem) == 1 else str(p), strict=strict)
        for p in paths
    ]
