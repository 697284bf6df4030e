"""What a source of traces is: pages of whole traces, oldest first, as requests of OTLP JSON."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol, TypeVar
from urllib.parse import urlencode

from pydantic import JsonValue

from claimspan.errors import ConfigError, DeliveryError
from claimspan_tracing.adapters import Backend, Connection, RefusalError, is_list, is_mapping

PAGE: Final = 50
"""Traces of a page: what is in memory at once, beside what the judge works at."""

AT_ONCE: Final = 4
"""Traces that are asked for at the same time."""

WAITS: Final = (1.0, 2.0, 4.0, 8.0)
"""Seconds between the attempts to read, at least; after the last one the command gives up."""

LONGEST_WAIT: Final = 120.0
"""Seconds; a backend that wants to be left alone for longer ends the command."""

MOST_EMPTY: Final = 100
"""Pages without a trace that may follow each other, as searches of large backends have them."""

MAX_READ_BYTES: Final = 64 * 2**20
"""Of one answer: a page of traces with long chunks takes some megabytes."""

Page = Sequence[Mapping[str, object]]
"""``resourceSpans`` of OTLP JSON that hold whole traces."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Window:
    """When traces began."""

    since: datetime | None = None
    """The first moment; None for the beginning of all."""

    until: datetime | None = None
    """The moment before which they began; None for now."""


class Source(Protocol):
    """Where traces are."""

    identity: str
    """What the state file knows it by: the same traces at the same place."""

    def pages(self, window: Window) -> Iterator[Page]:
        """Yield traces, oldest first, a page at a time.

        Raises:
            ConfigError: They cannot be read; says what to do.
        """
        ...


class Api:
    """The API of a backend, whose reads are bounded, and tried again if it is away."""

    def __init__(self, backend: Backend, missing: str) -> None:
        """Set the backend.

        Args:
            backend: Where requests go.
            missing: What to look at if there is nothing at an address.
        """
        self._backend = backend
        self._missing = missing

    def get(self, path: str, query: Mapping[str, object] | None = None) -> JsonValue:
        """Return what is at a path; values of the query that are None are left out."""
        return self._read(lambda connection: connection.get(with_query(path, query)))

    def get_each(
        self, paths: Sequence[str], query: Mapping[str, object] | None = None
    ) -> list[JsonValue]:
        """Return what is at each of some paths, a few at a time; None if there is nothing."""

        async def read(connection: Connection) -> list[JsonValue]:
            turns = asyncio.Semaphore(AT_ONCE)

            async def one(path: str) -> JsonValue:
                async with turns:
                    try:
                        return await connection.get(with_query(path, query))
                    except RefusalError as error:
                        if error.status != 404:
                            raise
                        return None  # deleted meanwhile

            return await asyncio.gather(*map(one, paths))

        return self._read(read)

    def post(self, path: str, body: JsonValue) -> JsonValue:
        """Return the answer to a question that is sent."""
        return self._read(lambda connection: connection.ask(path, body))

    def pages(
        self, ask: Callable[[str], JsonValue], name: str, next_of: Callable[[JsonValue], object]
    ) -> Iterator[list[Mapping[str, object]]]:
        """Yield what each page lists, and ask for the one that it names.

        Args:
            ask: Reads a page by the token of the one before; that of the first is empty.
            name: Where a page has its list.
            next_of: Returns the token that a page has for the next one; nothing if it is the last.

        Raises:
            ConfigError: A page is no object, or the pages do not come to an end.
        """
        token, known, n_empty = "", set[str](), 0
        while token not in known and n_empty < MOST_EMPTY:
            known.add(token)
            page = ask(token)
            if not isinstance(page, dict):
                raise ConfigError(
                    f"{self._backend.name} does not answer as its API does: {self._missing}"
                )
            found = items(page, name)
            n_empty = 0 if found else n_empty + 1
            yield found
            following = next_of(page)
            if not following:
                return
            token = str(following)
        raise ConfigError(
            f"{self._backend.name} gives page after page without an end: give a shorter time "
            "with --since and --until; what was judged is noted"
        )

    def _read(self, work: Callable[[Connection], Coroutine[object, object, _T]]) -> _T:
        for wait in (*WAITS, None):
            try:
                return self._backend.run(work)
            except DeliveryError as error:
                silent = self._backend.silent_seconds
                if silent > LONGEST_WAIT:
                    raise ConfigError(
                        f"{self._backend.name} wants to be asked again in {silent:,.0f} seconds: "
                        "call the same command again then"
                    ) from None
                if error.final or wait is None:
                    raise ConfigError(self._told(error)) from None
                time.sleep(max(wait, silent))
        raise AssertionError  # the last attempt returns or raises

    def _told(self, error: DeliveryError) -> str:
        name, status = self._backend.name, getattr(error, "status", None)
        if status == 404:
            return f"{name} answers 404: {self._missing}"
        if status in (400, 422):
            return f"{name} answers {status}, and does not take the question: {self._missing}"
        if error.final:
            return str(error)
        return f"{error}; it was asked {len(WAITS) + 1} times: call the same command again later"


def with_query(path: str, query: Mapping[str, object] | None) -> str:
    """Return a path with its query."""
    given = {name: value for name, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def iso(moment: datetime | None) -> str | None:
    """Return a moment as APIs take it."""
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def part(value: object, *names: str) -> object:
    """Return what an answer has at a path of names; None if it is not there."""
    for name in names:
        value = value.get(name) if is_mapping(value) else None
    return value


def items(value: object, *names: str) -> list[Mapping[str, object]]:
    """Return the objects of a list in an answer; none if there is no list."""
    found = part(value, *names)
    listed = found if is_list(found) else ()
    return [{str(key): e for key, e in each.items()} for each in listed if is_mapping(each)]


def as_otlp(spans: Sequence[Mapping[str, object]]) -> Mapping[str, object]:
    """Return spans that know of no resource as ``resourceSpans``."""
    return {"scopeSpans": [{"spans": list(spans)}]}


def by_trace(group: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
    """Return what one of ``resourceSpans`` has of each trace, by the id of that."""
    traces: defaultdict[str, list[Mapping[str, object]]] = defaultdict(list)
    for scope in items(group, "scopeSpans"):
        spans: defaultdict[str, list[Mapping[str, object]]] = defaultdict(list)
        for span in items(scope, "spans"):
            spans[str(span.get("traceId"))].append(span)
        for trace, found in spans.items():
            traces[trace].append({**scope, "spans": found})
    return {trace: {**group, "scopeSpans": scopes} for trace, scopes in traces.items()}
