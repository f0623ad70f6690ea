# The set-up and the common jobs. `make demo` and `make test` need nothing but Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements.lock
LOWEST := .venv-lowest
PYTEST_ARGS ?=
HERE := not broker and not spark and not browser and not kills and not long
BENCH_ARGS ?=
HEALTHY_ARGS ?=
CAMPAIGN_ARGS ?=
ESTIMATES_ARGS ?=

# The tests write half a million small files: in memory where it has 8 GB of room for them.
in_memory = if test -w /dev/shm && test "$$(df -k /dev/shm | awk 'NR == 2 {print $$4}')" -gt 8000000; then \
  PYTEST_DEBUG_TEMPROOT=$$(mktemp -d /dev/shm/logtool-tests-XXXXXX); export PYTEST_DEBUG_TEMPROOT; \
  trap 'rm -rf "$$PYTEST_DEBUG_TEMPROOT"' EXIT; fi;

# The tests start logtool hundreds of times: its modules are compiled once, and not each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-long explore test-broker test-broker-long healthy campaign test-spark test-spark-lowest bench \
  log-dirs loads estimates campaign-files salvage fill messages lint generate fixtures lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/run.stamp  ## set up, then verify a real data directory, sound and damaged
	@$(BIN)/python tests/demo.py

test: $(VENV)/test.stamp  ## set up, then run the tests that need no Java and not much time
	@$(in_memory) $(BIN)/python -m pytest -m "$(HERE) and not slow" -n auto $(PYTEST_ARGS)

.PHONY: test-slow
test-slow: $(VENV)/test.stamp  ## run the tests that take more time (tests/slow.txt)
	@$(in_memory) $(BIN)/python -m pytest -m "$(HERE) and slow" -n auto $(PYTEST_ARGS)

test-long: $(VENV)/test.stamp  ## the same, where every byte, every kill or more releases are tried
	$(BIN)/python -m pytest -m "long and not broker and not spark" -n auto $(PYTEST_ARGS)

.PHONY: test-kills
test-kills: $(VENV)/test.stamp  ## kill commands and fill their disks, at some of the moments
	$(BIN)/python -m pytest -m "kills and not long" -n auto $(PYTEST_ARGS)

.PHONY: test-browser
test-browser: $(VENV)/test.stamp  ## open pages of reports in a real Chromium
	$(BIN)/python -m pytest -m browser tests/browser $(PYTEST_ARGS)

# What fails is kept in .hypothesis and tried first the next time; Hypothesis also writes a patch that
# puts it beside the test as an @example, to be applied, committed, and mended.
explore: $(VENV)/dev.stamp  ## try the properties in the tests with new draws, for some minutes
	$(BIN)/python -m pytest -m "hypothesis and not spark" --hypothesis-profile=explore \
	  -o timeout=3600 $(PYTEST_ARGS)

# Some start several brokers one behind the other, which a busy machine has to have time for.
test-broker: $(VENV)/test.stamp  ## run the tests against a real Kafka (Java 17, Maven)
	$(BIN)/python -m pytest -m "broker and not long" -n 3 --dist loadfile --no-loadscope-reorder -o timeout=900 $(PYTEST_ARGS)

test-broker-long: $(VENV)/test.stamp  ## the same with one more release
	$(BIN)/python -m pytest -m "broker and long" -n 2 $(PYTEST_ARGS)

healthy: $(VENV)/test.stamp  ## judge healthy log dirs of real brokers, many seeds (Java 17, Maven)
	PYTHONPATH=tests $(BIN)/python -m broker.healthy_campaign $(HEALTHY_ARGS)

campaign: $(VENV)/test.stamp  ## load thousands of damaged logs with real brokers, write a report
	$(BIN)/python tests/broker/campaign.py $(CAMPAIGN_ARGS)

salvage: $(VENV)/test.stamp  ## damage real partitions by thousands of seeds, salvage them, write the report
	PYTHONPATH=tests $(BIN)/python tests/salvage_campaign.py $(SALVAGE_ARGS)

fill: $(VENV)/test.stamp  ## damage one copy of real partitions by thousands of seeds, repair it, write the report
	PYTHONPATH=tests $(BIN)/python tests/fill_campaign.py $(FILL_ARGS)

CAMPAIGN_WORK ?= build/campaign-files
campaign-files: $(VENV)/test.stamp  ## damage each small file next to the logs, start brokers, write the report
	$(BIN)/python tests/broker/campaign_files.py --work $(CAMPAIGN_WORK) \
	  --report tests/broker/reports/files/REPORT.md

.PHONY: fill-copies
fill-copies: $(VENV)/test.stamp  ## damage one or two of three copies by thousands of seeds, repair each from the others
	$(BIN)/python -m pytest -m long -n auto tests/engine/repair/test_copies_campaign.py $(PYTEST_ARGS)

AUTOMQ_SWEEPS_ARGS ?=
.PHONY: automq-sweeps
automq-sweeps: $(VENV)/test.stamp  ## cut and flip every object of AutoMQ in tests/data, write the report
	PYTHONPATH=tests $(BIN)/python -m automq_sweeps $(AUTOMQ_SWEEPS_ARGS)

ABSENCES_WORK ?= build/absences
ABSENCES_ARGS ?=
.PHONY: absences
absences: $(VENV)/test.stamp  ## remove things from log dirs of real brokers, start them, write the report
	PYTHONPATH=tests $(BIN)/python -m absences --work $(ABSENCES_WORK) \
	  --report tests/broker/reports/absences.md $(ABSENCES_ARGS)

RELEASES_WORK ?= build/releases
RELEASES_ARGS ?=
.PHONY: releases
releases: $(VENV)/test.stamp  ## start every release on directories of the others, write the report
	$(BIN)/python tests/broker/releases_campaign.py --work $(RELEASES_WORK) $(RELEASES_ARGS)

CLUSTER_WORK ?= build/cluster
CLUSTER_ARGS ?=
.PHONY: cluster-campaign
cluster-campaign: $(VENV)/test.stamp  ## start clusters from volumes of different moments, write the report
	$(BIN)/python tests/broker/cluster_campaign.py --work $(CLUSTER_WORK) $(CLUSTER_ARGS)

messages: $(VENV)/test.stamp  ## write the tables of Kafka's messages from the jars of a release (Maven)
	PYTHONPATH=tests $(BIN)/python -m broker.message_tables
	PYTHONPATH=tests $(BIN)/python -m broker.release_table

test-spark: $(VENV)/spark.stamp  ## run the tests of the pipeline on a real Spark (Java 17)
	$(BIN)/python -m pytest -m "spark and not connector" -n 3 --dist loadfile $(PYTEST_ARGS)

# pyspark 4.0 leaves it to the garbage collector to close its sockets.
QUIET := -W "ignore:unclosed <socket:ResourceWarning"

test-spark-lowest: $(LOWEST)/spark.stamp  ## the same in short on the lowest releases promised
	$(LOWEST)/bin/python -m pytest -m "lowest or connector" -n 2 --dist loadfile $(QUIET) tests/pipeline $(PYTEST_ARGS)

SPARK_CAMPAIGN_ARGS ?=
.PHONY: spark-campaign
spark-campaign: $(VENV)/spark.stamp  ## compare Spark's tables with an independent parse, under faults, write the report
	PYTHONPATH=tests $(BIN)/python -m pipeline.campaign_on_spark $(SPARK_CAMPAIGN_ARGS)

SPARK_RELEASES_ARGS ?=
.PHONY: spark-releases
spark-releases: $(VENV)/spark.stamp  ## try each release of Spark and Spark Connect in short, write the report
	PYTHONPATH=tests $(BIN)/python -m pipeline.releases_on_spark $(SPARK_RELEASES_ARGS)

COVERAGE_ARGS ?=
COVERAGE_FLOOR := 92
.PHONY: coverage
coverage: $(VENV)/dev.stamp  ## what `make test` reaches of the code, in its own process; fails below the floor
	$(BIN)/python -m pytest -q -m "not broker and not spark and not long" -n auto \
	  --cov=logtool --cov-report=term:skip-covered --cov-fail-under=$(COVERAGE_FLOOR) $(COVERAGE_ARGS)

# The interpreter of a release: by its name on PATH, or where pyenv keeps it. Spark is not part of it.
NEWER := 3.12 3.13
find_python = $(firstword $(foreach p,python$(1) $(wildcard $(HOME)/.pyenv/versions/$(1).*/bin/python3),\
  $(shell $(p) -c 'import sys; print(sys.executable)' 2>/dev/null)))

.PHONY: test-newer
test-newer:  ## what `make test` runs, on Python 3.12 and 3.13 where they are installed
	@for v in $(NEWER); do $(MAKE) --no-print-directory test-python-$$v || exit 1; done

test-python-%:
	@if [ -z "$(call find_python,$*)" ]; then echo "Python $* is not installed: nothing was tested on it."; \
	else $(MAKE) --no-print-directory VENV=.venv-$* PYTHON=$(call find_python,$*) test; fi

bench: $(VENV)/spark.stamp  ## measure, write tests/bench/REPORT.md (C compiler; Java for some rows)
	PYTHONPATH=tests $(BIN)/python -m bench $(BENCH_ARGS)

KERNEL_TESTS := tests/formats tests/fuzz $(wildcard tests/engine/log/test_walk*.py) \
  tests/engine/checks/test_verify_healthy.py tests/engine/checks/test_plain_pass.py
PLAIN := formats/_kernels.py formats/_rendering.py formats/_offset_commits.py
CHECKED := $(patsubst formats/%.py,build/checked/%.so,$(PLAIN))

test-kernels: $(VENV)/dev.stamp $(CHECKED)  ## run what uses the kernels on their other builds
	LOGTOOL_KERNELS="$(PLAIN)" $(BIN)/python -m pytest -m "not long" -n auto $(KERNEL_TESTS) $(PYTEST_ARGS)
	LOGTOOL_KERNELS="$(CHECKED)" $(BIN)/python -m pytest -m "not long" -n auto $(KERNEL_TESTS) \
	  tests/commands/test_dump_blocks.py $(PYTEST_ARGS)

# The kernels with every index checked: what reads outside its bytes is an error there.
build/checked/%.so: formats/%.py formats/%.pxd $(wildcard formats/_*.h) $(VENV)/dev.stamp
	mkdir -p build/checked
	sed '1s/boundscheck=False/boundscheck=True/' formats/$*.py > build/checked/$*.py
	cp formats/$*.pxd build/checked/
	$(BIN)/cython -3 build/checked/$*.py
	cc -shared -fPIC -O1 -Iformats \
	  -I$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_paths()["include"])') \
	  build/checked/$*.c -o $@

FUZZ_ARGS ?= --seconds 60
.PHONY: fuzz
fuzz: $(VENV)/fuzz.stamp $(CHECKED)  ## look for bytes that break a parser, guided by coverage
	PYTHONPATH=tests $(BIN)/python -m fuzz $(FUZZ_ARGS)

MUTATE_ARGS ?= --runs 2000
.PHONY: mutate
mutate: $(VENV)/test.stamp  ## run all commands in all formats on mutated log dirs, hold them against the contract
	PYTHONPATH=.:tests $(BIN)/python -m fuzz.directories $(MUTATE_ARGS)

OUTPUTS_ARGS ?= --base HEAD
.PHONY: outputs
outputs: $(VENV)/test.stamp  ## compare what every command prints and writes with a base commit
	PYTHONPATH=.:tests $(BIN)/python -m outputs $(OUTPUTS_ARGS)

FAULTS_ARGS ?=
.PHONY: faults
faults: $(VENV)/test.stamp  ## apply seeded faults to a copy, one at a time; fails if no test notices one
	PYTHONPATH=tests $(BIN)/python -m faults $(FAULTS_ARGS)

DIST_ARGS ?=
.PHONY: dist
dist: $(VENV)/test.stamp  ## build wheels, sources, a single file and a .deb in clean environments, try each
	PYTHONPATH=tests $(BIN)/python -m packages $(DIST_ARGS)

lint: $(VENV)/dev.stamp  ## style, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/lint_asserts.py tests
	$(BIN)/python tests/stale.py
	$(BIN)/python tests/lint_prose.py commands logtool formats tests man *.md Makefile setup.py pyproject.toml
	$(BIN)/mypy -p logtool
	$(BIN)/mypy --config-file tests/mypy.ini tests
	$(BIN)/lint-imports

generate: $(VENV)/run.stamp  ## write man/ and completions/ from the commands' own help
	$(BIN)/logtool generate .

AUDIT_ARGS ?=
.PHONY: audit
audit: $(VENV)/dev.stamp  ## check hashes and licences of the lock, without a network
	$(BIN)/python tests/audit.py $(AUDIT_ARGS)

log-dirs: $(VENV)/test.stamp  ## start brokers on faulty log dirs, write tests/broker/reports/log-dirs.md
	$(BIN)/python tests/broker/log_dirs_report.py

loads: $(VENV)/test.stamp  ## start brokers on many logs, write tests/broker/reports/loads.md
	$(BIN)/python tests/broker/loads.py

estimates: $(VENV)/test.stamp  ## time recoveries by brokers, write tests/broker/reports/estimates.md
	$(BIN)/python tests/broker/estimates.py $(ESTIMATES_ARGS)

fixtures: $(VENV)/test.stamp  ## make tests/data anew with real brokers (Java 17, Maven)
	$(BIN)/python tests/broker/regenerate.py

lock: $(VENV)/dev.stamp  ## resolve requirements.lock anew, with the hash of every file
	$(BIN)/pip install -q uv
	$(BIN)/python tests/locked.py --names build | $(BIN)/uv pip compile -q pyproject.toml - \
	  --all-extras --universal --python-version 3.11 --no-header --generate-hashes --upgrade -o $(LOCK)
	$(BIN)/uv pip compile -q requirements-lowest.txt --no-deps --universal --python-version 3.11 \
	  --no-header --no-annotate --generate-hashes -o requirements-lowest.txt

clean:  ## remove what the other targets made
	rm -rf $(VENV) $(LOWEST) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis \
	  .import_linter_cache

.PHONY: outputs-killed
outputs-killed: $(VENV)/test.stamp  ## kill every command with --output at every call, write tests/bench/reports/kills/OUTPUTS.md
	PYTHONPATH=tests $(BIN)/python -m crash.outputs

.PHONY: serialized
serialized:  ## serialize records with Confluent's client, write tests/serialized.json
	$(PYTHON) -m venv build/serialized
	build/serialized/bin/pip install -q "confluent-kafka[avro,json,protobuf]>=2.16,<3"
	build/serialized/bin/python tests/serialized.py

.PHONY: airflow
airflow: $(VENV)/spark.stamp  ## run the DAG of logtool-fleets in Apache Airflow, write the report (Java 17)
	PYTHONPATH=.:tests $(BIN)/python tests/airflow_dag.py

.PHONY: kills
kills: $(VENV)/test.stamp  ## kill every command that writes at every call, write tests/bench/reports/kills
	PYTHONPATH=tests $(BIN)/python -m crash

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "logtool needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)

# What is compiled: after a change of it, as after a pull, it is built again.
KERNELS := $(PLAIN) $(wildcard formats/*.pxd formats/*.h)

# What groups of requirements need is installed as locked, each file held to its hash; then logtool
# itself, which has no hash. pip looks for nothing that the lock does not name: it would take a newer
# release for a name with an extra, such as coverage[toml], on the day that one appears, and refuse
# it for want of a hash. Whether the lock names everything is asked at the end. What builds is
# locked too, and comes first.
PIP := pip install -q --disable-pip-version-check --no-build-isolation --no-deps
define build
	$(1)/bin/python tests/locked.py build > $(1)/locked-build.txt
	$(1)/bin/$(PIP) --require-hashes -r $(1)/locked-build.txt
	$(1)/bin/$(PIP) -e .
endef
define install
	$(1)/bin/python tests/locked.py $(2) > $(1)/locked.txt
	$(1)/bin/$(PIP) --require-hashes -r $(1)/locked.txt
	$(1)/bin/pip check --disable-pip-version-check
endef

# The C compiler takes most of the time, so one build serves all groups of requirements.
$(VENV)/built.stamp: $(BIN)/python pyproject.toml $(LOCK) $(KERNELS)
	$(call build,$(VENV))
	@touch $@

$(VENV)/run.stamp: $(VENV)/built.stamp
	$(call install,$(VENV),run)
	@touch $@

$(VENV)/test.stamp: $(VENV)/built.stamp
	$(call install,$(VENV),run test)
	@touch $@ $(VENV)/run.stamp

$(VENV)/spark.stamp: $(VENV)/built.stamp
	$(call install,$(VENV),run test spark test-spark)
	@touch $@ $(VENV)/test.stamp $(VENV)/run.stamp

# All that the extra `spark` names, in the lowest release that it promises; the rest as locked.
$(LOWEST)/spark.stamp: pyproject.toml $(LOCK) $(KERNELS) requirements-lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(call build,$(LOWEST))
	$(call install,$(LOWEST),run test spark test-spark --instead requirements-lowest.txt)
	@touch $@

$(VENV)/dev.stamp: $(VENV)/built.stamp
	$(call install,$(VENV),run test spark dev)
	@touch $@ $(VENV)/test.stamp $(VENV)/run.stamp

$(VENV)/fuzz.stamp: $(VENV)/built.stamp
	$(call install,$(VENV),run test spark dev fuzz)
	@touch $@ $(VENV)/test.stamp $(VENV)/run.stamp $(VENV)/dev.stamp
