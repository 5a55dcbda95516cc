# The manual: `make check` runs the main job, `make test` passes the tests. Both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.setup

.PHONY: setup check test lint tutorial docs format schemas gpu-test golden wheel lowest newest clean

setup: $(SETUP)

# Where there is a GPU the extra `cuda` is installed too: PyCUDA compiles against the CUDA toolkit found here.
$(SETUP): pyproject.toml
	$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is incomplete: apt install python3-venv" >&2; exit 2; }
	$(BIN)/python -m pip install -q --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install -q --editable . --group dev
	@if [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; then $(BIN)/python -m pip install -q --editable '.[cuda]'; fi
	@touch $@

# The main job: on the GPU where there is one, else on the recorded device.
check: setup
	@if [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; then $(BIN)/perfgate check; else $(BIN)/perfgate check --device recorded; fi

test: setup
	$(BIN)/python -m pytest -m "not gpu" -n auto

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/check-jsonschema --check-metaschema schemas/*.json
	$(BIN)/check-jsonschema --schemafile schemas/baseline.schema.json baselines/*.json
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml examples/workflows/*.yml
	$(BIN)/zizmor --quiet --offline --config .github/zizmor.yml --min-severity medium action.yml .github/workflows/*.yml examples/workflows/*.yml
	$(BIN)/codespell

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# After a change of a dataclass of core: the published schemas follow.
schemas: setup
	$(BIN)/python scripts/make_schemas.py

gpu-test: setup
	$(BIN)/python -m pytest -m gpu

# Accepts what is rendered now as what a person is to see, and shows how it differs from what was committed.
golden: setup
	$(BIN)/python -m pytest -q -m "not gpu" --update-golden tests/golden tests/unit/report tests/unit/suite
	@git --no-pager diff --stat -- tests; git --no-pager diff --unified=1 -- tests

# The documentation as a site, in build/site; a broken link is an error.
docs: setup
	$(BIN)/python -m pip install -q --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# docs/tutorial.md to the letter, in an empty clone and a new environment.
tutorial:
	$(PYTHON) scripts/follow_tutorial.py

wheel: setup
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

# With the lowest and the newest versions of its dependencies that perfgate allows; PYTHON says which Python.
lowest newest: setup
	PYTHON=$(PYTHON) scripts/dependency_bounds.sh $@

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-newest build dist perfgate-results
