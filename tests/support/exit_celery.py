"""An application whose Celery tasks answer by a LangChain pipeline; the broker is a folder."""

from __future__ import annotations

from pathlib import Path

from celery import Celery

from claimspan_tracing import Monitor

from exit_judges import Slow, ask

__all__ = ["answer", "app"]

_FOLDER = Path.cwd() / "broker"
_FOLDER.mkdir(exist_ok=True)

app = Celery("exit_celery", broker="filesystem://")
app.conf.broker_transport_options = {
    "data_folder_in": str(_FOLDER),
    "data_folder_out": str(_FOLDER),
    "control_folder": str(_FOLDER / "control"),
    "polling_interval": 0.05,  # seconds
}
app.conf.task_ignore_result = True

_monitor = Monitor(Slow(0.5), sample=1.0)
ask(_monitor, "at import")  # so that the children are forked from a parent with warm threads


@app.task
def answer(number: int) -> None:
    """Answer one question, and leave a file that says so."""
    ask(_monitor, str(number))
    Path(f"answered-{number}").touch()
