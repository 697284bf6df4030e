"""SIGKILL at random moments loses no request that was acknowledged, and scores no record twice."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from signal import SIGKILL
from typing import Final
from urllib.parse import urlsplit

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from otlp_receiver import Receiver, receiver
from processes import closed_port
from served import Served, asked, serving, until

KILLS: Final = int(os.environ.get("CLAIMSPAN_TEST_SERVE_KILLS", "5"))
CLIENTS: Final = 2
NO_RETRY_SECONDS: Final = 0.75
VICTIMS: Final = ("all", "receiver", "judge")


class Client:
    """An application that sends each of its traces until it is acknowledged."""

    def __init__(self, url: str, number: int) -> None:
        self.acknowledged: dict[str, int] = {}
        """Trace id to the number of requests that it took."""

        self.ended = threading.Event()
        self._url = url
        self._number = number
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        self.ended.set()
        self._thread.join()

    def _run(self) -> None:
        # It has no time to send anything again by itself, which could not be counted.
        exporter = OTLPSpanExporter(self._url, timeout=NO_RETRY_SECONDS)
        number = 0
        while not self.ended.is_set():
            number += 1
            spans = asked(f"How long is river {self._number} of {number}?")
            context = spans[0].get_span_context()
            assert context is not None
            sent = 1
            while exporter.export(spans) is not SpanExportResult.SUCCESS:
                if self.ended.wait(0.1):
                    return
                sent += 1
            self.acknowledged[f"{context.trace_id:032x}"] = sent
            time.sleep(0.03)


def traces_of(received: Receiver) -> Counter[str]:
    """Requests by the trace that they are about."""
    return Counter(
        request.message.resource_spans[0].scope_spans[0].spans[0].trace_id.hex()
        for request in list(received.requests)
    )


def scores_of(received: Receiver) -> dict[str, Counter[str]]:
    """Trace id to the ids of its evaluation spans, and how often each has come."""
    found: dict[str, Counter[str]] = {}
    for span in received.spans:
        if span.name == "claimspan.evaluate":
            ids = found.setdefault(span.trace_id.hex(), Counter())
            ids[span.span_id.hex()] += 1
    return found


def kill(served: Served, victim: str) -> None:
    until(lambda: bool(served.health()["judge"]["pid"]))
    judge = served.health()["judge"]["pid"]
    for pid in {"all": (judge, served.process.pid), "judge": (judge,)}.get(
        victim, (served.process.pid,)
    ):
        with suppress(ProcessLookupError):
            os.kill(pid, SIGKILL)


@pytest.mark.parametrize("seed", [1])
def test_after_kills_at_random_moments_every_acknowledged_trace_is_there_with_one_score(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    port = str(urlsplit(closed_port()).port)
    with receiver() as backend, receiver() as scores:
        options: tuple[str, ...] = (
            "--forward",
            backend.url.removesuffix("/v1/traces"),
            "--http-port",
            port,
        )
        options += ("--export", scores.url.removesuffix("/v1/traces"), "--spool", "spool")
        url = f"http://127.0.0.1:{port}/v1/traces"
        with ExitStack() as running:
            served = running.enter_context(serving(tmp_path, *options))
            clients = [Client(url, number) for number in range(CLIENTS)]
            try:
                for _ in range(KILLS):
                    time.sleep(chance.uniform(0.1, 1.5))
                    victim = chance.choice(VICTIMS)
                    kill(served, victim)
                    if victim != "judge":
                        served.process.wait()
                        served = running.enter_context(serving(tmp_path, *options))
                time.sleep(1)
            finally:
                for client in clients:
                    client.end()
            sent = {trace: n for client in clients for trace, n in client.acknowledged.items()}
            until(lambda: scores_of(scores).keys() >= sent.keys())
            served.stop()

    forwarded, scored = traces_of(backend), scores_of(scores)
    print(len(sent), "acknowledged;", sum(len(ids) for ids in scored.values()), "scores;", end=" ")
    print(sum(n - 1 for ids in scored.values() for n in ids.values()), "of them sent again")
    assert {trace for trace, n in sent.items() if not 1 <= forwarded[trace] <= n} == set()
    assert {trace: ids for trace, ids in scored.items() if len(ids) > 1} == {}
