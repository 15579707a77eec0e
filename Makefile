# `make demo` and `make test` set everything up on a fresh clone; later runs start at once. `make help` lists all targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV_READY := $(VENV)/.dev-ready
DOCS_READY := $(VENV)/.docs-ready
SERVE_READY := $(VENV)/.serve-ready
# The versions that are tested; pyproject.toml has the ranges.
INSTALL := $(BIN)/pip install --quiet --constraint constraints.txt
# Models that a short training makes of the common start.
SHORT := source ttt-plus ttt clust3 ncttt

.PHONY: help demo serve-demo test test-ray test-deploy test-network test-browser check results-check docs docs-check architecture charts package floors audit fuzz faults format clean
.PHONY: zoo zoo-digits zoo-start $(SHORT:%=zoo-%) zoo-ttt-flow zoo-vit-ttt-mae

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(READY)  ## run the demonstration and write its report page
	$(BIN)/ncttt demo

serve-demo: $(SERVE_READY)  ## serve a playground to open in a browser
	$(BIN)/ncttt serve --demo

# One thread a process: two processes with two threads each, on two cores, wait for each other most of the time.
test test-ray test-network docs-check faults fuzz: export OMP_NUM_THREADS ?= 1
test: $(DEV_READY)  ## run the test suite
	$(BIN)/pytest -n 2 --dist loadfile -m "not network and not docs and not browser and not ray and not promtool"

# Replicas of a service, one of which is killed: a cluster takes both cores, so nothing else runs beside it.
test-ray: $(DEV_READY)  ## run the tests of a service on a local Ray cluster
	$(BIN)/pytest -m ray tests/serve/test_cluster.py

# The alerts and the dashboard, tried by Debian's promtool, which is installed if it is not here.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
PROMTOOL := /usr/bin/promtool
test-deploy: $(DEV_READY)  ## run the alerts of deploy/ on made-up series
	test -x $(PROMTOOL) || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends prometheus; }
	$(BIN)/pytest -m promtool tests/deploy

test-network: $(DEV_READY)  ## run the tests that download data
	$(BIN)/pytest -n 2 -m network

# The report page and the dashboard in a real browser: Debian's Chromium, which is installed if it is not here.
CHROMIUM := /usr/bin/chromium
test-browser: $(DEV_READY)  ## run the tests of the report page and the dashboard in Chromium
	test -x $(CHROMIUM) || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends chromium; }
	$(INSTALL) --editable '.[browser]'
	$(BIN)/pytest -m browser tests/browser

# The shipped models, from scratch: two to three hours on two cores; interrupted, it goes on where it was.
zoo: $(READY)  ## train the shipped models from scratch (two to three hours)
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

check: $(DEV_READY)  ## check format, lint, types, imports and security, run the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src
	$(MAKE) test

# Measures a random handful of the committed rows again.
results-check: $(READY)  ## measure some committed results again and compare
	$(BIN)/ncttt data get cifar10
	$(BIN)/python study/check_results.py

# The site, into site/; a wrong link, a docstring that does not render or any other warning is an error.
docs: $(DOCS_READY)  ## build the documentation site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Runs the commands and the Python that the pages show, but for those that need hours, a GPU or a fetched data set.
docs-check: $(DEV_READY)  ## run the commands and code that the pages show
	$(BIN)/pytest -n 2 -m docs tests/docs

# The packages and who imports whom, from the contract in pyproject.toml; a test compares the picture with the code.
architecture: $(DEV_READY)  ## draw docs/images/architecture.svg from the imports
	$(BIN)/python docs/architecture.py

# The charting library of the report page, from the exact versions of charts/package-lock.json. What it builds is
# committed, so that only a change of version or of parts needs npm.
VENDOR := src/ncttt/report/page/vendor
charts:  ## build the charting library of the report page
	cd charts && npm ci --no-audit --no-fund && npm run build
	cp charts/node_modules/echarts/LICENSE charts/node_modules/echarts/NOTICE $(VENDOR)
	cp charts/node_modules/echarts/licenses/LICENSE-d3 $(VENDOR)
	cp charts/node_modules/zrender/LICENSE $(VENDOR)/LICENSE-zrender

# Wheel and source distribution into dist/, checked, and the wheel used in an environment that has no other ncttt.
package: $(DEV_READY)  ## build the wheel and source distribution, and try the wheel
	rm -rf dist build
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tests/package/try_wheel.py dist

# The core tests with the lowest versions that are allowed (floors.txt); TORCH=2.13.0 takes another torch.
FLOORS := .venv-floors
TORCH ?= 2.10.0
floors: export OMP_NUM_THREADS ?= 1
floors:  ## run the core tests with the lowest allowed versions
	$(PYTHON) -m venv $(FLOORS)
	sed 's/^torch==.*/torch==$(TORCH)/' floors.txt > $(FLOORS)/constraints.txt
	$(FLOORS)/bin/pip install --quiet --constraint $(FLOORS)/constraints.txt --editable . pytest hypothesis 'pyparsing<3.3'  # of which old matplotlib uses deprecated names
	$(FLOORS)/bin/pytest -m "not network and not docs and not browser" tests/adapt tests/base tests/faults tests/model tests/noise

# Known vulnerabilities of the installed packages; needs pip-audit's online index.
audit: $(READY)  ## list known vulnerabilities of the installed packages
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/pip install --quiet pip-audit
	.venv-audit/bin/pip-audit --path $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

# Fuzzes each reader of untrusted files for ten minutes.
SECONDS_OF_FUZZING ?= 600
fuzz: $(DEV_READY)  ## fuzz the readers of checkpoints, rows and images
	$(BIN)/pip install --quiet atheris
	for door in checkpoint rows images; do $(BIN)/python tests/fuzz/run.py $$door $(SECONDS_OF_FUZZING) || exit 1; done

# Bad inputs and faults by group: how many were tried, and how many ended in a clear error.
faults: $(DEV_READY)  ## print how bad inputs are handled, group by group
	$(BIN)/pytest -n 2 tests/faults

format: $(DEV_READY)  ## format the code and fix what lint can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	touch $@

$(DEV_READY): $(READY)
	$(INSTALL) --editable '.[dev]'
	touch $@

$(SERVE_READY): $(READY)
	$(INSTALL) --editable '.[serve]'
	touch $@

$(DOCS_READY): $(READY)
	$(INSTALL) --editable '.[docs]'
	touch $@

clean:  ## remove the environments and everything built
	rm -rf $(VENV) $(FLOORS) .venv-audit site dist build .pytest_cache .ruff_cache .hypothesis src/*.egg-info
