"""Children that are forked at a bad moment. Row F8 of the reliability matrix."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from judge_server import judge_server
from processes import run_python, start, statuses_in, wait_for

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

FORKED = """
def in_child(work, seconds=15):
    # Fork, have the child work, and print its exit code; one that hangs is killed.
    pid = os.fork()
    if pid == 0:
        try:
            code = 0 if work() else 1
        except BaseException as error:
            print(type(error).__name__, error, file=sys.stderr, flush=True)
            code = 2
        os._exit(code)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            print(os.waitstatus_to_exitcode(status), flush=True)
            return
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    print("hangs", flush=True)

def evaluates_one(monitor):
    ask(monitor, "in the child")
    return monitor.flush(10) and monitor.stats.evaluated == 1 and monitor.stats.produced == 1
"""


def test_a_child_forked_while_every_lock_of_ours_is_held_works(tmp_path: Path) -> None:
    code = (
        FORKED
        + """
from claimspan_tracing import lifecycle
monitor = Monitor(ScriptedJudge(), sample=1.0)
ask(monitor, "before")
assert monitor.flush()
engine = monitor.engine
source = engine._settings.source
locks = [engine._lock, engine.table._lock, engine.guard._lock, engine.records._lock, source._lock,
         engine._worker._thread._lock, engine._exports._lock,
         lifecycle.exit_threads._lock]
held = threading.Event()
def hold():
    for lock in locks:
        lock.acquire()
    held.set()
    time.sleep(3600)
threading.Thread(target=hold, daemon=True).start()
held.wait()
in_child(lambda: evaluates_one(monitor))
os._exit(0)
"""
    )
    ended = run_python(code, tmp_path)

    assert ended.words == ["0"], ended.stderr
    assert statuses_in(tmp_path) == {"evaluated": 2}


def test_a_child_forked_while_openinference_s_spans_are_looked_at_works(tmp_path: Path) -> None:
    code = (
        FORKED
        + """
from opentelemetry.sdk.trace import TracerProvider
import claimspan_openinference
provider = TracerProvider()
monitor = Monitor(ScriptedJudge(), sample=1.0, tracer_provider=provider)
processor = claimspan_openinference.ClaimspanSpanProcessor(monitor)
provider.add_span_processor(processor)
tracer = provider.get_tracer("somebody else's instrumentation")
def evaluates_traced():
    kind = "openinference.span.kind"
    documents = {"retrieval.documents.0.document.content": "The Drava is 725 km long."}
    asked = {kind: "CHAIN", "input.value": "How long?", "output.value": "It is 725 km long."}
    with tracer.start_as_current_span("chain", attributes=asked):
        with tracer.start_as_current_span("search", attributes={kind: "RETRIEVER", **documents}):
            pass
    monitor.flush(10)
    return monitor.stats.evaluated == monitor.stats.produced == 1
held = threading.Event()
def hold():
    with processor._lock:
        held.set()
        time.sleep(3600)
threading.Thread(target=hold, daemon=True).start()
held.wait()
in_child(evaluates_traced)
os._exit(0)
"""
    )
    ended = run_python(code, tmp_path)

    assert ended.words == ["0"], ended.stderr


def test_a_child_forked_during_an_export_to_the_trace_file_works(tmp_path: Path) -> None:
    code = (
        FORKED
        + """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from claimspan_tracing.trace_file import writing as line_file
from claimspan_tracing.trace_file.writing import OtlpFileExporter
exporter = OtlpFileExporter("claimspan-traces.jsonl")
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporter))
monitor = Monitor(ScriptedJudge(), sample=1.0, tracer_provider=provider)
write, writing, forked = line_file._write_all, threading.Event(), threading.Event()
def held_up(handle, data):
    writing.set()
    forked.wait(20)
    write(handle, data)
line_file._write_all = held_up
os.register_at_fork(after_in_parent=forked.set)  # the parent holds the file until then
ask(monitor, "before")
threading.Thread(target=monitor.flush, daemon=True).start()
assert writing.wait(10)
def work():
    line_file._write_all = write
    return evaluates_one(monitor)
in_child(work)
print(monitor.flush())
"""
    )
    ended = run_python(code, tmp_path)

    assert ended.words == ["0", "True"], ended.stderr
    assert statuses_in(tmp_path) == {"evaluated": 2}


def test_a_child_forked_after_the_parents_shutdown_evaluates(tmp_path: Path) -> None:
    code = (
        FORKED
        + """
monitor = Monitor(ScriptedJudge(), sample=1.0)
ask(monitor, "before")
assert monitor.shutdown()
in_child(lambda: evaluates_one(monitor))
"""
    )
    ended = run_python(code, tmp_path)

    assert ended.words == ["0"], ended.stderr
    assert statuses_in(tmp_path) == {"evaluated": 2}


def test_a_child_of_a_child_evaluates_and_its_records_are_written_once(tmp_path: Path) -> None:
    code = (
        FORKED
        + """
monitor = Monitor(Slow(), sample=1.0)
ask(monitor, "pending in the parent")
def work():
    ask(monitor, "pending in the child")
    in_child(lambda: evaluates_one(monitor))
    return monitor.flush()
in_child(work)
print(monitor.flush(), monitor.stats.evaluated)
"""
    )
    ended = run_python(code, tmp_path)

    assert ended.words == ["0", "0", "True", "1"], ended.stderr
    assert statuses_in(tmp_path) == {"evaluated": 3}


def test_a_forked_child_that_ends_by_itself_waits_for_its_own_records(tmp_path: Path) -> None:
    code = """
monitor = Monitor(Slow(), sample=1.0)
ask(monitor, "in the parent")
pid = os.fork()
if pid == 0:
    ask(monitor, "in the child")
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    ended = run_python(code, tmp_path)

    assert ended.words == ["0"], ended.stderr
    assert statuses_in(tmp_path) == {"evaluated": 2}


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_children_of_multiprocessing_wait_for_their_records(tmp_path: Path, warm: bool) -> None:
    code = f"""
import multiprocessing
monitor = Monitor(Slow(), sample=1.0)
def work(number):
    ask(monitor, f"{{number}} a", f"{{number}} b", f"{{number}} c")
if {warm}:
    ask(monitor, "before")
context = multiprocessing.get_context("fork")
children = [context.Process(target=work, args=(number,)) for number in range(4)]
for child in children:
    child.start()
for child in children:
    child.join(30)
print(*[child.exitcode for child in children])
"""
    ended = run_python(code, tmp_path)

    assert ended.words == ["0"] * 4, ended.stderr
    assert statuses_in(tmp_path) == {"evaluated": 12 + warm}


def test_children_of_multiprocessing_end_in_time_when_their_judge_hangs(tmp_path: Path) -> None:
    code = """
import multiprocessing
monitor = Monitor(Hanging(), sample=1.0, exit_timeout=2.0)
context = multiprocessing.get_context("fork")
child = context.Process(target=ask, args=(monitor, "a"))
child.start()
child.join(20)
print(child.exitcode)
"""
    ended = run_python(code, tmp_path)

    assert ended.words == ["0"], ended.stderr
    assert statuses_in(tmp_path) == {"shutdown": 1}


@pytest.mark.parametrize("threads", [1, 2])
def test_a_child_forked_with_a_warm_local_judge_evaluates(tmp_path: Path, threads: int) -> None:
    code = (
        FORKED
        + f"""
from claimspan import RagRecord, evaluate
from claimspan.judges import LocalJudge
judge = LocalJudge(threads={threads})
monitor = Monitor(judge, sample=1.0)
ask(monitor, "Ljubljana is the capital of Slovenia")
assert monitor.flush(30)
in_child(lambda: evaluates_one(monitor))
# Once more, and ended as an ordinary process: what it has inherited must not end it.
pid = os.fork()
if pid == 0:
    ask(monitor, "in another child")
    assert monitor.flush(10)
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    )
    ended = run_python(code, tmp_path)

    assert ended.words == ["0", "0"], ended.stderr
    assert statuses_in(tmp_path) == {"evaluated": 3}


def test_a_child_forked_with_warm_connections_of_the_judge_uses_its_own(tmp_path: Path) -> None:
    code = (
        FORKED
        + """
from claimspan.judges import OpenAIJudge
monitor = Monitor(OpenAIJudge("stub", base_url=os.environ["URL"]), sample=1.0)
ask(monitor, "before")
assert monitor.flush(20)
in_child(lambda: evaluates_one(monitor))
ask(monitor, "after")
print(monitor.flush(20), monitor.stats.evaluated)
"""
    )
    with judge_server() as server:
        ended = run_python(code, tmp_path, URL=server.url)

    assert ended.words == ["0", "True", "2"], ended.stderr
    assert statuses_in(tmp_path) == {"evaluated": 3}


def test_children_of_a_celery_worker_write_their_records_when_it_ends(tmp_path: Path) -> None:
    command = "-m celery -A exit_celery worker --pool prefork --concurrency 2 -l warning"
    worker = start(command.split(), tmp_path)
    send = "import exit_celery\nfor n in range(6): exit_celery.answer.delay(n)\nos._exit(0)"
    try:
        run_python(send, tmp_path)
        deadline = time.monotonic() + 40
        while len(list(tmp_path.glob("answered-*"))) < 6 and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        worker.terminate()
        ended = wait_for(worker)

    assert ended.code == 0, ended.stderr
    # One at the import of the worker; that of the sender ends with it.
    assert statuses_in(tmp_path) == {"evaluated": 7}
