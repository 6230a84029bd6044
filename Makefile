# Everything is made inside this checkout; `make clean` removes it again.
PYTHON ?= python3
DEVENV := $(PYTHON) tools/devenv
IN_ENV := $(DEVENV) run -- .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help demo test bench lint up down status clean venv

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: venv up ## build, test, scan and push small images for real
	@$(IN_ENV) tools/demo.py

test: venv up ## run all tests, with the engine and the registry
	@$(IN_ENV) tools/run_tests.py

lint: venv ## run the linters and the type checker
	@$(IN_ENV) tools/run_tests.py lint

bench: venv up ## time looking, planning, rendering and patching; writes bench/results/
	@.venv/bin/python bench/looking.py
	@.venv/bin/python bench/planning.py
	@$(IN_ENV) bench/patching.py

venv: ## make .venv with the project and its development tools
	@$(DEVENV) venv

up: ## have a Docker engine, a registry, mmdebstrap and Trivy
	@$(DEVENV) up

down: ## stop engine and registry, keep their data
	@$(DEVENV) down

status: ## say what runs
	@$(DEVENV) status

clean: ## stop and remove everything that was made
	@$(DEVENV) clean
