# `make demo` and `make test` on a fresh clone set everything up; the second time they only run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-network test-browser zoo check format clean

demo: $(READY)
	$(BIN)/ncttt demo

test: $(READY)
	$(BIN)/pytest -n 2 --dist loadfile -m "not network and not browser"

test-network: $(READY)
	$(BIN)/pytest -m network

# The report page in a real browser: Debian's Chromium, which is installed if it is not here.
CHROMIUM := /usr/bin/chromium
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
test-browser: $(READY)
	test -x $(CHROMIUM) || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends chromium; }
	$(BIN)/pip install --quiet --editable '.[browser]'
	$(BIN)/pytest -m browser tests/browser

# The shipped models, from scratch: about two hours on two cores; interrupted, it goes on where it was.
ZOO := start source ncttt clust3 ttt-flow ttt ttt-plus
zoo: $(READY)
	$(BIN)/ncttt data get cifar10
	$(BIN)/ncttt train --config configs/cpu/digits.yaml --resume
	$(BIN)/python -m ncttt.zoo runs/digits digits-small-ncttt
	for name in $(ZOO); do \
		$(BIN)/ncttt train --config configs/cpu/cifar10-$$name.yaml --resume && \
		$(BIN)/python -m ncttt.zoo runs/cifar10-small-$$name cifar10-small-$$name || exit 1; \
	done

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(MAKE) test

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis src/*.egg-info
