"""Functions that `claimspan run` is called with, as `run_functions.py:NAME`.

They load no framework, which takes seconds.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pipelines import answer_to, passages_for

print("a word at import")

nothing = 7


def broken_factory() -> object:
    raise RuntimeError("no index here")


def with_chunks(query: str) -> tuple[str, list[str]]:
    """Return the answer with its chunks, and print as scripts do."""
    print("asking", query)
    return answer_to(query), [passage.text for passage in passages_for(query)]


async def mapping(query: str) -> Mapping[str, object]:
    await asyncio.sleep(0)
    chunks = [{"text": p.text, "id": p.id, "score": p.score} for p in passages_for(query)]
    return {"answer": answer_to(query), "contexts": chunks}


def text_alone(query: str) -> str:
    return answer_to(query)


def no_answer(query: str) -> object:
    return 7


def misbehaving(query: str) -> tuple[str, list[str]]:
    """Fail for some questions, each in another way; `WELL` makes it answer them all."""
    if "WELL" not in os.environ:
        match query:
            case "q1":
                raise ValueError("swordfish")
            case "q2":
                threading.Event().wait()
            case "q3":
                sys.exit(3)
            case _:
                pass
    return with_chunks(query)


def hanging_in_a_pool(query: str) -> tuple[str, list[str]]:
    """Hang for one question, on a thread that the interpreter waits for at its end."""
    if query == "q1":
        _pool.submit(threading.Event().wait).result()
    return with_chunks(query)


_pool = ThreadPoolExecutor()


async def hanging(query: str) -> str:
    await asyncio.Event().wait()
    return query


_importer = threading.get_ident()
_busy = threading.Lock()


def not_thread_safe(query: str) -> tuple[str, list[str]]:
    """Fail on any other thread than that which has imported this module, as SQLite does."""
    if threading.get_ident() != _importer:
        raise RuntimeError("another thread")
    if not _busy.acquire(blocking=False):
        raise RuntimeError("two at once")
    with_chunks(query)
    _busy.release()
    return with_chunks(query)


def slow(query: str) -> tuple[str, list[str]]:
    """Note each question in the file `ASKED`, and take a while for it."""
    with Path(os.environ["ASKED"]).open("a", encoding="utf-8") as file:
        file.write(f"{query}\n")
    if query not in {"q0", "q1"} and "WELL" not in os.environ:
        time.sleep(60)
    return with_chunks(query)
