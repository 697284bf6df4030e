"""Applications that set up the tracer provider of another package, each in a process of its own.

They run in the environment of ``requirements/providers.txt``, and are judged by what arrives at a
receiver. ``{url}`` in a variable stands for its address.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from environments import ROOT, SOURCES, environment
from otlp_receiver import receiver

__all__ = ["CALLBACK", "OPENINFERENCE", "Arrived", "operation_of", "run_app", "values"]

OPERATIONS = frozenset(
    {"invoke_workflow", "retrieval", "chat", "claimspan.evaluate", "claimspan.annotations"}
)

WATCHDOG_SECONDS = 180.0
"""No application runs longer, however busy the machine is."""

_PRELUDE = """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # OpenInference's, of LangChain
url = os.environ["URL"]
import asyncio
from support import ScriptedJudge
from lc_pipelines import rag_chain
from claimspan_tracing import Monitor
class LateJudge(ScriptedJudge):
    async def _act(self):  # answers once a record has ended without its scores
        while not used.stats.dropped:
            await asyncio.sleep(0.01)
def monitor(judge=None, **options):
    return Monitor(judge or ScriptedJudge(), sample=1.0, max_cpu_share=1.0, **options)
def told(used):
    print("told", used.flush(60), used.stats.evaluated, used.stats.late, used.stats.faults)
"""

CALLBACK = """
from claimspan_langchain import ClaimspanCallbackHandler
used = monitor(**OPTIONS)
rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(used)]})
told(used)
"""
"""A query with our callback; ``OPTIONS`` is to be replaced by options of the monitor."""

OPENINFERENCE = """
import claimspan_openinference
from openinference.instrumentation.langchain import LangChainInstrumentor
LangChainInstrumentor().instrument(tracer_provider=provider)
used = monitor()
ATTACH
rag_chain().invoke("q")
told(used)
"""
"""A query that OpenInference traces; ``ATTACH`` is to be replaced by how we are attached."""


@dataclass(frozen=True)
class Arrived:
    """What an application has left behind."""

    spans: Sequence[Span]
    """What its backend has received."""

    logs: Sequence[LogRecord]
    """Log records that it has received."""

    told: tuple[str, ...]
    """What it has seen: result of ``flush``, records evaluated, late, and faults."""

    printed: str
    """All that it has printed, on standard error too."""

    files: Sequence[str]
    """Files in its working directory."""

    @property
    def ours(self) -> dict[str, Span]:
        """The spans of claimspan by their operation; each is there once."""
        ours = [span for span in self.spans if _is_ours(span)]
        by_operation = {operation_of(span): span for span in ours}
        assert len(by_operation) == len(ours)
        return by_operation

    @property
    def theirs(self) -> list[Span]:
        """The spans of other instrumentations."""
        return [span for span in self.spans if not _is_ours(span)]


def run_app(code: str, cwd: Path, *before: str, **variables: str) -> Arrived:
    """Run an application to its end.

    Args:
        code: The application, after a prelude that offers ``url``, ``monitor``, ``told`` and
            ``rag_chain``.
        cwd: Its working directory.
        *before: What to call the interpreter with: a program in the environment, and arguments.
        **variables: Environment variables.
    """
    python = environment("providers", ROOT / "requirements" / "providers.txt")
    folder = cwd / "work"
    folder.mkdir()
    with receiver() as backend:
        url = backend.url.removesuffix("/v1/traces")
        own = {name: value.replace("{url}", url) for name, value in variables.items()}
        launcher = [str(python.with_name(before[0])), *before[1:]] if before else []
        done = subprocess.run(
            [*launcher, str(python), "-c", _PRELUDE + code],
            cwd=folder,
            env=_variables() | {"URL": url} | own,
            capture_output=True,
            text=True,
            timeout=WATCHDOG_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    told = " ".join(line for line in done.stdout.splitlines() if line.startswith("told "))
    files = [path.name for path in folder.iterdir()]
    words = tuple(word for word in told.split() if word != "told")
    return Arrived(backend.spans, backend.logs, words, done.stdout + done.stderr, files)


def values(span: Span) -> Mapping[str, AnyValue]:
    """The attributes of a span."""
    return {item.key: item.value for item in span.attributes}


def _variables() -> dict[str, str]:
    """The variables of this process, without what sets up tracing; nothing phones home."""
    foreign = ("OTEL_", "PHOENIX_", "LOGFIRE_", "LANGFUSE_", "TRACELOOP_", "MLFLOW_", "DD_", "COV")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    return clean | {
        "PYTHONPATH": os.pathsep.join((SOURCES, str(Path(__file__).parent))),
        "LANGSMITH_TRACING": "false",
        "TRACELOOP_TELEMETRY": "false",
        "TRACELOOP_METRICS_ENABLED": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
        "DD_REMOTE_CONFIGURATION_ENABLED": "false",
    }


def operation_of(span: Span) -> str:
    """The operation that a span of claimspan has in its name, before what it works with."""
    return span.name.partition(" ")[0]


def _is_ours(span: Span) -> bool:
    return operation_of(span) in OPERATIONS
