.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PEERS := $(VENV)/peers/.installed
# The sandbox starts its own services; nothing of a caller's Airflow may leak in.
unexport AIRFLOW_HOME

##@ Look at it
.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(INSTALLED) ## Watch a real Airflow delete a real bucket's expired objects (about a minute)
	@$(BIN)/python -m sandbox.demo

.PHONY: sandbox
sandbox: $(INSTALLED) ## Start Postgres, S3 and Airflow with the policies of include/policies, until Ctrl-C
	@$(BIN)/python -m sandbox

##@ Use it
.PHONY: policies
policies: $(INSTALLED) ## Check the policy files
	@PYTHONPATH=plugins $(BIN)/python -m s3_retention policies

.PHONY: migrate
migrate: $(INSTALLED) ## Apply the ledger schema: S3_RETENTION_LEDGER_CONNINFO=... make migrate
	@PYTHONPATH=plugins $(BIN)/python -m s3_retention migrate

##@ Change it
.PHONY: test
test: $(INSTALLED) ## Run every test, on real services
	@$(BIN)/python -m pytest -n 2 --dist loadgroup

.PHONY: test-unit
test-unit: $(INSTALLED) ## Run the tests that need no service (seconds)
	@$(BIN)/python -m pytest -n 2 tests/unit

.PHONY: test-long
test-long: $(INSTALLED) ## Run the properties, the state machine of time and the faults by chance with many more examples
	@S3_RETENTION_TEST_LONG=1 $(BIN)/python -m pytest -n 2 -m hypothesis --timeout 3600 tests/unit tests/integration
	@S3_RETENTION_TEST_LONG=1 $(BIN)/python -m pytest tests/faults/test_random_faults.py
	@S3_RETENTION_TEST_LONG=1 $(BIN)/python -m pytest -n 2 tests/integration/test_reattach.py

.PHONY: chaos
chaos: $(INSTALLED) ## Kill and stop a real process ten times at every seam, and show what was lost (about half an hour)
	@$(BIN)/python -m tests.faults.chaos $(ARGS)

.PHONY: bench
bench: $(INSTALLED) $(PEERS) ## Measure the package against its peers, to 10 million ledger rows (about an hour, quiet machine)
	@$(BIN)/python -m benchmarks $(ARGS)

.PHONY: bench-quick
bench-quick: $(INSTALLED) $(PEERS) ## Measure 100,000 objects alone (under 10 minutes)
	@$(BIN)/python -m benchmarks --quick $(ARGS)

.PHONY: coverage
coverage: $(INSTALLED) ## Run unit and integration tests and show the lines that none reaches
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --cov --cov-report=term tests/unit tests/integration tests/faults

.PHONY: lint
lint: $(INSTALLED) ## Run ruff, mypy, import-linter and sqlfluff
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=plugins:. $(BIN)/lint-imports
	@$(BIN)/sqlfluff lint --processes 2 --disable-progress-bar include/sql/migrations include/sql/queries include/sql/optional

.PHONY: format
format: $(INSTALLED) ## Format Python and SQL
	@$(BIN)/ruff check --fix --exit-zero .
	@$(BIN)/ruff format .
	@$(BIN)/sqlfluff fix --processes 2 --disable-progress-bar include/sql/migrations include/sql/queries include/sql/optional

.PHONY: snapshot
snapshot: $(INSTALLED) ## Write include/sql/schema.sql, include/policies/policy.schema.json and the tables of docs/stores.md anew
	@$(BIN)/python -m sandbox.snapshot
	@PYTHONPATH=plugins $(BIN)/python -m s3_retention policy-schema > include/policies/policy.schema.json
	@PYTHONPATH=plugins:. $(BIN)/python -m tests.stores_page

.PHONY: requirements
requirements: $(INSTALLED) ## Pin requirements.txt and requirements-dev.txt for Python 3.10 to 3.13
	@for set in requirements requirements-dev; do \
		$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --no-emit-index-url --no-annotate \
			--custom-compile-command "make requirements" $(ARGS) $$set.in --output-file $$set.txt || exit 1; \
	done

.PHONY: clean
clean: ## Remove the virtual environment and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(INSTALLED): requirements-dev.txt
	@echo "Installing packages into $(VENV) (once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python --requirement requirements-dev.txt || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-dev.txt
	@touch $@

$(PEERS): $(INSTALLED) benchmarks/requirements.txt
	@echo "Installing the peers of the benchmark into $(VENV)/peers (once)"
	@test -x $(VENV)/peers/bin/python || $(PYTHON) -m venv $(VENV)/peers
	@$(BIN)/uv pip install --quiet --system-certs --python $(VENV)/peers/bin/python \
		--requirement benchmarks/requirements.txt || \
		$(VENV)/peers/bin/python -m pip install --quiet --disable-pip-version-check --requirement benchmarks/requirements.txt
	@touch $@
