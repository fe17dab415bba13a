# Two commands do everything: `make demo` and `make test`. Both create .venv themselves.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BENCH := .venv-bench
LOWEST := .venv-lowest
GPU_PYTHON ?= python3
RUN := $(VENV)/bin/python
# processes that run the tests side by side
WORKERS ?= 2

.PHONY: demo test test-browser test-lowest docs lint bench bench-privacy bench-fused-lasso bench-estimators bench-method bench-files bench-distributed bench-scaling-model bench-explorer test-gpu bench-gpu estimators reproduce clean

demo: $(VENV)/.installed  ## a whole private release in a generated city: count, charge, noise, denoise, certificate, maps
	$(RUN) -m hushgraph demo --out out/demo

test: $(VENV)/.installed  ## all tests and doctests, offline
	OMP_WAIT_POLICY=passive $(RUN) -m pytest -n $(WORKERS) --dist worksteal  # idle threads leave the cores to the other process

test-browser: $(VENV)/.installed  ## explorer and report in a real browser (Debian's chromium, installed if it is missing)
	command -v chromium > /dev/null || (apt-get update -qq && apt-get install -y -qq chromium)
	$(RUN) -m pytest tests/browser

# What reads events and keeps budgets, on the floors of pyproject.toml. A new .venv has the newest versions, so `make test` tries those.
test-lowest: $(LOWEST)/.installed  ## tests/privacy on the lowest allowed version of every requirement
	PYTHONWARNINGS=error $(LOWEST)/bin/python .ci/imports.py
	NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/numba OMP_WAIT_POLICY=passive $(LOWEST)/bin/python -m pytest -n $(WORKERS) --dist worksteal \
	  tests/privacy --ignore=tests/privacy/test_audit.py  # whose 10^8 draws take minutes; `make test` has them

docs: $(VENV)/.docs  ## the documentation as web pages in out/docs; warnings are errors
	$(RUN) -m sphinx -W --keep-going -q -b html docs out/docs

lint: $(VENV)/.installed  ## style, types and the import contracts
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports

bench: $(BENCH)/.installed  ## against SciPy, PyGSP and the memory bus; results in benchmarks/results
	$(BENCH)/bin/python benchmarks/bench.py

bench-privacy: $(BENCH)/.installed  ## private releases: noise against OpenDP and NumPy, counting, a day denoised jointly
	$(BENCH)/bin/python benchmarks/privacy.py

bench-fused-lasso: $(BENCH)/.installed  ## the 1-D fused lasso against prox-tv
	$(BENCH)/bin/python benchmarks/fused_lasso.py

bench-files: $(VENV)/.installed  ## ten million edges from files of each kind
	$(RUN) benchmarks/files.py

bench-distributed: $(VENV)/.installed  ## partitions on two workers against one process; 25 million nodes under a cap of 3 GB
	$(RUN) benchmarks/scaling.py equal
	$(RUN) benchmarks/scaling.py equal --method sgwt_scaled
	$(RUN) benchmarks/scaling.py capped

bench-scaling-model: $(VENV)/.installed  ## what tasks cost, and a simulation of larger clusters; tables and picture of docs/scaling.md
	$(RUN) benchmarks/scaling.py model

test-gpu:  ## the tests marked gpu, where there is a card and GPU_PYTHON (default python3) has CuPy and pytest
	PYTHONPATH=src $(GPU_PYTHON) -m pytest -m gpu tests/test_device.py tests/test_gpu_rows.py

bench-gpu:  ## one GPU against cuSPARSE, PyTorch and the memory of the card
	PYTHONPATH=src $(GPU_PYTHON) benchmarks/gpu.py

bench-explorer: $(VENV)/.installed  ## a move of the explorer's slider on 10,000 junctions, in the server and in a browser
	$(RUN) benchmarks/explorer.py

bench-estimators: $(VENV)/.installed  ## what each method gains and costs; results in benchmarks/results
	$(RUN) benchmarks/estimators.py

bench-method: $(VENV)/.installed  ## the numbers of docs/method.md: bounds on the spectrum, estimates of sigma, levels, expected errors
	$(RUN) benchmarks/method.py

estimators: $(VENV)/.installed  ## every method in the tables, on the data of HUSHGRAPH_DATA; tables and pictures of docs/estimators.md
	$(RUN) -m hushgraph reproduce table-nyc table-nyc-newyear table-sf table-sf-dpw fig-candidates --methods all --out out/estimators
	mkdir -p benchmarks/results/estimators
	cp out/estimators/table-*.md out/estimators/table-*.png out/estimators/fig-candidates*.png benchmarks/results/estimators/

reproduce: $(VENV)/.installed  ## every table and figure of the paper, on the data of HUSHGRAPH_DATA; docs/reproduction.md
	$(RUN) -m hushgraph reproduce all --out out/reproduction --docs docs

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("hushgraph needs Python 3.11 or newer, found " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

$(LOWEST)/.installed: pyproject.toml .ci/floors.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python .ci/floors.py all test > $(LOWEST)/floors.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/floors.txt --editable '.[all,test]'
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

$(BENCH)/.installed: pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[events]' pygsp opendp
	touch $@

clean:
	rm -rf $(VENV) $(BENCH) $(LOWEST) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
