"""The local judge: a small cross-encoder on the CPU, combined with the lexical judge.

- ``judge``: ``LocalJudge``, which decides what is read, runs it off the event loop, and combines.
- ``windows``: selects the parts of a long reference that the cross-encoder reads for a claim.
- ``cross_encoder``: runs an ONNX model with onnxruntime and returns the logits of text pairs.
- ``known_logits``: remembers the logits of pairs, so that a pair is computed once for many records.
- ``shared_reads``: reads the pairs of all records that are judged at once in common batches.
- ``features``: turns the lexical verdict and the logits into the features of one cell.
- ``regression``: turns those features into a calibrated verdict.
- ``pretrained``: finds the files of a model by others, in a folder or on the Hugging Face hub.
- ``bundled``: finds the bundled model; its weights are the package ``claimspan_local_weights``.
- ``language``: detects texts that the bundled English model cannot read.
"""

from __future__ import annotations

from claimspan.judges.local.judge import LocalJudge

__all__ = ["LocalJudge"]
