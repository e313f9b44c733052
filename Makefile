# `make` alone lists the commands. Each sets up what it needs, once, in .venv (and .venv-spark35); nothing else is touched.

PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help demo stream-demo test nightly lint pure slow bench figures notebook wheel env env-spark35 both clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: env  ## publish a real table: the guarantee, the solver's choice, the audit, and where the release lies
	@$(BIN)/python jobs/demo.py

stream-demo: env  ## publish the same table as it arrives, batch after batch, and audit the stream
	@$(BIN)/python jobs/stream_demo.py

test: both  ## style, types, import contracts, tests on the newest Spark, those that versions may change on Spark 3.5
	@$(BIN)/python scripts/check.py all

nightly: both  ## as test, in many more ways and with more random tables, and all of the engine's tests on Spark 3.5
	@ANONLIB_THOROUGH=1 $(BIN)/python scripts/check.py nightly

lint: env  ## style, types and import contracts only
	@$(BIN)/python scripts/check.py lint

pure: env  ## the quick tests that need no Spark, while you work
	@$(BIN)/python scripts/check.py pure

slow: env  ## the long statistical, cluster and scale tests
	@JAVA_HOME=$$($(BIN)/python -m anonlib.engine.java) $(BIN)/python -m pytest -m slow tests

bench: env  ## every benchmark in turn: ratios and machine facts (hours at full size)
	@$(BIN)/python -m benchmarks

figures: env  ## the papers' figures and tables, measured on smaller samples, judged and drawn into docs/figures (some ten minutes)
	@$(BIN)/python -m benchmarks.figures

notebook: env  ## run the notebooks from beginning to end
	@set -e; for notebook in notebooks/*.py; do echo "$$notebook"; $(BIN)/python "$$notebook"; done

wheel: env  ## build the wheel, with jobs, examples and docs in it, into dist/
	@$(BIN)/python scripts/build_wheel.py dist

env:  ## set up .venv (newest Spark)
	@$(PYTHON) scripts/setup_env.py .venv

both:
	@$(PYTHON) scripts/setup_env.py .venv .venv-spark35

env-spark35:  ## set up .venv-spark35 (Spark 3.5)
	@$(PYTHON) scripts/setup_env.py .venv-spark35

clean:  ## remove the environments and everything that was made here
	rm -rf .venv .venv-spark35 demo build dist *.egg-info .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .grimp_cache \
	  spark-warehouse metastore_db derby.log benchmarks/results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
