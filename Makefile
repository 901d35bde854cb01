# The book's commands; `make help` lists them. Everything lives in .venv and _build.
PYTHON ?= python3
PY := .venv/bin/python
SEED ?= 1
PORT ?= 8000

# One BLAS thread a process: two made a notebook three to seven times slower here.
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# A Latin-1 locale must not reach a file of the book.
export PYTHONUTF8 := 1

.DEFAULT_GOAL := help
.PHONY: help env node book site format labs serve check test nightly fresh mutants laws margins history mutation bench timings clean
.SUFFIXES:

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

env:  ## the environment in .venv, from requirements.txt
	@$(PYTHON) tools/environment.py

node: env  ## the browser tests' node packages (needs the network once)
	@$(PY) -m tools node

book: env  ## execute the chapters, write the notebooks, build the site into _build/html
	@$(PY) -m tools book

site: env  ## render the site from the committed notebooks, executing nothing
	@$(PY) -m tools site --committed

format: env  ## lay out the code of the chapters in 88 columns
	@$(PY) -m tools format

labs: env  ## compile the labs' models, draw their still pictures
	@$(PY) -m tools.labs build
	@$(PY) -m tools.labs figures

serve:  ## show _build/html at http://localhost:8000 (PORT=n)
	@$(PYTHON) -m http.server --directory _build/html --bind 127.0.0.1 $(PORT)

fresh: env  ## execute the book at another seed into _build/fresh/SEED (SEED=n)
	@$(PY) -m tools fresh --seed $(SEED)

mutants: env  ## run every claim under its mutant: each must fail
	@$(PY) -m tools mutants

laws: env  ## change the laws of changed chapters: some claim must notice (ALL=1: of all)
	@$(PY) -m tools laws $(if $(ALL),--all)

margins: env  ## run changed chapters and their mutants at ten seeds that their code draws
	@$(PY) -m tools margins

history: env  ## add the runs of `make fresh` to _build/history/margins.jsonl
	@$(PY) -m tools margins --append _build/history/margins.jsonl

mutation: env  ## change fltutils at every place: how many changes a test notices
	@$(PY) -m tools mutation

timings: env  ## write book/_generated/timings.json from the last execution
	@$(PY) -m tools timings

bench: env  ## compare the engine with plain loops, into _build/bench.json
	@$(PY) -m benchmarks

clean:  ## remove _build (the environment stays)
	rm -rf _build

# A stage of `make test`: its name first, its time in the table, its name again where it fails.
define clock
@$(PY) -m tools.clock $(1)
endef
define stage
@$(PY) -m tools.clock run '$(1)' '$(2)'
endef

check: env  ## lint, types and fast unit tests, in less than 30 s
	$(call clock,start)
	$(call stage,lint,$(PY) -m ruff check . && $(PY) -m ruff format --check .)
	$(call stage,types,$(PY) -m mypy)
	$(call stage,workflows,.venv/bin/zizmor --offline --quiet .github)
	$(call stage,unit tests,$(PY) -m pytest -q -m "not slow and not site and not nightly" -n 2 tests)
	$(call clock,end)

# The default seed runs once (nbval), the drawn one once (papermill); site and notebooks are made
# from what is committed, in one reading; nbval holds that to the code, the longest chapter first.
test: env node  ## everything CI runs
	$(call clock,start)
	$(call stage,lint,$(PY) -m ruff check . && $(PY) -m ruff format --check .)
	$(call stage,types; claims; exercises; site,$(PY) -m mypy & $(PY) -m tools site --committed; code=$$?; wait $$! && exit $$code)
	$(call stage,notebooks are what their sources give,$(PY) -m tools portable --check)
	$(call stage,nbval: the committed outputs reproduce,LONGEST="$$($(PY) -m tools timings --longest)" && $(PY) -m pytest --nbval -q -n 2 --dist loadscope --no-loadscope-reorder $$LONGEST)
	$(call stage,fresh seed: verdicts stay and mutants die,$(PY) -m tools fresh --seed commit --mutants)
# Three workers for two cores: a browser waits more than it computes. Lighthouse measures time: alone.
	$(call stage,tests,CHROMIUM_PATH="$$($(PY) -m tools chromium)" && export CHROMIUM_PATH && $(PY) -m pytest -n 3 --dist worksteal -m "not nightly" --ignore tests/site/test_site_lighthouse.py tests)
	$(call stage,lighthouse,CHROMIUM_PATH="$$($(PY) -m tools chromium)" && export CHROMIUM_PATH && $(PY) -m pytest -q -m "not nightly" tests/site/test_site_lighthouse.py)
	$(call clock,end)

nightly: env node  ## what takes too long for `make test`
	$(PY) -m pytest -n 2 --dist worksteal -m nightly tests
