"""The process that serves the model until its standard input is closed.

The parent process holds the other end of that pipe. The operating system closes the pipe even if
the parent is killed, so the server never outlives its parent.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, Protocol, cast

import xllamacpp  # type: ignore[import-untyped]  # a compiled module without stubs

__all__ = ["CONTEXT_TOKENS", "main"]

CONTEXT_TOKENS: Final = 4096
"""Context length. A prompt with three passages has about 1 000 tokens; more costs memory."""


class _Named(Protocol):
    path: str


class _Cpu(Protocol):
    n_threads: int


class _Params(Protocol):
    """The parameters of llama.cpp that this module sets."""

    model: _Named
    model_alias: set[str]
    cpuparams: _Cpu
    cpuparams_batch: _Cpu
    hostnames: list[str]
    port: int
    antiprompt: list[str]
    n_ctx: int
    n_parallel: int
    cache_prompt: bool
    cache_ram_mib: int
    ui: bool
    endpoint_slots: bool


class _Server(Protocol):
    listening_address: str


class _Engine(Protocol):
    """The part of `xllamacpp` that this module uses; the package has no type stubs."""

    CommonParams: Callable[[], _Params]
    Server: Callable[[_Params], _Server]


def main(gguf: str, alias: str, threads: int) -> None:
    """Serve one model on loopback, print its address, and wait until standard input is closed."""
    server = cast(_Engine, xllamacpp).Server(_parameters(gguf, alias, threads))
    print(server.listening_address, flush=True)
    sys.stdin.buffer.read()


def _parameters(gguf: str, alias: str, threads: int) -> _Params:
    params = cast(_Engine, xllamacpp).CommonParams()
    params.model.path = gguf
    params.model_alias = {alias}
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.hostnames, params.port = ["127.0.0.1"], 0  # 0: any free port
    params.n_ctx, params.n_parallel = CONTEXT_TOKENS, 1
    # A cached prompt would make an answer depend on the question before it.
    params.cache_prompt, params.cache_ram_mib = False, 0
    # A model this small does not stop by itself: only its first paragraph is an answer.
    params.antiprompt = ["\n\n"]
    params.ui = params.endpoint_slots = False
    return params


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
