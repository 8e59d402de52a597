# Two commands do everything on a machine with Python 3.11+ and pip: `make demo` and `make test`.
# uv is used where it is installed; it makes the first run quicker and changes nothing else.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
UV := $(shell command -v uv 2>/dev/null)
BIN := .venv/bin

# Versions come from the constraints, also inside the isolated build of our own package.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt
export UV_CONSTRAINT := $(CURDIR)/constraints.txt
export UV_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test fast reliability docs bench bench-smoke release oracle lock clean help
.DEFAULT_GOAL := help

help: ## Say what there is to do
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

demo: .venv/run ## Train a classifier of handwritten digits on four replicas
	$(BIN)/evenfeed demo

test: .venv/dev ## Run every check: format, lint, types, layers, tests, docs
	$(BIN)/python tools/check.py

fast: .venv/dev ## Run the quick tests only
	$(BIN)/python -m pytest -q -m "not slow"

reliability: .venv/dev ## Run the long reliability suite: 1,000 ends, 200 kills, a million steps, a million damaged inputs (hours)
	EVENFEED_ENDS=1000 $(BIN)/python -m pytest -q -k end_normally tests/cluster/test_exits.py
	$(BIN)/python -m tests.reliability.kills 200
	$(BIN)/python -m tests.reliability.long_run
	$(BIN)/python -m tests.reliability.fuzz 1000000

docs: .venv/dev ## Build the docs into docs/_build
	$(BIN)/python -m sphinx -q -W -b html docs docs/_build

bench: .venv/dev .venv-peers/done ## Run the benchmarks, peers included, and write benchmarks/README.md, docs/benchmarks.md and the table of README.md
	$(BIN)/python benchmarks/import_time.py
	$(BIN)/python benchmarks/processes.py
	$(BIN)/python benchmarks/cost_of_stats.py
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/images.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/many_steps.py
	$(BIN)/python benchmarks/feeding.py
	$(BIN)/python benchmarks/resuming.py
	$(BIN)/python benchmarks/workers.py
	$(BIN)/python benchmarks/keras_fit.py
	$(BIN)/python benchmarks/curves.py
	$(BIN)/python tools/readme_table.py

bench-smoke: .venv/dev ## Compare the ratios of all jobs to their limits with the committed ones, in five minutes
	$(BIN)/python benchmarks/smoke.py

release: .venv/dev ## Build the wheel, and try it with each extra in an empty environment (minutes)
	$(BIN)/python tools/release_check.py

oracle: .venv-oracle/done ## Record TensorFlow's answers for tests/oracle again
	TF_CPP_MIN_LOG_LEVEL=3 .venv-oracle/bin/python tests/oracle/record.py
	TF_CPP_MIN_LOG_LEVEL=3 .venv-oracle/bin/python tests/oracle/record_names.py

lock: ## Update constraints.txt (needs uv)
	uv pip compile --universal --python-version 3.11 --upgrade --group dev --group build --extra demo \
		pyproject.toml --no-header --no-annotate -o constraints.txt
	uv pip compile --python-version 3.11 --upgrade tests/oracle/requirements.in \
		--no-header --no-annotate -o tests/oracle/requirements.txt
	uv pip compile --python-version 3.11 --upgrade benchmarks/requirements.in \
		--no-header --no-annotate -o benchmarks/requirements.txt

clean: ## Remove what the other commands made
	rm -rf .venv .venv-oracle .venv-peers docs/_build docs/map.md docs/names.md .pytest_cache .ruff_cache .hypothesis

.venv/made:
	@test -n "$(PYTHON)" || { echo "evenfeed needs Python 3.11 or newer; set PYTHON=/path/to/python3"; exit 1; }
ifneq ($(UV),)
	uv venv -q --clear --python $(PYTHON) .venv
else
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install -q --upgrade "pip==26.3"
endif
	@touch $@

ifneq ($(UV),)
INSTALL := VIRTUAL_ENV=$(CURDIR)/.venv uv pip install -q
else
INSTALL := $(BIN)/python -m pip install -q
endif

.venv/run: .venv/made pyproject.toml constraints.txt
	$(INSTALL) -e '.[demo]'
	@touch $@

.venv/dev: .venv/run
	$(INSTALL) --group dev
	@touch $@

.venv-oracle/done: tests/oracle/requirements.txt
	$(PYTHON) -m venv --clear .venv-oracle
	PIP_CONSTRAINT= PIP_BUILD_CONSTRAINT= .venv-oracle/bin/python -m pip install -q -r tests/oracle/requirements.txt
	@touch $@

# PyTorch for the CPU alone comes from an index of its own. Where that cannot be reached, it comes from the ordinary one,
# without its gigabytes of CUDA (--no-deps).
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

.venv-peers/done: benchmarks/requirements.txt
	$(PYTHON) -m venv --clear .venv-peers
	PIP_CONSTRAINT= PIP_BUILD_CONSTRAINT= .venv-peers/bin/python -m pip install -q -r benchmarks/requirements.txt
	PIP_CONSTRAINT= .venv-peers/bin/python -m pip install -q --no-deps --extra-index-url $(TORCH_INDEX) "torch==2.13.0+cpu" \
		|| PIP_CONSTRAINT= .venv-peers/bin/python -m pip install -q --no-deps "torch==2.13.0"
	@touch $@
