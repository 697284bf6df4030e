"""Measures the subjects of ``overhead.py`` turn by turn, each in a warm process of its own.

In each turn, every subject has one short round, in a shuffled order, so that what else the machine
does hits all of them alike. A round is compared with the bare pipeline's round of the same turn.
"""

from __future__ import annotations

import json
import os
import random
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from overhead_host import BARE, JUDGED
from overhead_worker import Growth, Order, Round

__all__ = [
    "Choose",
    "Costs",
    "Interpreter",
    "UnmeasurableError",
    "measure_costs",
    "measure_growth",
]

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
PATHS: Final = (
    *(ROOT / "core", ROOT / "core" / "local_weights", ROOT / "tracing", ROOT / "integrations"),
    HERE,
)

ANSWER_SECONDS: Final = 900.0
"""For a round, or for the memory over all queries, on a busy machine."""

END_SECONDS: Final = 20.0

JUDGED_EVERY: Final = 3
"""Turns from one round to the next of a subject that judges every record."""

Interpreter = Path
Costs = dict[str, dict[int, Round]]
"""The rounds of each subject, by their turn."""

Choose = Callable[[list[str]], Iterable[str]]
"""Chooses among the names of all subjects."""

_FOREIGN: Final = ("OTEL_", "CLAIMSPAN_", "LANGFUSE_", "LANGSMITH_", "LANGCHAIN_", "TRACELOOP_")
_QUIET: Final = {
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGSMITH_TRACING": "false",
    "TRACELOOP_TELEMETRY": "false",
    "TRACELOOP_METRICS_ENABLED": "false",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""No peer and no framework calls home while it is measured."""


class UnmeasurableError(Exception):
    """A subject cannot be measured; the message says why."""


class Process:
    """A warm process with one subject."""

    def __init__(self, python: Interpreter, *arguments: str) -> None:
        command = [str(python), str(HERE / "overhead_worker.py"), *arguments]
        self._printed = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - see close
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            env=_variables(),
        )

    def answer(self) -> dict[str, Any]:
        """The next line that it answers.

        Raises:
            UnmeasurableError: It says why it cannot go on, has died, or takes too long.
        """
        out = self._process.stdout
        assert out is not None
        ready, _, _ = select.select([out], [], [], ANSWER_SECONDS)
        line = out.readline() if ready else b""
        if not line:
            raise UnmeasurableError(self._last_words() if ready else "it takes too long")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise UnmeasurableError(str(answer["error"]))
        return answer

    def follow(self, order: Order) -> dict[str, Any]:
        """What an order gave."""
        into = self._process.stdin
        assert into is not None
        with suppress(BrokenPipeError):  # it has died: the answer says so
            into.write(order.model_dump_json().encode() + b"\n")
            into.flush()
        return self.answer()

    def close(self) -> None:
        """Let it end what it has started itself, such as processes of judges."""
        try:
            self._process.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._printed.close()

    def _last_words(self) -> str:
        self._printed.seek(0)
        lines = self._printed.read().strip().splitlines()
        return lines[-1][:300] if lines else "it ended without a word"


class Started(NamedTuple):
    """The processes that are ready, and why others are not."""

    processes: dict[str, Process]
    failed: dict[str, str]

    def fail(self, subject: str, error: UnmeasurableError) -> None:
        if subject == BARE:  # nothing can be compared
            raise error
        self.failed[subject] = str(error)
        del self.processes[subject]


def measure_costs(
    python: Interpreter,
    framework: str,
    choose: Choose,
    modes: Iterable[str],
    rounds: int,
    queries: int,
) -> tuple[dict[str, Costs], Mapping[str, str]]:
    """The costs by mode, and of each subject that could not be measured, why."""
    chance = random.Random(14)
    with ExitStack() as stack:
        started = _started(python, framework, choose, stack)
        costs = {mode: _turns(started, mode, rounds, queries, chance) for mode in modes}
    return costs, started.failed


def _turns(started: Started, mode: str, rounds: int, queries: int, chance: random.Random) -> Costs:
    costs: Costs = {name: {} for name in started.processes}
    for turn in range(-1, rounds):  # the first one warms up
        names = list(started.processes)
        for name in chance.sample(names, len(names)):
            if name in JUDGED and turn % JUDGED_EVERY and turn >= 0:
                continue
            order = Order(mode=mode, queries=max(1, queries // JUDGED.get(name, 1)))
            try:
                answer = started.processes[name].follow(order)
            except UnmeasurableError as error:
                started.fail(name, error)
                costs.pop(name)
                continue
            if turn >= 0:
                costs[name][turn] = Round.model_validate(answer)
    return costs


def measure_growth(
    python: Interpreter, framework: str, choose: Choose, queries: int
) -> tuple[dict[str, Growth], Mapping[str, str]]:
    """How memory grows over many queries with one caller, and why some were not measured.

    All subjects run at once, since memory does not depend on the time it takes.
    """
    order = Order(mode="sync", queries=queries, memory=True)
    growths: dict[str, Growth] = {}
    with ExitStack() as stack:
        started = _started(python, framework, choose, stack)
        names = list(started.processes)
        threads = stack.enter_context(ThreadPoolExecutor(len(names)))
        futures = {name: threads.submit(started.processes[name].follow, order) for name in names}
        for name, future in futures.items():
            try:
                growths[name] = Growth.model_validate(future.result())
            except UnmeasurableError as error:
                started.fail(name, error)
    return growths, started.failed


def _started(python: Interpreter, framework: str, choose: Choose, stack: ExitStack) -> Started:
    """The bare pipeline, which knows who there is, and those who are chosen."""
    started = Started({}, {})

    def start(name: str) -> Process:
        process = started.processes[name] = Process(python, framework, name)
        stack.callback(process.close)
        return process

    for name in choose(start(BARE).answer()["subjects"]):
        start(name)
    for name, process in list(started.processes.items())[1:]:
        try:
            process.answer()
        except UnmeasurableError as error:
            started.fail(name, error)
    return started


def _variables() -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    return own | _QUIET | {"PYTHONPATH": os.pathsep.join(map(str, PATHS))}


def this_python() -> Interpreter:
    """The interpreter that runs this, with what is installed beside it."""
    return Path(sys.executable)
