"""Starts the process that judges, hears how far it is, and starts it again when it dies."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from claimspan.errors import ConfigError
from claimspan.text.shapes import is_mapping
from claimspan_serve._judging import Heard, judge_in

FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 30.0
"""Seconds before a process that has died is started again; twice as long after each death in a row,
so that one that dies at once does not occupy the machine by starting."""

SOUND_SECONDS: Final = 60.0
"""After this time a death is the first one in a row."""

JUDGING_SHARE: Final = 0.8
"""Of the time at the end, what the process may judge and export in; at the end of it, it is killed,
as by an exporter that hangs."""

_GAUGES: Final = frozenset({"pending", "queued", "queued_bytes"})
"""Counts of records that end with their process."""

_ENDED_AT_ONCE: Final = "the judging process ended as it began: see what it has written above"

Counts = Mapping[str, object]

_logger: Final = logging.getLogger("claimspan")


class JudgingProcess:
    """The process that judges, on a thread that watches over it.

    What is put down waits while it is away, so that nothing is lost but time.
    """

    def __init__(
        self,
        folder: Path,
        given: Mapping[str, object],
        look: Callable[[], tuple[Mapping[str, int], bool]],
        *,
        is_kept: bool,
    ) -> None:
        """Start nothing yet.

        Args:
            folder: Where requests are put down.
            given: The options of service and monitor, which can be pickled.
            look: Returns the first fields of ``Heard``; called ten times a second.
            is_kept: Whether the folder outlives the service.
        """
        self._folder = folder
        self._given = given
        self._look = look
        self._is_kept = is_kept
        self._state: dict[str, Counts] = {}
        self._before: dict[str, Counts] = {}
        """What processes have counted that have died."""

        self._deaths = 0
        self._is_up = threading.Event()
        self._failure = ""
        self._end_by: float | None = None
        self._ending = threading.Event()
        self._process: BaseProcess | None = None
        self._thread = threading.Thread(target=self._watch, name="claimspan-serve", daemon=True)

    def start(self) -> None:
        """Start the process, and wait until it can judge.

        Raises:
            ConfigError: It says that an option cannot work.
        """
        self._thread.start()
        self._is_up.wait()
        if self._failure:
            raise ConfigError(self._failure)

    def end(self, seconds: float) -> None:
        """Have it judge what is complete, and end within some seconds."""
        self._end_by = time.monotonic() + JUDGING_SHARE * seconds
        self._ending.set()
        if self._thread.is_alive():  # else none was started
            self._thread.join(max(0.0, seconds))
        if self._process is not None and self._process.is_alive():
            self._process.kill()

    @property
    def state(self) -> dict[str, Counts]:
        """What it has counted, with those before it, and how often it has died; also meanwhile."""
        before, now = self._before, self._state
        counted = {name: added(before.get(name, {}), now.get(name, {})) for name in before | now}
        pid = self._process.pid if self._process and self._process.is_alive() else None
        return counted | {"judge": {"pid": pid, "restarts": self._deaths}}

    def _watch(self) -> None:
        pause = FIRST_PAUSE
        while not self._ending.is_set():
            began = time.monotonic()
            with suppress(OSError):  # the system can start none now
                self._run()
            if not self._is_up.is_set():
                self._failure = self._failure or _ENDED_AT_ONCE
                break
            if self._ending.is_set():
                return
            self._deaths += 1
            counted: dict[str, Counts] = {
                name: {k: v for k, v in counts.items() if k not in _GAUGES}
                for name, counts in self.state.items()
                if name not in ("waiting", "judge")
            }
            self._before, self._state = counted, {}
            is_sound = time.monotonic() - began > SOUND_SECONDS
            pause = FIRST_PAUSE if is_sound else min(2 * pause, LONGEST_PAUSE)
            _logger.warning(
                "the judging process of claimspan serve has ended (%s), and is started again in "
                "%.1f s; requests are put down meanwhile",
                self._failure or f"exit code {self._process and self._process.exitcode}",
                pause,
            )
            self._ending.wait(pause)
        self._is_up.set()

    def _run(self) -> None:
        """Run one process to its end."""
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        self._process = context.Process(
            target=judge_in,
            args=(self._folder, self._given, theirs),
            kwargs={"is_kept": self._is_kept},
            name="claimspan-serve-judge",
        )
        self._process.start()
        theirs.close()
        with ours, suppress(EOFError, OSError):
            self._talk(ours)
        self._process.join()

    def _talk(self, link: Connection) -> None:
        """Hear how far the process is until it ends."""
        first = link.recv()
        self._failure = first.get("failed", "")
        if self._failure:
            return
        self._state = first
        self._is_up.set()
        while True:
            self._state = link.recv()
            end_by = self._end_by
            seconds = None if end_by is None else max(0.0, end_by - time.monotonic())
            link.send(Heard(*self._look(), seconds))


def added(before: Counts, now: Counts) -> Counts:
    """Counts of two processes, added name by name."""
    counts: dict[str, object] = {**before, **now}
    for name in before.keys() & now.keys():
        left, right = before[name], now[name]
        if isinstance(left, int) and isinstance(right, int):
            counts[name] = left + right
        elif is_mapping(left) and is_mapping(right):
            parts = [{str(k): v for k, v in each.items()} for each in (left, right)]
            counts[name] = added(*parts)
    return counts
