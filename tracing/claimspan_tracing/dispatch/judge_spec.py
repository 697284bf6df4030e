"""What a judge is made from in another process: a name, or its class and the arguments of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError

from claimspan.daemon_threads import has_greenlets
from claimspan.errors import ConfigError
from claimspan.judges import JUDGE_VARIABLE, Judge, default_judge
from claimspan.judges.choice import JudgeLike, environment_options
from claimspan.judges.protocol import PortableJudge
from claimspan.loading import load_object
from claimspan_tracing.decide.sampling import Sampler, first_judge_of
from claimspan_tracing.dispatch.dispatcher import Dispatcher

__all__ = ["JudgeSpec", "WorkerKind", "checked_worker", "spec_of"]

WorkerKind = Literal["thread", "process"]
"""Where records are judged: on a thread of this process, or in a process of its own."""

WORKER_VARIABLE: Final = "CLAIMSPAN_WORKER"
"""Environment variable that says where records are judged, where the option does not."""

_WAYS = (
    "give a name ('lexical', 'local', 'openai:MODEL'), or a judge with a method arguments() that "
    "returns the keyword arguments of its class as JSON values; else leave worker='process' out"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSpec:
    """How to make a judge. It is JSON: nothing that is unpickled could run code of others."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str = ""
    """As ``default_judge`` takes it; empty where ``maker`` is given."""

    options: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Options of the judge with that name, as ``default_judge`` takes them."""

    maker: str = ""
    """The class of the judge, as ``package.module:name``."""

    arguments: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Its keyword arguments."""

    def make(self) -> Judge:
        """Make the judge.

        Raises:
            ConfigError: It cannot be made here.
        """
        if not self.maker:
            return default_judge(self.name, options=self.options)
        made = load_object(self.maker)
        judge = made(**self.arguments) if callable(made) else made
        if not isinstance(judge, Judge):
            raise ConfigError(f"{self.maker} makes a {type(judge).__name__}, which is no judge")
        return judge


def spec_of(given: JudgeLike | None) -> JudgeSpec:
    """Return what another process makes an equal judge from.

    Args:
        given: The judge, the name of one, or None for that of the environment.

    Raises:
        ConfigError: There is no such thing for this judge.
    """
    if given is None or given == "":
        # Read now: a process that is started later has the judge of the monitor all the same.
        chosen = os.environ.get(JUDGE_VARIABLE) or "lexical"
        return JudgeSpec(name=chosen, options=environment_options())
    if isinstance(given, str):
        return JudgeSpec(name=given)
    kind = type(given)
    if not isinstance(given, PortableJudge):
        raise ConfigError(f"worker='process' cannot make a {kind.__name__} in its process: {_WAYS}")
    if not _is_importable(kind):
        raise ConfigError(
            f"worker='process' cannot import {kind.__qualname__} from {kind.__module__!r}: define "
            "the judge at the top of a module that can be imported, not in the script that is run"
        )
    try:
        arguments = _ARGUMENTS.validate_python(given.arguments())
    except ValidationError:
        raise ConfigError(
            f"arguments() of {kind.__name__} returns something else than JSON values by name: "
            f"{_WAYS}"
        ) from None
    return JudgeSpec(maker=f"{kind.__module__}:{kind.__qualname__}", arguments=dict(arguments))


def checked_worker(
    worker: WorkerKind | None,
    judge: JudgeLike | None,
    sampler: Sampler,
    dispatch: Dispatcher | None,
) -> tuple[JudgeSpec, ...]:
    """Return what a process of its own makes the judges from; nothing for a thread.

    Raises:
        ConfigError: There is no such worker, records are judged elsewhere anyway, or the judge
            cannot be made in another process.
    """
    wanted = worker or os.environ.get(WORKER_VARIABLE, "") or "thread"
    if wanted not in ("thread", "process"):
        raise ConfigError(f"worker is {wanted!r}: give 'thread' or 'process'")
    if wanted == "thread" or (dispatch is not None and worker is None):
        return ()
    if dispatch is not None:
        raise ConfigError("worker='process' cannot go with dispatch: leave one of them out")
    if not sys.executable:
        raise ConfigError(
            "worker='process' needs sys.executable, which an embedded interpreter lacks: leave it "
            "out, or set sys.executable to a Python that has the same packages"
        )
    if has_greenlets():
        raise ConfigError(
            "worker='process' cannot start its process where gevent has patched subprocess: leave "
            "it out; the judge has threads of its own there, too"
        )
    first = first_judge_of(sampler)
    return (spec_of(judge), *([] if first is None else [spec_of(first)]))


_ARGUMENTS = TypeAdapter[Mapping[str, JsonValue]](Mapping[str, JsonValue])


def _is_importable(kind: type) -> bool:
    found: object = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind and kind.__module__ != "__main__"
