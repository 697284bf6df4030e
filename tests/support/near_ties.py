"""The bundled model with a bound of its own for the pairs that it reads twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol, cast

import numpy as np

from claimspan.judges.local.cross_encoder import CrossEncoder
from claimspan.judges.local.models import bundled_files

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["IN_8_BITS", "IN_32_BITS", "BoundedEncoder"]

IN_8_BITS: Final = 0.0
"""The bound with which no pair is read again."""

IN_32_BITS: Final = 1e9
"""The bound with which every pair is read again."""


class _Input(Protocol):
    name: str


class _Session(Protocol):
    def run(
        self, names: None, inputs: Mapping[str, NDArray[np.int64]]
    ) -> list[NDArray[np.float32]]: ...

    def get_inputs(self) -> list[_Input]: ...


class BoundedEncoder(CrossEncoder):
    """Reads those pairs again whose two largest logits differ by less than a bound."""

    def __init__(self, near: float) -> None:
        super().__init__(bundled_files(), known_bytes=0)
        self._session = _Bounded(self._session, near)


class _Bounded:
    """A session to which the bound is given beside every batch."""

    def __init__(self, session: _Session, near: float) -> None:
        self._wrapped = session
        # The other inputs are integers.
        bound = cast("NDArray[np.int64]", np.array(near, np.float32))
        self._near: Mapping[str, NDArray[np.int64]] = {"near": bound}

    def run(
        self, names: None, inputs: Mapping[str, NDArray[np.int64]]
    ) -> list[NDArray[np.float32]]:
        return self._wrapped.run(names, {**inputs, **self._near})

    def get_inputs(self) -> list[_Input]:
        return self._wrapped.get_inputs()
