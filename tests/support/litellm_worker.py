"""Judges by LiteLLM as a library, in a process of its own environment: a line in, a line out.

Each line is a JSON object with the judge's string and its options, and what the application has set
up; the answer says what came of it and what the process printed meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from claimspan import Usage
from claimspan.cost.budget import Budget, with_budget
from claimspan.cost.usage import metered
from claimspan.errors import ClaimspanError
from claimspan.judges import ModelJudge
from claimspan.judges.choice import default_judge

from judged import RECORD

# Any: the module is in this process's environment alone.
Application = dict[str, Any]

PRINTED = Path("printed")


def main() -> None:
    """Answer each line of the input."""
    warnings.simplefilter("default")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    application: Application = {}
    for line in sys.stdin:
        with _printing_to(PRINTED):
            answer = _answer(json.loads(line), application)
        answers.write(json.dumps(answer | {"printed": PRINTED.read_text("utf-8")}) + "\n")


def _answer(asked: Mapping[str, Any], application: Application) -> dict[str, Any]:
    before = dict(os.environ)
    os.environ.update(asked.get("variables", {}))
    if asked.get("watched"):
        _watch(application)
    seen, spans = application.get("seen"), application.get("spans")
    if seen is not None and spans is not None:
        seen.clear()
        spans.clear()
    begun = time.monotonic()
    try:
        found = _judged(asked)
        if asked.get("own_call"):
            asyncio.run(_call_of_application(asked["options"]))
    finally:
        added = sorted(os.environ.keys() - before.keys())
        os.environ.clear()
        os.environ.update(before)
    if seen is not None and spans is not None:
        time.sleep(0.3)  # its loggers run in tasks and threads
        found |= {"seen": list(seen), "spans": len(spans.get_finished_spans())}
    return found | {"seconds": time.monotonic() - begun, "added": added}


def _judged(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The verdicts on a record, or the error; each time in an event loop of its own."""
    budget = Budget(per_record=asked["budget"]) if "budget" in asked else None
    with metered() as meter, with_budget(budget):
        try:
            judge = default_judge(asked["judge"], options=asked.get("options", {}))
            assert isinstance(judge, ModelJudge)
            claims = asyncio.run(judge.extract_claims(RECORD.response))
            texts = [chunk.text for chunk in RECORD.chunks]
            matrix = asyncio.run(judge.check(claims, texts))
        except ClaimspanError as error:
            return {"error": f"{type(error).__name__}: {error}", "usage": _dumped(meter.usage)}
    labels = [[each and each.label.value for each in row] for row in matrix.rows]
    price = judge.price
    return {
        "labels": labels,
        "name": judge.name,
        "price": None if price is None else [price.input, price.output],
        "usage": _dumped(meter.usage),
    }


def _dumped(usage: Usage) -> dict[str, Any]:
    return usage.model_dump(mode="json")


async def _call_of_application(options: Mapping[str, Any]) -> None:
    litellm: Any = import_module("litellm")
    await litellm.acompletion(
        model="openai/gpt-4o-mini",
        messages=[{"role": "user", "content": "Is it so?"}],
        api_base=options["api_base"],
    )
    await asyncio.sleep(0.3)  # its loggers are tasks of the loop


def _watch(application: Application) -> None:
    """Log every call, as an application sets up LiteLLM's callbacks, cache and OpenTelemetry."""
    if application:
        return
    default_judge("litellm:openai/gpt-4o-mini")  # imports LiteLLM without a call of GitHub
    litellm: Any = import_module("litellm")
    tracing: Any = import_module("litellm.integrations.opentelemetry")
    loggers: Any = import_module("litellm.integrations.custom_logger")
    caching: Any = import_module("litellm.caching.caching")
    seen: list[str] = []

    def function(what: str) -> Callable[..., None]:
        return lambda *_, **__: seen.append(what)  # pyright: ignore[reportUnknownLambdaType] - takes anything

    async def succeeds(*_: object, **__: object) -> None:
        seen.append("logger: success")

    async def fails(*_: object, **__: object) -> None:
        seen.append("logger: failure")

    events = {"async_log_success_event": succeeds, "async_log_failure_event": fails}
    spans = InMemorySpanExporter()
    settings = tracing.OpenTelemetryConfig(exporter=spans)
    logger = type("Logger", (loggers.CustomLogger,), events)()
    litellm.callbacks = [logger, tracing.OpenTelemetry(settings)]
    litellm.success_callback = [function("function: success")]
    litellm.failure_callback = [function("function: failure")]
    litellm.cache = caching.Cache()
    application |= {"seen": seen, "spans": spans}


@contextmanager
def _printing_to(file: Path) -> Generator[None]:
    """Send to a file what anything prints, down to the file descriptors."""
    streams: list[TextIO] = [sys.stdout, sys.stderr]
    kept = [os.dup(number) for number in (1, 2)]
    with file.open("wb") as out:
        for number in (1, 2):
            os.dup2(out.fileno(), number)
    try:
        yield
    finally:
        for stream in streams:
            stream.flush()
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)


if __name__ == "__main__":
    main()
