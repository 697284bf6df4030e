"""Answers of workflows that return the stream of a model: they end with what the model has said."""

from __future__ import annotations

import weakref
from typing import Final

from llama_index.core.llms.llm import LLM

from claimspan_llama_index._snapshots import Call, Said
from claimspan_llama_index._streams import StreamedAnswer, hold_open
from claimspan_tracing.adapters import Capture, Run

__all__ = ["AwaitedModels"]

_STREAMS: Final = ".stream_"
"""Part of the name of a run that streams: what a model calls while another stream of it is read."""


class AwaitedModels:
    """The models that still say what a root has returned already.

    A stream that stands within the event of a workflow cannot be exchanged for one that we follow,
    and the user may have put a generator of their own around it. The model tells when it is read.
    """

    __slots__ = ("_answers", "_capture")

    def __init__(self, capture: Capture) -> None:
        """Wait for no model yet."""
        self._capture = capture
        self._answers: dict[object, StreamedAnswer] = {}

    def hold(self, id_: str, stream: object) -> bool:
        """Keep a root open that has returned a stream, until the model has ended.

        Args:
            id_: The root.
            stream: What it has returned; the root fails where it is dropped before its end.

        Returns:
            False where the run is no root, or no model below it is still speaking.
        """
        run = self._capture.run(id_)
        model = None if run is None or run.parent is not None else _still_speaking(run)
        if model is None:
            return False
        answer = StreamedAnswer(self._capture)
        if not hold_open(answer, id_):
            return False
        self._answers[model.id] = answer
        dropped = weakref.finalize(stream, self.fail, model.id, GeneratorExit())
        dropped.atexit = False  # at exit the monitor ends what is open
        return True

    def end(self, model_id: object, said: object) -> None:
        """End the root whose stream a model has completed.

        Args:
            model_id: The model's run; any other run is ignored.
            said: What it has said.
        """
        answer = self._answers.pop(model_id, None)
        if answer is not None:
            answer.parts.append(said.text if isinstance(said, Said) else "")
            answer.end()

    def fail(self, model_id: object, error: BaseException) -> None:
        """Fail the root whose stream a model has not completed."""
        answer = self._answers.pop(model_id, None)
        if answer is not None:
            answer.fail(error)

    def speaking(self, instance: object, name: str) -> str | None:
        """Return the run of a model that is being read, of which another run is a part.

        Models of one's own stream asynchronously by their synchronous stream, which is called when
        the first part is read: then no span is open any more.

        Args:
            instance: The object whose method was called, without an open span around it.
            name: Name of the run.

        Returns:
            None where it is none, or where several streams of the same object are being read.
        """
        if not self._answers or _STREAMS not in name:
            return None
        # A copy: another thread may begin or end a stream meanwhile.
        runs = [run for id_ in tuple(self._answers) if (run := self._capture.run(id_))]
        found = [str(run.id) for run in runs if _instance(run) is instance]
        return found[0] if len(found) == 1 else None


def _still_speaking(root: Run) -> Run | None:
    """The last model below a root that has returned its stream, and nothing of it so far."""
    # By the object: a model of one's own that only passes its synchronous stream on is a chain.
    runs = (run for run in reversed(root.tree.runs) if isinstance(_instance(run), LLM))
    return next((run for run in runs if run.end and run.outputs is None and not run.error), None)


def _instance(run: Run) -> object:
    return run.inputs.instance if isinstance(run.inputs, Call) else None
