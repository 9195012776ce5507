# The commands of a developer. Each target installs what it needs into .venv, so a fresh clone needs only Python 3.11 and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Two test processes per core, since tests wait for disks and servers: with one per core the cores were busy for 60 % of the time.
# The tests of one file run in the same process, because they share the servers that it starts.
PROCESSES ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 4 ? 2 * cores : 8)))
# tests/conftest.py orders the files.
PYTEST := $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder
# Python may cache byte code even where the environment says otherwise: a server without it compiles 450 modules at each start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test clients smb browser containers cluster lint check bench format docs clean

run: $(VENV)/.installed
	@$(BIN)/verditer $(ARGS)

test: $(VENV)/.developed
	@$(BIN)/python -m tests.contract.s3
	@$(PYTEST) $(ARGS)

clients: $(VENV)/.developed
	@$(BIN)/python -m tests.clients.install
	@$(BIN)/python -m pytest tests/clients $(ARGS)

smb: $(VENV)/.developed
	@$(BIN)/python -m tests.smb_judges.install
	@$(BIN)/python -m pytest tests/smb_judges $(ARGS)

CLUSTER_PACKAGES := postgresql etcd-server libfaketime python3-pip
cluster: $(VENV)/.developed
	@command -v etcd > /dev/null || (apt-get update -qq && apt-get install -qq -y --no-install-recommends $(CLUSTER_PACKAGES) > /dev/null)
	@$(BIN)/python -m tests.contract.s3
	@$(BIN)/python -m tests.cluster.patroni
	@$(BIN)/python -m tests.cluster $(ARGS)

browser: $(VENV)/.developed
	@command -v $${CHROMIUM:-chromium} > /dev/null || (apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium > /dev/null)
	@$(BIN)/python -m pytest tests/browser $(ARGS)

containers: $(VENV)/.developed
	@command -v buildah debootstrap > /dev/null || (echo "needs buildah and debootstrap: apt-get install buildah debootstrap" && false)
	@$(BIN)/python -m tests.contract.s3
	@$(BIN)/python -m pytest tests/containers -o timeout=1500 $(ARGS)

lint: $(VENV)/.developed
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

check: lint
	@$(PYTEST) tests/unit tests/rest tests/contract -k "not postgres"

bench: $(VENV)/.developed
	@$(BIN)/python -m tests.contract.s3
	@$(BIN)/python -m benchmarks $(ARGS)

format: $(VENV)/.developed
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.developed
	@$(BIN)/python -m verditer.rest.operations > docs/operations.md
	@$(BIN)/python -m verditer.rest.operations README.md
	@$(BIN)/python -m tests.clauses > docs/contract.md
	@$(BIN)/python -m tests.code_map
	@$(BIN)/python -m tests.changelog > CHANGELOG.new && mv CHANGELOG.new CHANGELOG.md

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
