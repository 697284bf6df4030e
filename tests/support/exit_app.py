"""A web application that answers by a LangChain pipeline, as ASGI and as WSGI."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor, install_sigterm

from exit_judges import Slow
from lc_pipelines import rag_chain

__all__ = ["asgi", "wsgi"]

# With its first call still under way when the process is told to end.
_monitor = Monitor(Slow(0.5), sample=1.0)
_handler = ClaimspanCallbackHandler(_monitor)

if "ASK_AT_IMPORT" in os.environ:  # so that a server that forks has warm threads before it does
    rag_chain().invoke("at import", {"callbacks": [_handler]})

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
    answer = await rag_chain().ainvoke(scope["path"], {"callbacks": [_handler]})
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": answer.encode()})


def wsgi(
    environ: Mapping[str, str], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    """Answer a request; ``/alive`` is answered without asking the pipeline."""
    asks = environ["PATH_INFO"] != "/alive"
    answer = (
        rag_chain().invoke(environ["PATH_INFO"], {"callbacks": [_handler]}) if asks else "alive"
    )
    start_response("200 OK", [("Content-Length", str(len(answer.encode())))])
    return [answer.encode()]
