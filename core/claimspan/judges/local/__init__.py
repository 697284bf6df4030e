"""The local judge: a small cross-encoder on the CPU, combined with the lexical judge.

- ``judge``: ``LocalJudge``, which decides what is read, runs it off the event loop, and combines.
- ``reading``: selects the parts of a reference that are read for a claim, and turns logits and the
  lexical verdict into a calibrated one.
- ``shared_reads``: reads the pairs of all records that are judged at once in common batches.
- ``cross_encoder``: runs an ONNX model with onnxruntime, and remembers the logits of text pairs.
- ``background``: the thread on which it runs; keeps native code apart from forks and exits.
- ``models``: finds the bundled model, whose weights are the package ``claimspan_local_weights``, or
  one by others in a folder or on the Hugging Face hub.
"""

from __future__ import annotations

from claimspan.judges.local.judge import LocalJudge

__all__ = ["LocalJudge"]
