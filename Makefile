# Two commands do everything: `make demo` and `make test`. Both create .venv themselves.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BENCH := .venv-bench
RUN := $(VENV)/bin/python

.PHONY: demo test lint bench bench-privacy bench-fused-lasso bench-estimators estimators reproduce clean

demo: $(VENV)/.installed  ## a whole private release in a generated city: count, charge, noise, denoise, certificate, maps
	$(RUN) -m hushgraph demo --out out/demo

test: $(VENV)/.installed  ## all tests and doctests, offline
	$(RUN) -m pytest

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

bench-estimators: $(VENV)/.installed  ## what each method gains and costs; results in benchmarks/results
	$(RUN) benchmarks/estimators.py

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

$(BENCH)/.installed: pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[events]' pygsp opendp
	touch $@

clean:
	rm -rf $(VENV) $(BENCH) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
