# What a newcomer needs: `make serve` and `make test`. Everything is installed into .venv beside this file.

VENV := .venv
BIN := $(VENV)/bin
# The first Python here that is new enough; PYTHON=… chooses another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
# Further arguments for pytest: make test ARGS="tests/site -k settings"
ARGS ?=

.PHONY: help serve test screenshots bench chaos compare lint types clean

help:
	@echo 'make serve   start the server and its admin (installs and migrates first)'
	@echo 'make test    run all tests, on SQLite and on a PostgreSQL server of their own (ARGS="…" for pytest)'
	@echo 'make screenshots  make the pictures of the admin that the README shows, with the browser tests'
	@echo 'make bench   measure this server beside the official development server (ARGS="--scale 2")'
	@echo 'make chaos   ten minutes of killed, frozen and misled processes under load (ARGS="--seconds 180 --seed 7")'
	@echo 'make compare compare answers with the official development server (ARGS="--only updates")'
	@echo 'make lint    ruff'
	@echo 'make types   mypy, strict'
	@echo 'make clean   remove caches and build output; databases and .venv stay'

serve: $(VENV)/installed
	@exec $(BIN)/python manage.py serve

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest $(ARGS)

screenshots: $(VENV)/installed-dev
	SCREENSHOTS=docs/screenshots $(BIN)/python -m pytest tests/browser $(ARGS)

bench: $(VENV)/installed-bench
	$(BIN)/python -m tests.bench $(ARGS)

chaos: $(VENV)/installed-dev
	$(BIN)/python -m tests.chaos $(ARGS)

compare: $(VENV)/installed-bench
	$(BIN)/python -m tests.compare $(ARGS)

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

clean:
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info var/sdks
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo 'Python 3.11 or newer is needed; say where it is with PYTHON=…' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Stamps: an install happens only when pyproject.toml has changed since.
$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/installed

$(VENV)/installed-bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	@touch $@ $(VENV)/installed $(VENV)/installed-dev
