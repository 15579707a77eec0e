# `make demo` and `make test` on a fresh clone set everything up; the second time they only run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV_READY := $(VENV)/.dev-ready
DOCS_READY := $(VENV)/.docs-ready
# The versions that are tested; pyproject.toml has the ranges.
INSTALL := $(BIN)/pip install --quiet --constraint constraints.txt
# Models that a short training makes of the common start.
SHORT := source ttt-plus ttt clust3 ncttt

.PHONY: demo test test-network test-browser check results-check docs docs-check package format clean
.PHONY: zoo zoo-digits zoo-start $(SHORT:%=zoo-%) zoo-ttt-flow zoo-vit-ttt-mae

demo: $(READY)
	$(BIN)/ncttt demo

# One thread a process: two processes with two threads each, on two cores, wait for each other most of the time.
test test-network docs-check: export OMP_NUM_THREADS ?= 1
test: $(DEV_READY)
	$(BIN)/pytest -n 2 --dist loadfile -m "not network and not docs and not browser"

test-network: $(DEV_READY)
	$(BIN)/pytest -n 2 -m network

# The report page in a real browser: Debian's Chromium, which is installed if it is not here.
CHROMIUM := /usr/bin/chromium
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
test-browser: $(DEV_READY)
	test -x $(CHROMIUM) || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends chromium; }
	$(INSTALL) --editable '.[browser]'
	$(BIN)/pytest -m browser tests/browser

# The shipped models, from scratch: two to three hours on two cores; interrupted, it goes on where it was.
zoo: $(READY)
	$(BIN)/ncttt data get cifar10
	$(MAKE) zoo-digits
	$(MAKE) -j 2 $(SHORT:%=zoo-%) zoo-ttt-flow zoo-vit-ttt-mae

zoo-digits: $(READY)
	$(BIN)/ncttt train --config digits --resume
	$(BIN)/python -m ncttt.zoo runs/digits digits-small-ncttt

$(SHORT:%=zoo-%): zoo-start
zoo-ttt-flow: zoo-source
zoo-start $(SHORT:%=zoo-%) zoo-ttt-flow: zoo-%: $(READY)
	$(BIN)/ncttt train --config cifar10-$* --resume
	$(BIN)/python -m ncttt.zoo runs/cifar10-small-$* cifar10-small-$* $(if $(filter ttt-flow,$*),cifar10-small-source)

zoo-vit-ttt-mae: $(READY)
	$(BIN)/ncttt train --config cifar10-vit-ttt-mae --resume
	$(BIN)/python -m ncttt.zoo runs/cifar10-vit-ttt-mae cifar10-vit-ttt-mae

check: $(DEV_READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo
	$(MAKE) test

# Are a random handful of the committed rows found again?
results-check: $(READY)
	$(BIN)/ncttt data get cifar10
	$(BIN)/python study/check_results.py

# The site, into site/; a wrong link, a docstring that does not render or any other warning is an error.
docs: $(DOCS_READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Runs the commands and the Python that the pages show, but for those that need hours, a GPU or a fetched data set.
docs-check: $(DEV_READY)
	$(BIN)/pytest -n 2 -m docs tests/docs

# Wheel and source distribution into dist/, checked, and the wheel used in an environment that has no other ncttt.
package: $(DEV_READY)
	rm -rf dist build
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tests/package/try_wheel.py dist

format: $(DEV_READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	touch $@

$(DEV_READY): $(READY)
	$(INSTALL) --editable '.[dev]'
	touch $@

$(DOCS_READY): $(READY)
	$(INSTALL) --editable '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) site dist build .pytest_cache .ruff_cache .hypothesis src/*.egg-info
