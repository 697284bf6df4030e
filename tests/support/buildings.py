"""Facts on three buildings, with a question and its answer, for the tests of every framework."""

from __future__ import annotations

from typing import Final

__all__ = ["FACTS", "HIGH", "TOWER"]

TOWER: Final = "How high is the tower?"
HIGH: Final = "The tower is 330 metres high, by the newest measurement."

FACTS: Final = [
    "The tower in Paris is 330 metres high since an antenna was added to it in March 2022.",
    "The bridge at Millau was opened in December 2004 and carries a motorway over the Tarn.",
    "The tunnel under the Channel took six years to dig and was opened to trains in 1994.",
]
