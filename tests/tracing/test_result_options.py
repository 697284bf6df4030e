"""Options for results and alerts that cannot work, and what is said about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import pytest

from claimspan.errors import ConfigError
from claimspan_tracing import Alert, Job, Monitor
from claimspan_tracing.dispatch.dispatcher import Deliver, Dispatcher
from claimspan_tracing.job import JobKey

from support import ScriptedJudge


class Elsewhere:
    """A dispatcher whose jobs are evaluated in other processes."""

    def start(self, deliver: Deliver) -> None: ...

    def dispatch(self, job: Job) -> bool:
        return True

    def withdraw(self, key: JobKey) -> bool:
        return False

    def stop(self, timeout: float) -> None: ...


def generator(finished: object) -> Iterator[None]:
    yield


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"on_result": "print"}, "on_result is of type str: give a function"),
        ({"on_result": generator}, "use no yield"),
        ({"on_alert": print}, "without alerts"),
        ({"alerts": [Alert("f1", below=0.5)], "on_alert": 3}, "on_alert is of type int"),
        ({"alerts": Alert("f1", below=0.5)}, "alerts is of type Alert: give a list"),
        ({"alerts": ["f1"]}, "alerts has a value of type str"),
        ({"alerts": [Alert("f1", below=0.5), Alert("f1", below=0.5)]}, "two alerts are called"),
        ({"alerts": [Alert("recal", below=0.5)]}, "did you mean 'recall'"),
        ({"alerts": [Alert("f1", below=0.5)], "metrics": "recall"}, "'f1', which is not measured"),
        ({"on_result": print, "dispatch": Elsewhere()}, "cannot go with dispatch"),
        ({"alerts": [Alert("f1", below=0.5)], "dispatch": Elsewhere()}, "cannot go with dispatch"),
    ],
)
def test_what_cannot_work_is_refused_at_set_up(options: dict[str, object], says: str) -> None:
    assert isinstance(Elsewhere(), Dispatcher)
    make = cast("Callable[..., Monitor]", Monitor)

    with pytest.raises(ConfigError, match=says):
        make(ScriptedJudge(), **options)
