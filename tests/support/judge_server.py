"""A server with OpenAI's protocol that replies as a judge model does, or misbehaves.

Claims are the sentences of a text, and a claim is supported where a reference has 60 % of its long
words: as the stub of the peers' measurements does it, so that counts compare. A test can put its
own ``behave`` in place of the answer, down to the bytes on the wire.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import os
import re
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from claimspan.text.tokens import count_tokens

__all__ = [
    "Behaviour",
    "Exchange",
    "JudgeServer",
    "completion",
    "judge_server",
    "reply_to",
    "text_of",
]

Json = dict[str, JsonValue]

ENDPOINTS: Final = ("/chat/completions", "/messages", "/converse")
"""The ends of the paths at which models are asked: OpenAI's, Anthropic's, Bedrock's."""


class Exchange:
    """One request and the connection that its response goes to."""

    def __init__(
        self,
        number: int,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        out: asyncio.StreamWriter,
    ) -> None:
        self.number: Final = number
        """Number of the request at this server, from 1."""
        self.path: Final = path
        self.headers: Final = headers
        self.text: Final = body.decode()
        self.request: Final[Json] = json.loads(body or b"{}")
        self.out: Final = out

    @property
    def messages(self) -> list[str]:
        """Contents of the messages, system prompt first."""
        messages = self.request["messages"]
        assert isinstance(messages, list)
        return [str(each["content"]) for each in messages if isinstance(each, dict)]

    @property
    def asked(self) -> dict[str, dict[str, str]]:
        """The JSON object of the user message."""
        material: dict[str, dict[str, str]] = json.loads(self.messages[1])
        return material

    @property
    def schema(self) -> Json:
        """The JSON schema of the reply."""
        form = self.request["response_format"]
        assert isinstance(form, dict)
        inner = form["json_schema"]
        assert isinstance(inner, dict)
        schema = inner["schema"]
        assert isinstance(schema, dict)
        return schema

    async def send(
        self, body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Sends a complete HTTP response."""
        lines = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        lines |= headers or {}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.out.write(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body)
        await self.out.drain()

    async def send_json(self, value: JsonValue, **options: int) -> None:
        await self.send(json.dumps(value).encode(), **options)  # type: ignore[arg-type] # status only

    async def reply(self, content: str | None, **choice: JsonValue) -> None:
        """Sends a chat completion with this content."""
        await self.send_json(completion(content, **choice))


Behaviour = Callable[[Exchange], Awaitable[None]]


def completion(content: str | None, **choice: JsonValue) -> Json:
    """A chat completion in the form of the protocol."""
    message: Json = {"role": "assistant", "content": content}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message, **choice}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


# --- a small judge -------------------------------------------------------------------------------


def reply_to(asked: Mapping[str, Mapping[str, str]]) -> str:
    """The right reply to a user message."""
    return json.dumps({"call": asked["call"], **_answer(asked)}, separators=(",", ":"))


def _answer(asked: Mapping[str, Mapping[str, str]]) -> Json:
    if "sentences" in asked:
        claims: list[JsonValue] = [
            {"sentence": int(number), "text": text} for number, text in asked["sentences"].items()
        ]
        return {"claims": claims}
    if "criteria" in asked:
        return {
            "grades": [_grade(*each, str(asked["answer"])) for each in asked["criteria"].items()]
        }
    words = {each: _long_words(text_of(given)) for each, given in asked["references"].items()}
    if "together" in asked:
        passages = (given for given in asked["references"].values() if isinstance(given, list))
        words[str(asked["together"])] = _long_words(" ".join(map(text_of, passages)))
    rows: list[JsonValue] = []
    for claim, text in asked["claims"].items():
        wanted = _long_words(text)
        labels: list[JsonValue] = [
            f"{each}:{'E' if wanted and len(wanted & known) / len(wanted) >= 0.6 else 'N'}"
            for each, known in words.items()
        ]
        rows.append({"claim": claim, "labels": labels})
    return {"verdicts": rows}


def _grade(criterion: str, given: JsonValue, answer: str) -> JsonValue:
    """The highest grade of a statement that has a long word of the answer, else the lowest."""
    assert isinstance(given, dict)
    lowest, highest = (
        ("no", "yes") if given["grades"] == "yes, no" else ("1", str(given["grades"])[5:])
    )
    shared = sorted(_long_words(str(given["statement"])) & _long_words(answer))
    reason = f"It speaks of {shared[0]}." if shared else "It speaks of nothing like that."
    return {"criterion": criterion, "reason": reason, "grade": highest if shared else lowest}


def text_of(given: JsonValue) -> str:
    """The text of a reference: a text, a passage with its rank, or several passages."""
    if isinstance(given, list):
        return " ".join(text_of(each) for each in given if not isinstance(each, int))
    return str(given)


def _long_words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{5,}", text.lower()))


# --- the server ----------------------------------------------------------------------------------


def _cl100k() -> Callable[[str], int] | None:
    """The tokenizer of the peers' measurements, if its tables are there: LlamaIndex ships them."""
    tables = os.environ.get("TIKTOKEN_CACHE_DIR")
    if tables is None and (found := find_spec("llama_index")) and found.submodule_search_locations:
        root = Path(next(iter(found.submodule_search_locations)))
        tables = str(root / "core" / "_static" / "tiktoken_cache")
    if tables is None or not Path(tables).is_dir():
        return None
    os.environ["TIKTOKEN_CACHE_DIR"] = tables
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")
    return lambda text: len(encoding.encode(text, disallowed_special=()))


TOKENIZER: Final = _cl100k()


class JudgeServer:
    """A server on loopback that counts requests and tokens."""

    def __init__(self, *, latency: float = 0.0, malformed_every: int = 0) -> None:
        self.latency = latency
        self.malformed_every = malformed_every
        """Every n-th reply is a refusal in prose; 0 for none."""
        self.behave: Behaviour = self.answer
        self.url = ""
        self.exchanges: list[Exchange] = []
        self.active = 0
        self.connections = 0
        """Connections that are open."""
        self.reset()

    def reset(self) -> None:
        # ``active`` stays: the handler of a request whose response has arrived may still run.
        self.calls = self.malformed = self.most_active = 0
        self.prompt_tokens = self.completion_tokens = 0
        self.kinds: collections.Counter[str] = collections.Counter()
        self.exchanges.clear()

    def sent(self, field: str) -> set[str | int | float]:
        """The values that a field has had in the requests."""
        values = (each.request.get(field) for each in self.exchanges)
        return {each for each in values if isinstance(each, str | int | float)}

    @property
    def stats(self) -> Json:
        return {
            "calls": self.calls,
            "malformed": self.malformed,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "most_active": self.most_active,
            **self.kinds,
        }

    async def answer(self, exchange: Exchange) -> None:
        """Sends the right reply after the latency."""
        begin = time.monotonic()
        count = TOKENIZER or count_tokens
        sent = count("\n".join(exchange.messages)) + count(json.dumps(exchange.schema))
        content = reply_to(exchange.asked)
        if self.malformed_every and exchange.number % self.malformed_every == 0:
            self.malformed += 1
            content = "I am sorry, but I cannot help with that request."
        got = count(content)
        self.prompt_tokens += sent
        self.completion_tokens += got
        kinds = {"sentences": "extract", "criteria": "grade", "claims": "check"}
        self.kinds[next(kinds[each] for each in kinds if each in exchange.asked)] += 1
        body = completion(content)
        body["usage"] = {
            "prompt_tokens": sent,
            "completion_tokens": got,
            "total_tokens": sent + got,
        }
        await asyncio.sleep(max(0.0, self.latency - (time.monotonic() - begin)))
        await exchange.send_json(body)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            # The end of the server cancels this: a client may keep its connection open.
            with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                while True:
                    await self._exchange(reader, writer)
        finally:
            self.connections -= 1
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1")
        first, *lines = head.split("\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines if ":" in line)
        }
        path = first.split(" ")[1]
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if not path.partition("?")[0].endswith(ENDPOINTS):
            await self._control(path, writer)
            return
        self.calls += 1
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        exchange = Exchange(self.calls, path, headers, body, writer)
        self.exchanges.append(exchange)
        try:
            await self.behave(exchange)
        finally:
            self.active -= 1

    async def _control(self, path: str, writer: asyncio.StreamWriter) -> None:
        """Serves ``/stats`` and ``/reset/LATENCY/MALFORMED_EVERY``; both return the counts."""
        stats = self.stats
        if path.startswith("/reset"):
            _, _, latency, every = path.split("/")
            self.latency, self.malformed_every = float(latency), int(every)
            self.reset()
        await Exchange(0, path, {}, b"", writer).send_json(stats)


@contextmanager
def judge_server(*, latency: float = 0.0, malformed_every: int = 0) -> Generator[JudgeServer]:
    """Runs a server in a thread of this process during the block."""
    server = JudgeServer(latency=latency, malformed_every=malformed_every)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="judge-server", daemon=True)
    thread.start()
    listening = asyncio.run_coroutine_threadsafe(_listen(server, 0), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(_stop(listening), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _listen(server: JudgeServer, port: int) -> asyncio.Server:
    listening = await asyncio.start_server(
        server.serve, "127.0.0.1", port, limit=2**24, backlog=1024
    )
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    return listening


async def _stop(listening: asyncio.Server) -> None:
    listening.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _main(seconds: float, latency: float) -> None:
    server = JudgeServer(latency=latency)
    listening = await _listen(server, 0)
    print(server.url, flush=True)
    async with listening:
        await asyncio.sleep(seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--latency", type=float, default=0.3)
    options = parser.parse_args()
    asyncio.run(_main(options.seconds, options.latency))
