PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYTHON VENV

# What each environment holds, as extras of pyproject.toml. The types are checked against what the tests import.
DEMO := embedded,spark,java
TEST := $(DEMO),oracle,mysql,kafka,avro,informix,otel,lake,iceberg,test
CHECK := $(TEST),check

PYTEST = $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-changed mutants check chaos simulate format bench bench-scale release pins clean

help: ## list what can be done
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.$(if $(findstring --without-spark,$(ARGS)),demo-without-spark,demo) ## see it work: a database, changes, their documents, a backlog on Spark; without it: ARGS=--without-spark
	@$(BIN)/eventlog demo $(ARGS)

test: $(VENV)/.test ## run the quick tests, or TESTS="tests/core tests/cli/test_cli.py"; in one process TESTS="-n 0"
	$(PYTEST) $(TESTS)

test-all: $(VENV)/.test ## run all tests but the nightly ones, on the servers at hand, with more examples
	$(PYTEST) --tiers all $(TESTS)

test-changed: $(VENV)/.test ## run the quick tests nearest to what differs from SINCE (HEAD)
	files=$$($(BIN)/python -m tests.project.changed $(or $(SINCE),HEAD)) && $(PYTEST) $$files $(TESTS)

mutants: $(VENV)/.test ## plant small faults, one at a time, and see whether the quick tests find them; ARGS="core xds" for some rooms
	$(BIN)/python -m tests.mutants $(ARGS)

chaos: $(VENV)/.test ## everything goes wrong at once, a minute on each database; longer: ARGS="--seconds 3600 --seed 7"
	$(BIN)/python -m tests.laws.chaos $(ARGS)

simulate: $(VENV)/.test ## search orders of events, ten minutes, by seeds; ARGS="--seconds 60 --seed 7", or one seed: ARGS="--seed 7 --runs 1"
	$(BIN)/python -m tests.laws.simulate $(ARGS)

check: $(VENV)/.check ## lint, types, import contracts, documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=.:spark $(BIN)/lint-imports
	$(BIN)/python -m tests.project.prose
	$(BIN)/python -m tests.project.names
	.githooks/subjects
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir $(VENV)/site

format: $(VENV)/.check ## put the source in its form, and make generated pages anew
	$(BIN)/python -m tests.project.generated
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.test ## measure everything, five times, into build/bench; ARGS=--quick takes ten minutes; BESIDE=folder of another version; peers, too, where EVENTLOG_PEERS names a folder for them
	$(BIN)/python -m eventlog bench report -o build/bench $(if $(BESIDE),--beside $(BESIDE)) $(ARGS)

bench-scale: $(VENV)/.test ## the same with the largest sizes, once each: hours
	$(BIN)/python -m eventlog bench report -o build/bench-scale --scale $(ARGS)

release: $(VENV)/.check ## make what a release consists of in dist/, try it, and print what is left to do: VERSION=0.1.0
	.ci/release $(VERSION)

pins: ## resolve constraints.txt anew, for all Pythons at once (needs uv)
	uv pip compile --universal --python-version 3.11 --all-extras --upgrade \
	  --no-header --no-annotate --quiet pyproject.toml -o constraints.txt

clean: ## remove what was made here
	rm -rf $(VENV) build dist *.egg-info

$(VENV)/.demo: EXTRAS := $(DEMO)
$(VENV)/.demo-without-spark: EXTRAS := embedded
$(VENV)/.test: EXTRAS := $(TEST)
$(VENV)/.check: EXTRAS := $(CHECK)
$(VENV)/.%: pyproject.toml constraints.txt
	@.ci/environment $(*:-without-spark=) "$(EXTRAS)"
	@[ $(*:-without-spark=) = demo ] || git config core.hooksPath .githooks 2> /dev/null || true
	@touch $@
