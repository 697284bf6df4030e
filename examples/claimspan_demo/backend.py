"""Phoenix beside the demo: gets the traces and the scores, and stays to be looked at."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import typer

from claimspan_demo.phoenix_environment import find_phoenix
from claimspan_demo.phoenix_server import Phoenix, serve_phoenix

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from claimspan_tracing import Sink

__all__ = ["Backend", "backend"]

_ATTACH_SECONDS: Final = 12.0
"""Phoenix keeps a score whose span it has not stored yet in memory, and tries every 10 s."""

_PROJECT: Final = "claimspan-demo"
_DESCRIPTION: Final = (
    "Questions about a company, answered from its handbook and judged by claimspan"
)


class Backend(NamedTuple):
    """A running Phoenix with a project for the demo."""

    phoenix: Phoenix
    page: str
    """Address of the list of the project's spans."""

    is_kept: bool = False
    """Whether its database outlives it."""

    def export(self, provider: TracerProvider) -> None:
        """Send the provider's spans to the project as well."""
        # Imported here: not before the extra `demo` was found to be installed.
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        url = f"{self.phoenix.url}/v1/traces"
        exporter = OTLPSpanExporter(url, headers={"x-project-name": _PROJECT})
        provider.add_span_processor(BatchSpanProcessor(exporter))

    def sinks(self) -> Sequence[Sink]:
        """What writes the scores as annotations, which Phoenix shows as columns."""
        from claimspan_phoenix import PhoenixWriter

        return [PhoenixWriter(self.phoenix.url)]

    def stay(self, wait: bool) -> None:
        """Keep Phoenix up until Ctrl-C, or say how to."""
        if not wait:
            if self.is_kept:
                _say(f"waiting {_ATTACH_SECONDS:.0f} s for Phoenix to attach the last scores ...")
                time.sleep(_ATTACH_SECONDS)
            _say("Phoenix ends now; --wait keeps it up until Ctrl-C")
            return
        _say("Phoenix is up until Ctrl-C")
        try:
            self.phoenix.process.wait()
        except KeyboardInterrupt:
            _say("ending Phoenix")


@contextmanager
def backend(keep: Path | None) -> Generator[Backend]:
    """Run Phoenix while the block runs, and tell the user where it is.

    Args:
        keep: The folder of its database, which stays; None for one that is deleted at the end.

    Yields:
        Phoenix with a project for the demo.

    Raises:
        ConfigError: Phoenix cannot be installed or started; the message says what to do.
    """
    python = find_phoenix(_say)
    _say("starting Phoenix ...")
    with serve_phoenix(python, keep) as phoenix:
        page = phoenix.open_project(_PROJECT, _DESCRIPTION)
        _say(f"Phoenix: {page}")
        yield Backend(phoenix, page, keep is not None)


def _say(line: str) -> None:
    # On standard error: standard output is for the results, and for JSON.
    typer.echo(line, err=True)
