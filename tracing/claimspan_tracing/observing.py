"""``observe``: captures the calls of a function as records."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from typing import ParamSpec, TypeVar, Unpack, cast, overload

from claimspan.errors import ConfigError
from claimspan_tracing.capture.hooks import Capture
from claimspan_tracing.capture.runs import Key
from claimspan_tracing.monitor import Monitor, MonitorOptions
from claimspan_tracing.observed import Arguments, ObservedReader, ObservedRecord, Parts, open_record
from claimspan_tracing.shared import default_monitor

__all__ = ["observe"]

_P = ParamSpec("_P")
_T = TypeVar("_T")

_Function = Callable[..., object]


@overload
def observe(function: Callable[_P, _T], /) -> Callable[_P, _T]: ...


@overload
def observe(
    *,
    monitor: Monitor | None = None,
    name: str | None = None,
    query_key: Key | None = None,
    response_key: Key | None = None,
    metadata: Mapping[str, object] | None = None,
    **options: Unpack[MonitorOptions],
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]: ...


def observe(
    function: _Function | None = None,
    /,
    *,
    monitor: Monitor | None = None,
    name: str | None = None,
    query_key: Key | None = None,
    response_key: Key | None = None,
    metadata: Mapping[str, object] | None = None,
    **options: Unpack[MonitorOptions],
) -> _Function | Callable[[_Function], _Function]:
    """Capture each call of a function as a record: ``@observe`` or ``@observe(sample=0.05)``.

    The function may be a coroutine function, a generator or an asynchronous generator, whose parts
    are joined. It returns, yields and raises the same as without; but what is sent or thrown into
    an asynchronous generator does not reach it. What it retrieves is known if an integration of
    the same monitor reports it, if it calls ``current_record().retrieved(documents)``, or if
    it returns ``(answer, documents)`` or a mapping with both.

    Args:
        function: Answers a query.
        monitor: Evaluates the records; None uses the monitor that the process shares.
        name: Name of the pipeline; None takes the name of the function.
        query_key: Finds the user's question in the arguments: the name of a parameter, a path from
            it, or a callable that takes all of them by name. None takes the parameter with a usual
            name (``query``, ``question``, ...), else the first text.
        response_key: Finds the answer in the function's result: a key, a path or a callable.
        metadata: Facts about every query.
        options: Options of ``Monitor``; equal ones share a monitor.

    Raises:
        ConfigError: The decorated object is no function, both a monitor and options are given, or
            an option is invalid.
    """
    evaluates = default_monitor(monitor, options)
    capture = Capture(ObservedReader(query_key, response_key), evaluates)

    def decorate(function: _Function) -> _Function:
        if not callable(function) or inspect.isclass(function):
            raise ConfigError(
                f"observe is given a value of type {type(function).__name__}: give a function"
            )
        called = name or str(getattr(function, "__name__", type(function).__name__))
        try:
            parameters = tuple(inspect.signature(function).parameters)
        except (TypeError, ValueError):  # a function in C may not tell them
            parameters = ()

        def opened(args: tuple[object, ...], kwargs: Mapping[str, object]) -> ObservedRecord:
            inputs = Arguments(parameters, args, dict(kwargs))
            return open_record(
                capture, evaluates.feedback, name=called, inputs=inputs, metadata=metadata
            )

        return _observed(function, opened)

    return decorate if function is None else decorate(function)


def _observed(
    function: _Function,
    opened: Callable[[tuple[object, ...], Mapping[str, object]], ObservedRecord],
) -> _Function:
    """The function in its own kind: frameworks ask whether it is a coroutine function.

    Of a coroutine or a generator the record begins once it is made: with wrong arguments none is.
    """
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def async_generator(*args: object, **kwargs: object) -> AsyncGenerator[object]:
            inner = cast("AsyncGenerator[object, object]", function(*args, **kwargs))
            async with contextlib.aclosing(_astream(opened(args, kwargs), inner)) as stream:
                async for part in stream:
                    yield part

        return async_generator
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generator(*args: object, **kwargs: object) -> Generator[object, object, object]:
            inner = cast("Generator[object, object, object]", function(*args, **kwargs))
            return (yield from _stream(opened(args, kwargs), inner))

        return generator
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args: object, **kwargs: object) -> object:
            inner = cast("Awaitable[object]", function(*args, **kwargs))
            return await _awaited(opened(args, kwargs), inner)

        return coroutine

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        record = opened(args, kwargs)
        try:
            with record.inside():
                returned = function(*args, **kwargs)
        except BaseException as error:
            record.end(error)
            raise
        return _followed(record, returned)

    return call


def _followed(record: ObservedRecord, returned: object) -> object:
    """What a plain function returned; the record of a stream or a coroutine ends with it."""
    if inspect.isgenerator(returned):
        return _stream(record, cast("Generator[object, object, object]", returned))
    if inspect.isasyncgen(returned):
        return _astream(record, cast("AsyncGenerator[object, object]", returned))
    if inspect.iscoroutine(returned):
        return _awaited(record, returned)
    record.returned(returned)
    return returned


async def _awaited(record: ObservedRecord, awaitable: Awaitable[object]) -> object:
    try:
        with record.inside():
            returned = await awaitable
    except BaseException as error:
        record.end(error)
        raise
    record.returned(returned)
    return returned


def _stream(
    record: ObservedRecord, inner: Generator[object, object, object]
) -> Generator[object, object, object]:
    """Yields what a generator yields; only its own steps run inside of the record."""
    parts: list[object] = []
    step: Callable[[], object] = functools.partial(next, inner)
    while True:
        try:
            with record.inside():
                part = step()
        except StopIteration as end:
            record.returned(Parts(parts) if parts else end.value)
            return end.value
        except BaseException as error:
            record.end(error)
            raise
        parts.append(part)
        try:
            step = functools.partial(inner.send, (yield part))
        except GeneratorExit as left:
            try:
                inner.close()
            finally:  # what puts its things away may raise, too
                record.end(left)
            raise
        except BaseException as thrown:  # noqa: BLE001 - its reader may throw anything into it
            step = functools.partial(inner.throw, thrown)


async def _astream(
    record: ObservedRecord, inner: AsyncGenerator[object, object]
) -> AsyncGenerator[object, object]:
    """As ``_stream``, for an asynchronous generator; nothing can be sent into it."""
    parts: list[object] = []
    while True:
        try:
            with record.inside():
                part = await anext(inner)
        except StopAsyncIteration:
            record.returned(Parts(parts) if parts else None)
            return
        except BaseException as error:
            record.end(error)
            raise
        parts.append(part)
        try:
            yield part
        except BaseException as left:
            try:
                await inner.aclose()
            finally:  # as in ``_stream``
                record.end(left)
            raise
