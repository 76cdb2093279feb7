PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
EXTRAS := embedded,parquet,spark,java,oracle,mysql,kafka,avro,docs,dev

.DEFAULT_GOAL := help
.PHONY: help demo test check format bench clean

help: ## list what can be done
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## see it work: a database, changes, their documents, a backlog on Spark
	@$(BIN)/eventlog demo

test: $(READY) ## run the whole suite
	$(BIN)/python -m pytest

check: $(READY) ## lint, types, import contracts, documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=.:spark $(BIN)/lint-imports
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir $(VENV)/site

format: $(READY) ## put the source in its form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## measure the core; others: eventlog bench NAME
	$(BIN)/python -m eventlog bench core

clean: ## remove what was made here
	rm -rf $(VENV) build dist *.egg-info

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "eventlog needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@
