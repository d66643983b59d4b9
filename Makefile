# Needs Python 3.11+ with venv and pip, and make. Everything is installed into $(VENV).
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
RUN_EXTRAS = embedded
DEV_EXTRAS = pools,stats,figures,math,serve,embedded,dev

.DEFAULT_GOAL := help
.PHONY: help install demo check test cov lint browser pictures clients soak vllm bench docs clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 12

# One stamp per set of extras: nothing is installed again until the metadata or the pins change.
$(VENV)/installed-%: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing .[$*] into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $@

install: $(VENV)/installed-$(DEV_EXTRAS) ## make the environment for development

demo: $(VENV)/installed-$(RUN_EXTRAS) ## watch a funnel narrow, and what it saves
	@$(BIN)/fot demo

lint: install ## mend what the formatter and the linter can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

check: install ## format, lint, types, layers
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

test: check ## check, then every test
	$(BIN)/pytest -n 2

cov: install ## every test, with coverage
	$(BIN)/pytest -n 2 --cov --cov-report=term

.browser/installed:
	@npm install --silent --no-audit --no-fund --prefix .browser playwright-core axe-core
	@touch $@

browser pictures: export FOT_BROWSER_MODULES = $(CURDIR)/.browser/node_modules
browser: install .browser/installed ## watch the live view and a report in a real browser (needs node, npm and chromium)
	$(BIN)/pytest tests/serve/test_browser.py tests/report/test_browser.py

pictures: install .browser/installed ## take the documentation's pictures of the live view (needs the same)
	$(BIN)/python scripts/with_llamacpp.py -- $(BIN)/python scripts/pictures.py docs/images

# Each client has an environment of its own: they do not agree on what else is installed.
PACKAGES_langchain = langchain-openai
PACKAGES_litellm = litellm
PACKAGES_inspect = inspect-ai 'openai>=3.4'
PACKAGES_lmeval = 'lm-eval[api]'
.clients/%/installed:
	@$(PYTHON) -m venv .clients/$*
	@echo "installing $(PACKAGES_$*) into .clients/$*"
	@.clients/$*/bin/pip install --quiet --disable-pip-version-check $(PACKAGES_$*)
	@touch $@

clients: install $(patsubst %,.clients/%/installed,langchain litellm inspect lmeval) ## point LangChain, LiteLLM, Inspect and lm-eval at the server
	FOT_CLIENTS=$(CURDIR)/.clients $(BIN)/pytest -v tests/serve/test_clients.py

soak: install ## a thousand fault schedules
	FOT_FAULT_SCHEDULES=1000 $(BIN)/pytest -q tests/online/test_faults.py

# VLLM_PYTHON has vLLM and, beside it, this project's dependencies and pytest; MODEL is a folder or a hub id.
VLLM_PYTHON ?= $(BIN)/python
vllm: install ## the live suite on a vLLM server and on vLLM in-process (MODEL=..., VLLM_PYTHON=...)
	@test -n "$(MODEL)" || { echo "make vllm MODEL=FOLDER_OR_HUB_ID [VLLM_PYTHON=an interpreter that has vLLM]"; exit 2; }
	$(BIN)/python scripts/with_vllm.py --python $(VLLM_PYTHON) --model $(MODEL) -- $(BIN)/pytest -v tests/live/test_server.py tests/contract -k "live"
	FOT_VLLM_MODEL=$(MODEL) VLLM_CPU_KVCACHE_SPACE=1 PYTHONPATH=src:$(PYTHONPATH) $(VLLM_PYTHON) -m pytest -p no:cacheprovider -o filterwarnings= -s -q tests/live/test_asyncllm.py

bench: install ## measure the index and the simulator
	$(BIN)/python -m benchmarks.index_throughput
	$(BIN)/python -m benchmarks.simulation

docs: install $(VENV)/installed-docs ## build the documentation into site/
	$(BIN)/python scripts/reference.py
	$(BIN)/zensical build --strict

clean: ## remove what was built, and the environment
	rm -rf $(VENV) .browser .clients build dist site .coverage* .hypothesis .*_cache
