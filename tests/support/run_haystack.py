"""A pipeline of Haystack that `claimspan run` is called with, as `run_haystack.py:pipeline`."""

from __future__ import annotations

import hs_pipelines

pipeline = hs_pipelines.rag_pipeline()
