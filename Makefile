# make demo   trains two small models and shows what polyleaf does
# make test   lint, types and all tests
# make docs   the documentation, as a site in site/
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CPP := $(wildcard core/*/*.cpp core/*/*.hpp src/polyleaf/rules/*.hpp)
SOURCES := $(CPP) CMakeLists.txt pyproject.toml

.PHONY: demo test lint docs bench sanitize clean

demo: $(VENV)/.installed
	$(BIN)/polyleaf demo

test: $(VENV)/.tested-with lint
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.tested-with
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The variable keeps a note of the theme on its successor out of the output.
	$(BIN)/clang-format --dry-run -Werror $(CPP) $(wildcard src/polyleaf/gpu/cuda/*.cuh)
docs: $(VENV)/.tested-with
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.tested-with
	$(BIN)/pip install --quiet ".[bench]"
	$(BIN)/python benchmarks/speed.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The core is rebuilt only when one of its files has changed.
$(VENV)/.installed: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.tested-with: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $@

# The core once more, instrumented, in an environment of its own. Leaks are not counted: the interpreter has its own.
SANITIZED := .venv-sanitize
SANITIZED_TESTS := tests/training/test_scores_of_training.py tests/growth/test_visited_tree.py tests/table/test_cuts_and_codes.py tests/table/test_sparse_input.py tests/estimators/test_cv.py tests/params/test_pairs.py tests/table/test_binning.py tests/table/test_binning_speed_paths.py tests/growth/test_categories.py tests/growth/test_constraints.py tests/model/test_importance.py tests/losses/test_losses.py tests/growth/test_growth_oracle.py tests/growth/test_renewed_leaves.py tests/model/test_model.py tests/model/test_model_file.py tests/model/test_predict.py tests/growth/test_sketch_and_sampling.py tests/growth/test_sparse_labels.py tests/growth/test_sparse_and_exact.py tests/estimators/test_hypothesis_inputs.py
sanitize:
	test -x $(SANITIZED)/bin/python || $(PYTHON) -m venv $(SANITIZED)
	$(SANITIZED)/bin/python -m pip install --quiet --disable-pip-version-check \
	  -C cmake.define.POLYLEAF_SANITIZE=ON -C build-dir=build/sanitize ".[test]"
	LD_PRELOAD="$$($${CXX:-g++} -print-file-name=libasan.so) $$($${CXX:-g++} -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
	  $(SANITIZED)/bin/python -m pytest -p no:cacheprovider $(SANITIZED_TESTS)

clean:
	rm -rf $(VENV) $(SANITIZED) build site
