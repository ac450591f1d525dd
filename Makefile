# What each target does is one line below; everything runs from .venv, which `make setup` makes.
# A requirement without a test fails `make check`; 1 lets it pass while a new part is being begun.
export REQUIREMENTS_ALLOW_MISSING ?= 0

PYTHON ?=
WORKERS ?= 2
RUN := .venv/bin/python
READY := .venv/.ready
CODE := src tests tools $(wildcard bench)
# Start-up time is part of what is tested and measured: without byte code every process would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup format check lint types layers docs docs-check test soak repeat demo bench install-check clean

help:           ## this list
	@grep -hE '^[a-z-]+: .*##' Makefile | sed 's/: *[^#]*## */\t/' | expand -t 16

setup: $(READY) ## make .venv with the pinned tools and the package, editable
$(READY): pyproject.toml tools/requirements-dev.txt tools/setup.sh
	PYTHON=$(PYTHON) tools/setup.sh

format: $(READY) ## let ruff format and repair what it can
	$(RUN) -m ruff format $(CODE)
	$(RUN) -m ruff check --fix $(CODE)

check: lint types layers docs-check ## everything that needs no test run: style, types for three platforms, layers, generated docs
lint: $(READY)  ## formatting and ruff with every rule
	$(RUN) -m ruff format --check $(CODE)
	$(RUN) -m ruff check $(CODE)
types: $(READY) ## mypy --strict as on Linux, macOS and Windows
	$(RUN) -m mypy --platform linux $(CODE)
	$(RUN) -m tools.foreign_types
layers: $(READY) ## who may import whom
	.venv/bin/lint-imports
docs: $(READY)  ## write the generated parts of docs/
	$(RUN) -m tools.generate
docs-check: $(READY) ## fail if the generated parts of docs/ are not what they would be now
	$(RUN) -m tools.generate --check

test: $(READY)  ## the suite, at most ten minutes on two cores
	$(RUN) -m pytest -n $(WORKERS) -m "not soak"
soak: $(READY)  ## the repeated and large cases
	$(RUN) -m pytest -m soak --timeout 1800
repeat: $(READY) ## the suite ten times in a row, then once with every core busy
	tools/repeat.sh 10
demo: $(READY)  ## show the promises on a small real project
	.venv/bin/proctor demo
bench: $(READY) ## measure, side by side with others
	$(RUN) -m bench
install-check: $(READY) ## install and run the package with each Python that is here
	tools/install_check.sh

clean:          ## remove what the targets above made
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
