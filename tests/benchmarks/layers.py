"""Counts what a query runs through that is not judged: our calls, functions, modules and threads.

    python tests/benchmarks/layers.py [--frameworks langchain,llama-index,haystack] [--where]
        [--json]

``--where`` adds the calls in each room, and the walk. Nothing here is a time. A count differs by a
few hundredths between runs, by what was met before and by how threads meet.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from overhead_host import OFF, Host
from overhead_tables import TITLES
from overhead_texts import question
from overhead_worker import FRAMEWORKS
from results import Bar, Results, Table, show

OURS: Final = "claimspan"
"""Beginning of the names of our packages."""

WARM_UP: Final = 5
"""Queries before the one that is counted: they start our threads and fill the caches."""

MAX_MODULES: Final = 60
MAX_CALLS: Final = 1_200
MAX_STOPS: Final = 12

SECONDS: Final = 30.0

Stop = tuple[str, str]
"""A module and the name of a function in it."""

HOW: Final = (
    "One warm query of the pipelines of overhead.py, with a monitor that samples nothing, from the "
    "first callback to the end of the root span. A call is one of a function in our packages, on "
    "any thread; each time that a generator goes on is one, too. A room is a folder of a package, "
    "or a module beside the folders. The walk is the longest chain of our calls below the hook "
    "that ends the root, and the chain on the worker's thread that sets the state on the root "
    "span; a stop is a stay in one module."
)


class Walk(SpanProcessor):
    """Counts our calls while it is on, until a root span has ended."""

    def __init__(self) -> None:
        self.is_on = False
        self.has_ended = threading.Event()
        self.calls: Counter[Stop] = Counter()
        self.threads: set[int] = set()
        self.caller: tuple[Stop, ...] = ()
        """The longest chain on the application's thread below the hook that began last."""
        self.writer: tuple[Stop, ...] = ()
        """The chain that set an attribute on the root span last."""
        self._application: Final = threading.get_ident()

    def on_end(self, span: ReadableSpan) -> None:
        """Stop with a root span."""
        if self.is_on and span.parent is None:
            self.is_on = False
            self.has_ended.set()

    def look(self, frame: FrameType, event: str, argument: object) -> None:
        """Note a call, as a profile function of Python's."""
        if not self.is_on or event != "call":
            return
        if frame.f_code.co_name == "set_attributes" and not _is_ours(frame):
            span = frame.f_locals.get("self")
            if isinstance(span, ReadableSpan) and span.parent is None:
                self.writer = _chain(frame)
        if not _is_ours(frame):
            return
        self.calls[_stop(frame)] += 1
        self.threads.add(threading.get_ident())
        if threading.get_ident() == self._application:
            chain = _chain(frame)
            # The hook that ends the root is the last one of a query.
            is_same = chain[:1] == self.caller[:1] and len(chain) > 1
            self.caller = max(chain, self.caller, key=len) if is_same else chain


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith(OURS)


def _stop(frame: FrameType) -> Stop:
    return str(frame.f_globals["__name__"]), frame.f_code.co_qualname


def _chain(frame: FrameType | None) -> tuple[Stop, ...]:
    """Our functions on the stack, the outermost first."""
    found: list[Stop] = []
    while frame is not None:
        if _is_ours(frame):
            found.append(_stop(frame))
        frame = frame.f_back
    return tuple(found[::-1])


def room_of(module: str) -> str:
    """The package and folder of a module, or the module beside the folders."""
    return ".".join(module.split(".")[:2])


def stays(chain: Sequence[Stop]) -> int:
    """How many modules a chain of calls goes through, each counted as often as it comes back."""
    return len([*groupby(module for module, _ in chain)])


def walk(framework: str) -> Walk:
    """Count one query of a framework."""
    measured = import_module(FRAMEWORKS[framework])
    host, found = Host(), Walk()
    threading.setprofile(found.look)  # before our threads begin
    measured.subjects()[OFF](host)
    host.provider.add_span_processor(found)
    pipeline = measured.pipeline()
    for number in range(WARM_UP):
        pipeline.ask(question(number), host.callbacks)
    host.flush()
    found.is_on = True
    sys.setprofile(found.look)
    pipeline.ask(question(WARM_UP), host.callbacks)
    sys.setprofile(None)
    if not found.has_ended.wait(SECONDS):
        raise TimeoutError(f"the root span of {framework} has not ended")
    threading.setprofile(None)
    if host.monitor is not None:
        host.monitor.shutdown()
    return found


def results_of(walks: dict[str, Walk], *, where: bool) -> Results:
    """What was counted, for each framework."""
    counts: dict[str, dict[str, int]] = {}
    for framework, each in walks.items():
        modules = {module for module, _ in each.calls}
        counts[TITLES[framework]] = {
            "calls": each.calls.total(),
            "functions": len(each.calls),
            "modules": len(modules),
            "rooms": len({*map(room_of, modules)}),
            "threads": len(each.threads),
            "stops": stays(each.caller) + stays(each.writer),
        }
    columns = ["framework", *next(iter(counts.values()))]
    rows = [[title, *map(str, each.values())] for title, each in counts.items()]
    tables = [Table(caption="A query that is not judged", columns=columns, rows=rows)]
    most = {"calls": MAX_CALLS, "modules": MAX_MODULES, "stops": MAX_STOPS}
    return Results(
        title="Layers on the way of a query",
        command=f"python tests/benchmarks/layers.py --frameworks {','.join(walks)}",
        how=HOW,
        tables=[*tables, *(map(_rooms, walks, walks.values()) if where else ())],
        bars=[
            Bar(
                promise=f"{title}: at most {bound:,} {name}",
                measured=f"{each[name]:,}",
                is_kept=each[name] <= bound,
            )
            for title, each in counts.items()
            for name, bound in most.items()
        ],
        notes=[
            f"{TITLES[framework]}: " + " > ".join(f"{module}:{name}" for module, name in stops)
            for framework, each in walks.items()
            for stops in (each.caller, each.writer)
            if where
        ],
    )


def _rooms(framework: str, walked: Walk) -> Table:
    calls: Counter[str] = Counter()
    modules: dict[str, set[str]] = {}
    for (module, _), times in walked.calls.items():
        calls[room_of(module)] += times
        modules.setdefault(room_of(module), set()).add(module)
    rows = [[room, str(n), str(len(modules[room]))] for room, n in calls.most_common()]
    return Table(caption=TITLES[framework], columns=["room", "calls", "modules"], rows=rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--frameworks", default=",".join(FRAMEWORKS))
    parser.add_argument("--where", action="store_true", help="add the calls in each room")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    walks = {each: walk(each) for each in options.frameworks.split(",")}
    show(results_of(walks, where=options.where), as_json=options.json)


if __name__ == "__main__":
    main()
