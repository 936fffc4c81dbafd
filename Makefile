# make demo   trains two small models and shows what polyleaf does
# make test   lint, types and all tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(wildcard core/*.cpp core/*.hpp) CMakeLists.txt pyproject.toml

.PHONY: demo test lint bench sanitize clean

demo: $(VENV)/.installed
	$(BIN)/polyleaf demo

test: $(VENV)/.tested-with lint
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.tested-with
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

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

clean:
	rm -rf $(VENV) build
