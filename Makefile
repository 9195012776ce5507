# Everything a developer types. Each target sets up what it needs in .venv, so a fresh clone needs only Python 3.11 and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# A process for each core. Those of one file stay together, as each process starts the servers that its tests share.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

.PHONY: run test clients check bench format docs clean

run: $(VENV)/.installed
	@$(BIN)/verditer $(ARGS)

test: $(VENV)/.developed
	@$(PYTEST) $(ARGS)

clients: $(VENV)/.developed
	@$(BIN)/python -m tests.clients.install
	@$(BIN)/python -m pytest tests/clients $(ARGS)

check: $(VENV)/.developed
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(PYTEST) tests/unit tests/rest tests/contract -k "not postgres"

bench: $(VENV)/.developed
	@$(BIN)/python -m benchmarks $(ARGS)

format: $(VENV)/.developed
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.developed
	@$(BIN)/python -m verditer.rest.operations > docs/operations.md
	@$(BIN)/python -m verditer.rest.operations README.md
	@$(BIN)/python -m tests.clauses > docs/contract.md

clean:
	rm -rf $(VENV) .clients

$(VENV)/.installed: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.developed: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.installed
