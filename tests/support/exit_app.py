"""A web application that answers by hand or by a LangChain pipeline, as ASGI and as WSGI."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping

from claimspan_tracing import Monitor, install_sigterm

from exit_judges import Slow, ask

__all__ = ["asgi", "wsgi"]

# With its first call still under way when the process is told to end.
_monitor = Monitor(Slow(0.5), sample=1.0)

if "LANGCHAIN" in os.environ:  # takes a second for each process that imports it
    from claimspan_langchain import ClaimspanCallbackHandler

    from lc_pipelines import rag_chain

    _chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(_monitor)])

    def _answer(query: str) -> str:
        return _chain.invoke(query)

    async def _aanswer(query: str) -> str:
        return await _chain.ainvoke(query)

else:

    def _answer(query: str) -> str:
        ask(_monitor, query)
        return "answered"

    async def _aanswer(query: str) -> str:
        await asyncio.sleep(0)
        return _answer(query)


if "ASK_AT_IMPORT" in os.environ:  # so that a server that forks has warm threads before it does
    _answer("at import")

if "SIGTERM" in os.environ:
    install_sigterm()


async def asgi(
    scope: Mapping[str, str],
    receive: Callable[[], Awaitable[Mapping[str, object]]],
    send: Callable[[Mapping[str, object]], Awaitable[None]],
) -> None:
    """Answer a request."""
    if scope["type"] == "lifespan":
        raise RuntimeError("this application needs no start and no end")
    answer = await _aanswer(scope["path"])
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": answer.encode()})


def wsgi(
    environ: Mapping[str, str], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    """Answer a request; ``/alive`` is answered without asking the pipeline."""
    asks = environ["PATH_INFO"] != "/alive"
    answer = _answer(environ["PATH_INFO"]) if asks else "alive"
    start_response("200 OK", [("Content-Length", str(len(answer.encode())))])
    return [answer.encode()]
