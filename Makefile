# Everything from nothing: finds a Python, makes .venv, installs the locked versions once.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test test-cluster test-oldest soak bench bench-compare lint format image chart release manifests reference docs-site cluster-up \
  cluster-down kubernetes-types lock clean

# Tests and checks start Python a thousand times; compiling all of it each time takes minutes.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
RUN := $(VENV)/.run-installed
DEV := $(VENV)/.dev-installed
COMPILE := $(BIN)/pip-compile --quiet --strip-extras --allow-unsafe --generate-hashes --no-header \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host

# A name on PATH proves nothing: version managers leave stubs there that only fail.
USABLE := import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in python3.13 python3.12 python3.11 python3 python; do \
  if $$name -c '$(USABLE)' >/dev/null 2>&1; then echo $$name; break; fi; done)

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  make test ARGS='tests/unit -k pull' hands ARGS to pytest;"
	@echo "  PYTHON=/path/to/python chooses the Python that .venv is made with."

# Tests wait more than they work.
WORKERS ?= $(shell echo $$(( 3 * $$(nproc 2>/dev/null || echo 2) )))
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS)

demo: $(RUN) ## Show the engine at work on a simulated cluster; needs Python alone
	@$(BIN)/engine demo $(ARGS)

test: $(DEV) ## Run every test that needs no cluster, in at most 8 minutes on two processors
	@$(PYTEST) --dist worksteal -m 'not cluster and not programs and not soak' $(ARGS)

# In the order of tests/conftest.py, so that no long test is left for the end.
test-cluster: $(DEV) ## Run the tests on a real cluster, which is built first (root on Debian)
	@ENGINE_TEST_REQUIRE_CLUSTER=1 $(PYTEST) --dist loadfile --no-loadscope-reorder \
	  -m '(cluster or programs) and not soak and not lifecycle' $(ARGS)

test-oldest: $(DEV) ## Run what the oldest supported Kubernetes has to show, on a cluster of it
	@ENGINE_TEST_REQUIRE_CLUSTER=1 ENGINE_TEST_RELEASE=1.30 \
	  ENGINE_TEST_STATE=$${ENGINE_TEST_STATE:-/run/engine-test-oldest} $(BIN)/python -m pytest \
	  -m cluster tests/contract tests/e2e $(ARGS)

soak: $(DEV) ## Run the rest, and the campaigns for long: make soak, make soak ARGS='kills --again'
	@$(BIN)/python -m tests.campaign $(ARGS)

bench: $(DEV) ## Measure everything beside its yardstick, against benchmarks/budgets.toml
	@$(BIN)/python -m benchmarks $(ARGS)

bench-compare: $(DEV) ## Measure this tree and another revision in turns: make bench-compare BASE=main~20
	@$(BIN)/python -m benchmarks.compare $(BASE) $(ARGS)

lint: $(DEV) ## Check style, formatting, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(wildcard engine tests benchmarks docs deploy)
	$(BIN)/lint-imports

format: $(DEV) ## Format the code and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The one place that says it; all else is filled from it, or held to it by a test.
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' engine/__init__.py)
IMAGE ?= engine:$(VERSION)

image: ## Build the image: make image IMAGE=your.registry/engine:1.2.3 [BASE=python@sha256:...]
	@for tool in docker podman buildah; do \
	  $$tool info >/dev/null 2>&1 || continue; \
	  echo "Building $(IMAGE) with $$tool" >&2; \
	  $$tool build --file deploy/Dockerfile --tag '$(IMAGE)' $(if $(BASE),--build-arg 'BASE=$(BASE)') \
	    --build-arg VERSION=$(VERSION) --build-arg "REVISION=$$(git rev-parse HEAD 2>/dev/null)" . || exit; \
	  case "$(ARCHIVE),$$tool" in \
	    ,*) exit;; \
	    *,docker) exec docker save --output '$(ARCHIVE)' '$(IMAGE)';; \
	    *,podman) exec podman save --format oci-archive --output '$(ARCHIVE)' '$(IMAGE)';; \
	    *,buildah) exec buildah push '$(IMAGE)' 'oci-archive:$(ARCHIVE):$(IMAGE)';; \
	  esac; \
	done; \
	echo 'No docker, podman or buildah works here: install one of them (on Debian: apt-get install buildah),' \
	  'or start the daemon that docker asks for' >&2; exit 1

chart: $(DEV) ## Package the Helm chart into dist/ (with helm, or one that is built with Go)
	@$(BIN)/python -m deploy.release chart

release: $(DEV) ## Make all that is published of this version in dist/: make release [BASE=python@sha256:...]
	@BASE='$(BASE)' $(BIN)/python -m deploy.release

manifests: $(DEV) ## Make the plain YAML of deploy/ anew from the chart and the schemas (needs Go)
	@$(BIN)/python -m tests.deploy.manifests

reference: $(DEV) ## Make docs/reference anew from the schemas, the commands and the metrics
	@$(BIN)/python -m docs.generate

docs-site: $(DEV) ## Build the documentation as a site, in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --site-dir build/site

cluster-up: $(DEV) ## Start the tests' cluster (root on Debian; the first time builds it)
	@$(BIN)/python -m tests.cluster up

cluster-down: $(DEV) ## Stop the tests' cluster
	@$(BIN)/python -m tests.cluster down

# The release that the engine is tested with; its Go module carries its OpenAPI.
KUBERNETES = $(shell sed -n 's|.*k8s.io/kubernetes \(v[^ ]*\).*|\1|p' tests/cluster/modules/kubernetes-1.36/go.mod)

kubernetes-types: $(DEV) ## Make the schemas of Kubernetes' types anew from its OpenAPI (needs Go)
	@folder=$$(go mod download -json k8s.io/kubernetes@$(KUBERNETES) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') && \
	  $(BIN)/python -m deploy.kubernetes_types "$$folder/api/openapi-spec/swagger.json" $(KUBERNETES) && \
	  $(BIN)/python -m tests.deploy.kubernetes_types "$$folder/api/openapi-spec/swagger.json" $(KUBERNETES)

# The oldest Python that is supported locks: what it needs includes what the others need.
lock: $(DEV) ## Resolve the locked versions again, from pyproject.toml
	@$(BIN)/python -c 'import sys; sys.version_info[:2] == (3, 11) or sys.exit("make lock needs .venv to be of Python 3.11")'
	$(COMPILE) --upgrade --output-file requirements/run.txt pyproject.toml
	$(COMPILE) --upgrade --only-build-deps --build-deps-for editable --build-deps-for wheel \
	  --constraint requirements/run.txt --output-file requirements/build.txt pyproject.toml
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")' \
	  | $(COMPILE) --upgrade --constraint requirements/run.txt --constraint requirements/build.txt \
	    --output-file requirements/dev.txt -

clean: ## Remove .venv and everything that was generated
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is written last, so an install that was interrupted is done again.
$(RUN): requirements/run.txt requirements/build.txt pyproject.toml
	@if ! { [ -x $(BIN)/python ] && $(BIN)/python -c '$(USABLE)' && $(PIP) --version; } >/dev/null 2>&1; then \
	  if [ -z '$(PYTHON)' ]; then \
	    echo 'No Python >= 3.11 with venv found (on Debian: apt-get install python3 python3-venv);' \
	      'name one with PYTHON=/path/to/python' >&2; exit 1; \
	  fi; \
	  echo 'Making $(VENV) with $(PYTHON)' >&2; '$(PYTHON)' -m venv --clear $(VENV); \
	fi
	@echo 'Installing what the engine needs (requirements/run.txt)' >&2
	@$(PIP) install --requirement requirements/run.txt --requirement requirements/build.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): requirements/dev.txt $(RUN)
	@echo 'Installing what tests and checks need (requirements/dev.txt)' >&2
	@$(PIP) install --requirement requirements/dev.txt
	@touch $@
