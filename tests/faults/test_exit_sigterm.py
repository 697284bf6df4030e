"""SIGTERM, alone and under web servers. Rows F7 and F8 of the reliability matrix."""

from __future__ import annotations

import signal
import socket
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from claimspan.errors import ConfigError
from claimspan_tracing import install_sigterm

from processes import (
    WATCHDOG_SECONDS,
    Ended,
    run_python,
    silent_backend,
    start,
    statuses_in,
    wait_for,
)

WAITING = """
ask(Monitor(Slow(), sample=1.0), *map(str, range(8)))
print("asked", flush=True)
time.sleep(60)
"""

UVICORN = "-m uvicorn exit_app:asgi --log-level warning --port"
UVICORN_IN_PYTHON = "uvicorn_main.py"
GEVENTS_SERVER = """
from gevent import monkey
monkey.patch_all()
import sys
from gevent.pywsgi import WSGIServer
import exit_app
WSGIServer(("127.0.0.1", int(sys.argv[1])), exit_app.wsgi, log=None).serve_forever()
"""
GUNICORN = (
    "-m gunicorn exit_app:wsgi --log-level warning --timeout 90 --graceful-timeout 10 --workers 2 "
    "--bind 127.0.0.1:"
)
"""Its workers may take as long to import everything as our processes may run. One of gevent's that
was forked from a thread of OpenTelemetry's SDK never ends, and is killed after ten seconds."""


def test_sigterm_evaluates_and_exports_what_is_left_and_still_ends_the_process(
    tmp_path: Path,
) -> None:
    ended = run_python("install_sigterm()" + WAITING, tmp_path, kill=signal.SIGTERM)

    assert ended.code == -signal.SIGTERM
    assert ended.stderr == ""
    assert statuses_in(tmp_path) == {"evaluated": 8}


def test_sigterm_is_left_alone_unless_asked_for(tmp_path: Path) -> None:
    ended = run_python(WAITING, tmp_path, kill=signal.SIGTERM)

    assert ended.code == -signal.SIGTERM
    assert statuses_in(tmp_path).get("evaluated", 0) < 8


def test_sigterm_ends_the_process_in_time_with_judge_and_backend_hanging(tmp_path: Path) -> None:
    code = """
install_sigterm()
ask(Monitor(Hanging(), sample=1.0), "a")
says_bye()
time.sleep(60)
"""
    with silent_backend() as url:
        ended = run_python(
            code, tmp_path, kill=signal.SIGTERM, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=url
        )

    assert ended.code == -signal.SIGTERM
    assert ended.seconds_to_end < 5.5


def test_the_handler_that_was_there_before_decides_how_the_process_ends(tmp_path: Path) -> None:
    code = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\ninstall_sigterm()" + WAITING

    assert run_python(code, tmp_path, kill=signal.SIGTERM).code == 7
    assert statuses_in(tmp_path) == {"evaluated": 8}


def test_an_application_that_ignores_sigterm_goes_on_doing_so(tmp_path: Path) -> None:
    code = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
install_sigterm()
print("ready", flush=True)
monitor = Monitor(ScriptedJudge(), sample=1.0)
time.sleep(1)
ask(monitor, "a")
print(monitor.flush())
"""
    ended = run_python(code, tmp_path, kill=signal.SIGTERM)

    assert ended.code == 0
    assert ended.words == ["ready", "True"]


def test_installing_twice_and_undoing_leaves_the_handler_that_was_there(tmp_path: Path) -> None:
    code = """
before = lambda *_: None
signal.signal(signal.SIGTERM, before)
undo, undo_second = install_sigterm(), install_sigterm()
undo_second()
print(signal.getsignal(signal.SIGTERM) is before)
undo()
print(signal.getsignal(signal.SIGTERM) is before)
"""
    assert run_python(code, tmp_path).words == ["False", "True"]


def test_another_thread_than_the_main_one_cannot_install_it() -> None:
    errors: list[Exception] = []

    def install() -> None:
        try:
            install_sigterm()
        except ConfigError as error:
            errors.append(error)

    thread = threading.Thread(target=install)
    thread.start()
    thread.join()

    assert [str(error) for error in errors] == [
        "install_sigterm() works in the main thread only: call it there"
    ]


# --- web servers ---


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def get(port: int, path: str) -> None:
    """Ask the server; it may still be starting."""
    deadline = time.monotonic() + WATCHDOG_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=20) as answer:
                assert answer.status == 200
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def serve(command: str, folder: Path, n_requests: int, **environment: str) -> Ended:
    """Start a server, ask it, and end it by SIGTERM right after its last answer."""
    port = free_port()
    words = command.split()
    words = [*words[:-1], words[-1] + str(port)] if command.endswith(":") else [*words, str(port)]
    process = start(words, folder, **environment)
    try:
        for number in range(n_requests):
            get(port, str(number))
    finally:
        process.terminate()
        ended = wait_for(process)
    return ended


@pytest.mark.parametrize("how", ["imported by uvicorn", "before uvicorn"])
def test_uvicorn_ends_by_sigterm_with_everything_written(tmp_path: Path, how: str) -> None:
    command = UVICORN
    if how == "before uvicorn":
        program = "import sys, uvicorn, exit_app\n"
        program += "uvicorn.run(exit_app.asgi, port=int(sys.argv[1]), log_level='warning')\n"
        (tmp_path / UVICORN_IN_PYTHON).write_text(program, encoding="utf-8")
        command = UVICORN_IN_PYTHON

    pipeline = {"LANGCHAIN": "1"} if how == "imported by uvicorn" else {}
    ended = serve(command, tmp_path, 5, SIGTERM="1", **pipeline)

    assert ended.code == -signal.SIGTERM
    assert statuses_in(tmp_path) == {"evaluated": 5}


def test_gevents_own_server_ends_by_sigterm_with_everything_written(tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text(GEVENTS_SERVER, encoding="utf-8")

    # The signal comes while all greenlets wait: the handler runs in gevent's event loop itself.
    ended = serve("served.py", tmp_path, 5, SIGTERM="1")

    assert ended.code == -signal.SIGTERM
    assert ended.stderr == ""
    assert statuses_in(tmp_path) == {"evaluated": 5}


def test_a_preloaded_application_in_uvicorns_workers_installs_the_handler_after_the_fork(
    tmp_path: Path,
) -> None:
    (tmp_path / "gunicorn.conf.py").write_text(
        "from claimspan_tracing import install_sigterm\n\n\n"
        "def post_worker_init(worker):\n    install_sigterm()\n",
        encoding="utf-8",
    )
    worker = "--preload --worker-class uvicorn.workers.UvicornWorker --workers"
    command = GUNICORN.replace(":wsgi", ":asgi").replace("--workers", worker)

    ended = serve(command, tmp_path, 10)

    assert ended.code == 0
    assert statuses_in(tmp_path) == {"evaluated": 10}


@pytest.mark.parametrize("worker", ["sync", "gevent"])
@pytest.mark.parametrize("preload", ["", "--preload"])
def test_the_workers_of_gunicorn_end_with_everything_written(
    tmp_path: Path, preload: str, worker: str
) -> None:
    command = GUNICORN.replace("--workers", f"{preload} --worker-class {worker} --workers")
    # The application asks once where it is imported: in the master, or in each of two workers.
    pipeline = {"LANGCHAIN": "1"} if preload and worker == "sync" else {}
    ended = serve(command, tmp_path, 10, SIGTERM="1", ASK_AT_IMPORT="1", **pipeline)

    assert ended.code == 0
    assert statuses_in(tmp_path) == {"evaluated": 10 + (1 if preload else 2)}


def test_a_worker_of_gunicorn_ends_in_time_with_the_backend_hanging(tmp_path: Path) -> None:
    port, asked_nothing = free_port(), free_port()
    with silent_backend() as url:
        # gunicorn takes its own time to tell its workers, and Python to take its modules apart: as
        # long as a server beside this one takes that has nothing to write.
        idle = start(f"{GUNICORN}{asked_nothing}".split(), tmp_path, SIGTERM="1")
        process = start(
            f"{GUNICORN}{port}".split(),
            tmp_path,
            SIGTERM="1",
            OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=url,
        )
        for number in range(30):
            get(port, str(number))
        get(asked_nothing, "alive")
        idle.terminate()
        process.terminate()
        idle_ended, ended = wait_for(idle), wait_for(process)

    assert (idle_ended.code, ended.code) == (0, 0)
    assert ended.ended_at - idle_ended.ended_at < 5.5
