# Everything a contributor does is one of these targets; `make` alone lists them.
# Needed beforehand: Python 3.11 or newer, and make. All else is installed into VENV.

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --retries 10 --timeout 60
ROWS ?= 1000000
SCALE ?= 200000000
STATEMENTS ?= 200000
REPORT ?= build/bench
BENCH ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow test-matrix fuzz lint format bench scale docs picture clean

help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create the virtual environment and install everything, Spark included

# An environment that works is kept, unless PYTHON names an interpreter; what an interrupted run has left is cleared away.
# The first interpreter that is new enough makes it. `python3` is tried first: it is the one the user chose.
$(STAMP): pyproject.toml
	@if [ -z '$(PYTHON)' ] && $(BIN)/python -m pip --version >/dev/null 2>&1; then exit 0; fi; \
	for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.14 python; do \
	  if command -v $$candidate >/dev/null 2>&1 \
	    && $$candidate -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    echo "Creating $(VENV) with $$($$candidate --version)"; \
	    exec $$candidate -m venv --clear $(VENV); \
	  fi; \
	done; \
	echo "Remuda needs Python 3.11 or newer, with venv, and found none. Install one, or name it: make setup PYTHON=/path/to/python3" >&2; \
	exit 1
	$(INSTALL) --upgrade pip
	$(INSTALL) --editable '.[all,bench,docs,dev]'
	@touch $(STAMP)

demo: setup ## Show the engine on a million rows, plain Spark beside it (ROWS=n for another size)
	@$(BIN)/python -m remuda.cli demo --rows $(ROWS)

test: setup ## Run the tests, but for the slow ones
	$(BIN)/python -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadgroup

test-slow: setup ## Run all tests, the slow ones too (TPC-DS, whose data is fetched), with many more random cases, and measure coverage
	$(BIN)/python -m pytest -m "slow or not slow" --hypothesis-profile=thorough --timeout=1800 --cov --cov-report=term:skip-covered

test-matrix: ## Run the tests on every supported Python that is found, with and without Spark
	.ci/matrix

fuzz: setup ## Compare random statements with DuckDB (STATEMENTS=n for another number)
	$(BIN)/python -m tests.harness.campaign --statements $(STATEMENTS)

lint: setup ## Check style, formatting, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## Put imports and layout in order, wrap Markdown, index the decision notes
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format
	$(BIN)/python -m tests.harness.markdown

bench: setup ## Measure Remuda beside its peers and write a report (ROWS=n, REPORT=docs, BENCH=--quick)
	$(BIN)/remuda bench --rows $(ROWS) --report $(REPORT) $(BENCH)

scale: setup ## Load up to 200 million rows through Spark with 1 GB each, and measure how it grows (SCALE=n; takes an hour)
	$(BIN)/python -m benchmarks scale --rows $(SCALE)

docs: setup ## Build the documentation site in build/docs; a warning is an error
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --jobs auto docs build/docs
	@echo "Open build/docs/index.html"

picture: setup ## Draw the plan of the README anew
	$(BIN)/python examples/explain_picture.py docs/images/explain.svg

clean: ## Remove the virtual environment and all caches
	rm -rf $(VENV) .venv-matrix .coverage .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
