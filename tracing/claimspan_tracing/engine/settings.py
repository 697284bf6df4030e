"""The checked options of a monitor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from claimspan import GroundTruth
from claimspan.cost.budget import Budget
from claimspan.evaluation.selection import Selection
from claimspan.judges import Judge
from claimspan_tracing.alert import Alert, OnAlert
from claimspan_tracing.decide.sampling import Sampler
from claimspan_tracing.deliver.delivery import OnResult
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.dispatch.pacing import MAX_CPU_SHARE
from claimspan_tracing.dispatch.process import JudgeSpec
from claimspan_tracing.lifecycle import EXIT_TIMEOUT
from claimspan_tracing.providers.source import TracerSource
from claimspan_tracing.redact import Redaction
from claimspan_tracing.write.sinks import Sink

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked options of a monitor."""

    judge: Judge
    """Gives claims and verdicts."""

    selection: Selection = Selection()  # noqa: RUF009 - it is frozen
    """What is measured, and where it begins to be low."""

    ground_truth: GroundTruth | None
    """Responses known to be right."""

    sampler: Sampler
    """Decides which records are evaluated."""

    tells_cost: bool = False
    """Whether the log says what judging costs, since no option says how much to judge."""

    hold_seconds: float
    """How long spans wait for scores."""

    max_records: int
    """Records under way at once."""

    max_bytes: int
    """Approximate bytes of text that these keep alive."""

    source: TracerSource
    """Where the spans go."""

    sinks: tuple[Sink, ...] = ()
    """The user's own sinks, called after ours."""

    on_result: OnResult | None = None
    """Gets every record that was evaluated."""

    alerts: tuple[Alert, ...] = ()
    """What is watched."""

    on_alert: OnAlert | None = None
    """Gets what the alerts say."""

    redaction: Redaction | None = None
    """What is taken out of texts, and who may see them raw; None leaves them as they are."""

    capture_content: bool = True
    """Whether texts are written on spans."""

    whole_values: bool = False
    """Whether spans go to a backend that shows input and output of a run and nothing else."""

    keeps_unasked: bool = False
    """Whether a run that asked nothing, such as a retriever alone, is a record all the same."""

    budget: Budget | None = None
    """What judging may cost; None sets no limit beside the judge's own."""

    spool: Path | None = None
    """File in which jobs survive the end of the process; None keeps them in memory."""

    dispatcher: Dispatcher | None = None
    """Has jobs evaluated; None evaluates them on a thread of this process."""

    serverless: bool = False
    """Whether a record is evaluated or spooled before the pipeline's call returns."""

    exit_timeout: float = EXIT_TIMEOUT
    """Seconds that the end of the process may take."""

    judge_specs: tuple[JudgeSpec, ...] = ()
    """What a process of its own makes the judge from, and the sampler's first judge, if there is
    one; empty if they judge on a thread of this process."""

    spare_judge: JudgeSpec | None = None
    """What a process of its own makes the judge from, for texts that are too long for a thread of
    this process; None if it cannot be made there."""

    max_cpu_share: float = MAX_CPU_SHARE
    """Share of a core that evaluating in this process may take, above 0 up to 1."""
