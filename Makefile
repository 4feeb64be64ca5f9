# Three commands on a fresh machine: make demo, make test, make e2e. Each makes what it needs, inside .venv/ and a cache outside the checkout.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo dist recordings site reference test test-all coverage e2e e2e-agents ci-lab tofu container fuzz crash growth bench profile soak soak-e2e soak-agents clean

# Tests start thousands of processes of ipamc: compiled modules are kept, whatever the caller's shell says.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin

help:
	@echo 'make demo    compile every cluster below clusters/, and build the output with the real kustomize'
	@echo 'make recordings  play the tapes of docs/recordings/, and draw each as an animated SVG: after a change of what is printed'
	@echo 'make reference  docs/reference/ from the code, the schemas and the catalogue'
	@echo 'make site    the documentation as a site that needs no network: build/site/index.html'
	@echo 'make test    lint, types, import layers, tests: a tenth of the cases of large laws'
	@echo 'make test-all  every case of every law'
	@echo 'make coverage  the tests of make test once more, with the branches of the compiler that they take: IPAMC_TESTS=all for those of make test-all'
	@echo 'make e2e     what is rendered, given to a real kube-apiserver, a real cilium-operator, real kustomize and charts: OPERATORS="1.18" are built from source, with Go'
	@echo 'make e2e-agents  the same with real cilium-agents, pods and a BGP router, as root on Linux: AGENTS="1.18" are built from source, with Go'
	@echo '             of both a part: each promise once. IPAMC_TESTS=all has the whole, as .ci/all does'
	@echo 'make ci-lab  the pipelines that ipamc ci writes, run by gitlab-ci-local and read by actionlint: needs npm, Go, rsync'
	@echo 'make tofu    the example for OpenTofu in docs/how-to/export.md, planned and applied: needs Go'
	@echo 'make dist    wheel and sdist, built twice and compared, with their hashes and an SBOM, in dist/'
	@echo 'make container  the steps of the Containerfile in a scratch folder, and its image where docker, podman or buildah is: needs the network'
	@echo 'make fuzz    mutated clusters, merges, command lines and pull requests, for FUZZ_SECONDS=600, from FUZZ_SEED; FUZZ_KIND=requests'
	@echo 'make crash   kill ipamc before everything that it does to the disk; pairs of runs; full disks: CRASH_PART=3/20 for a piece of it'
	@echo 'make soak    random histories of the lock, for hours: HISTORIES=20000 a mode, some 30 steps each; MODE=crd SEED=7'
	@echo 'make soak-e2e random histories of live clusters: STEPS=200 a mode, on the servers of OPERATORS, from SEED'
	@echo 'make soak-agents random histories of pods, nodes and runbooks with real agents: STEPS=200 a mode, AGENTS, from SEED'
	@echo 'make growth  how the cost of hostile inputs grows with their size: fails above 1.3 times linear'
	@echo 'make bench   ipamc beside helm, cue, jsonnet, kapitan and kustomize, and its goals: writes tools/benchmarks/RESULTS.md; BENCH="--help" shows options'
	@echo 'make profile where the time of a compile goes, by stage and by function: PROFILE="--nodes 100000 --inventory \"slim YAML\"", --help'
	@echo 'make clean   remove .venv and caches'

demo: .venv/.made
	@build="$$(.ci/kustomize)"; KUSTOMIZE_BUILD="$$build" $(BIN)/python tools/demo.py

# real-agents.tape has what a run of tests/e2e/agents/test_recording.py printed: `make e2e-agents` compares it, pytest's --update keeps a new one.
recordings: .venv/.made-for-tests
	$(BIN)/python docs/recordings/record.py

dist: .venv/.made-for-tests
	@$(BIN)/python -m pip install --quiet --group release
	$(BIN)/python -m tools.release.build
	$(BIN)/python -m tools.release.sbom dist/ipamc-*.whl

reference: .venv/.made-for-tests
	$(BIN)/python -m tools.website.reference

site: .venv/.made-for-docs
	@$(BIN)/python -m tools.website.build

test-all: export IPAMC_TESTS := all
test test-all: .venv/.made-for-tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	.ci/shells; build="$$(.ci/kustomize)"; chromium="$$(.ci/chromium)"; \
	KUSTOMIZE_BUILD="$$build" CHROMIUM="$$chromium" $(BIN)/python -m pytest -n 4 --dist worksteal

# Branches taken in tests, in the workers of pytest and in processes of ipamc that keep its environment. IPAMC_TESTS=all: of all cases.
# A few tests fail because they are measured: those that look at the modules of a process, or at its time.
coverage: .venv/.made-for-tests
	$(BIN)/python -m coverage erase
	.ci/shells; build="$$(.ci/kustomize)"; chromium="$$(.ci/chromium)"; \
	KUSTOMIZE_BUILD="$$build" CHROMIUM="$$chromium" $(BIN)/python -m coverage run -m pytest -n 4 --dist worksteal || true
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --format=total --precision=2

# Minors of cilium-operator: folders of tests/e2e/servers. The first run builds them, and Kubernetes: some 20 minutes on 2 cores.
OPERATORS ?= 1.18
# Minors of kube-apiserver besides the one that all tests use, for those about admission policies: 1.30 1.34 1.36 1.37.
KUBERNETES ?= 1.37
# Minors of kubectl besides that of Kubernetes.
KUBECTLS ?= $(if $(filter all,$(IPAMC_TESTS)),1.27)

e2e: .venv/.made-for-tests
	build="$$(.ci/kustomize)"; functions="$$(.ci/kustomize functions)"; charts="$$(.ci/charts)"; \
	servers="$$(.ci/servers $(OPERATORS:%=cilium-%) $(KUBERNETES:%=kubernetes-%) $(KUBECTLS:%=kubectl-%))"; \
	KUSTOMIZE_BUILD="$$build" KUSTOMIZE_FUNCTIONS="$$functions" IPAMC_CHARTS="$$charts" IPAMC_SERVERS="$$servers" \
	$(BIN)/python -m pytest -n 4 --dist worksteal tests/e2e

# Minors of cilium-agent: folders of tests/e2e/servers. The first run builds them, with their operators: some 10 minutes on 2 cores.
AGENTS ?= 1.18

e2e-agents: .venv/.made-for-tests
	build="$$(.ci/kustomize)"; charts="$$(.ci/charts)"; servers="$$(.ci/agents $(AGENTS))"; \
	KUSTOMIZE_BUILD="$$build" IPAMC_CHARTS="$$charts" IPAMC_SERVERS="$$servers" \
	$(BIN)/python -m pytest --tx '2*popen//python=.ci/isolated $(BIN)/python' --dist worksteal tests/e2e/agents

ci-lab: .venv/.made-for-tests
	lab="$$(.ci/pipelines)"; IPAMC_PIPELINES="$$lab" $(BIN)/python -m pytest tests/cli/test_pipelines_lab.py tests/release/test_workflows_lab.py

tofu: .venv/.made-for-tests
	tofu="$$(.ci/tofu)"; PATH="$$tofu:$$PATH" $(BIN)/python -m pytest tests/test_pages.py::test_a_page_shows_what_is_printed -k how-to/export

container: .venv/.made-for-tests
	IPAMC_CONTAINER=yes $(BIN)/python -m pytest -rs tests/test_container.py

# FUZZ_KIND=requests: one kind alone. FUZZ_AGAIN=requests/7/1234: one input again.
FUZZ_SECONDS ?= 600
FUZZ_SEED ?= $(shell date +%s)

fuzz: .venv/.made-for-tests
	FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_SEED=$(FUZZ_SEED) FUZZ_KIND=$(FUZZ_KIND) FUZZ_AGAIN=$(FUZZ_AGAIN) $(BIN)/python -m pytest -s tests/fuzz

# One of N pieces: CRASH_PART=3/20. The figures of all pieces add up. CRASH_ONLY=killed: some tests alone, by pytest's -k.
CRASH_PART ?= 1/1
CRASH_ONLY ?= test

crash: .venv/.made-for-tests
	IPAMC_CRASH=all CRASH_PART=$(CRASH_PART) $(BIN)/python -m pytest -s -k '$(CRASH_ONLY)' tests/crash

# Without MODE all of them, two at once; hypothesis chooses the histories from SEED.
HISTORIES ?= 20000
MODE ?=

soak: .venv/.made-for-tests
	IPAMC_HISTORIES=$(HISTORIES) IPAMC_SOAK_SEED=$(SEED) IPAMC_SOAK_MODE=$(MODE) \
	$(BIN)/python -m pytest -n $(if $(MODE),0,2) -s tests/test_history.py

STEPS ?= 200
SEED ?= $(shell date +%s)

soak-e2e: .venv/.made-for-tests
	build="$$(.ci/kustomize)"; servers="$$(.ci/servers $(OPERATORS:%=cilium-%))"; \
	KUSTOMIZE_BUILD="$$build" IPAMC_SERVERS="$$servers" IPAMC_SOAK_SEED=$(SEED) IPAMC_SOAK_STEPS=$(STEPS) \
	$(BIN)/python -m pytest -n 2 --dist worksteal -rP tests/e2e/test_soak.py -k promise

soak-agents: .venv/.made-for-tests
	build="$$(.ci/kustomize)"; servers="$$(.ci/agents $(AGENTS))"; \
	KUSTOMIZE_BUILD="$$build" IPAMC_SERVERS="$$servers" IPAMC_SOAK_SEED=$(SEED) IPAMC_SOAK_STEPS=$(STEPS) \
	.ci/isolated $(BIN)/python -m pytest -s tests/e2e/agents/test_soak.py

# The first Python that is new enough: a name on the PATH may be a shim for a version that is not there.
.venv/.made: pyproject.toml
	@for python in python3.13 python3.12 python3.11 python3; do \
	  if "$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "making .venv with $$("$$python" --version)"; "$$python" -m venv --clear .venv; break; \
	  fi; \
	done
	@test -x $(BIN)/python || { echo 'error: ipamc needs Python 3.11 or newer, with venv' >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/.made-for-tests: .venv/.made
	@$(BIN)/python -m pip install --quiet --group test
	@touch $@

.venv/.made-for-docs: .venv/.made
	@$(BIN)/python -m pip install --quiet --group docs
	@touch $@

growth: .venv/.made-for-tests
	$(BIN)/python tools/benchmarks/growth.py

# Some 40 minutes on 2 cores that do nothing else. The first run installs the others, some 5 minutes more.
BENCH ?= --output tools/benchmarks/RESULTS.md

bench: .venv/.made-for-tests
	peers="$$(PYTHON=$(BIN)/python .ci/peers)"; build="$$(.ci/kustomize)"; \
	IPAMC_PEERS="$$peers" KUSTOMIZE_BUILD="$$build" $(BIN)/python tools/benchmarks/bench.py $(BENCH)

profile: .venv/.made-for-tests
	$(BIN)/python tools/benchmarks/stages.py $(PROFILE)

clean:
	rm -rf .venv build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
