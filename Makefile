# Every target does the set-up it needs; `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-rust test-command test-python linux-test bench soak site wheel lint clean

# Python's files are used in place; the sources of the compiled module are the prerequisites of a build.
SOURCES := Cargo.toml Cargo.lock pyproject.toml tools/requirements.txt tools/build_backend.py \
	$(shell find crates platforms protocols experiments nearmemory tests/construction -path '*/src/*.rs' -o -name '*.toml' -o -name '*.coh' \
	-o -path 'nearmemory/*' -type f)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name text; do printf '  make %-10s %s\n' "$$name" "$$text"; done

setup: .venv/installed ## make .venv with the cohkit command and the Python package in it

.venv/installed: tools/setup $(SOURCES)
	@tools/setup
	@rm -f .venv/tests; touch $@

# Tests use a build with all checks, in the same .venv: the next `make setup` brings the fast build back.
.venv/tests: tools/setup tools/setup_tests tools/setup_linux tools/requirements-tests.txt editors/vscode/package-lock.json $(SOURCES)
	@tools/setup_tests
	@rm -f .venv/installed; touch $@

demo: setup ## construct the ECI home, check it, show a counterexample of a broken variant, and run published figures
	@tools/demo

# After the build, three parts of the tests run in parallel: none of them uses all processors.
test: .venv/tests ## install what tests need and run every test, as continuous integration does
	cargo test --workspace --locked --no-run
	@code=0; $(MAKE) --no-print-directory --jobs 3 --keep-going test-rust test-command test-python || code=$$?; tools/test_times; exit $$code

# Do not pass this make's flags to builds that tests start.
test-rust test-command test-python: export MAKEFLAGS :=
# Each Verilated library has the same runtime library: its compiled files are shared.
test-rust test-command test-python: export OBJCACHE := $(shell command -v ccache)
test-rust test-command test-python: export CCACHE_DIR := $(CURDIR)/target/ccache

test-rust:
	@mkdir -p target; cargo test --workspace --exclude cohkit --locked --no-fail-fast 2>&1 | tee target/rust.log

# Their output is shown at the end, so that the parts' outputs are not mixed.
test-command:
	@mkdir -p target; code=0; cargo test --package cohkit --locked --no-fail-fast >target/command.log 2>&1 || code=$$?; cat target/command.log; exit $$code

test-python:
	@mkdir -p target; code=0; .venv/bin/pytest --durations=20 >target/pytest.log 2>&1 || code=$$?; cat target/pytest.log; exit $$code

linux-test: .venv/tests ## boot a guest with the kernel module in QEMU and run its tests there
	.venv/bin/pytest python/tests/test_linux.py

bench: .venv/tests ## measure speed
	@$(MAKE) --no-print-directory setup
	cargo bench --workspace --locked
	.venv/bin/python tools/bench_experiments

soak: .venv/tests ## run the long once-only figures and append them to records/
	tools/soak

# In a separate environment: zig is large, and only this target needs it.
wheel: ## make a wheel for any Linux with glibc 2.28 or newer in out/wheels, the lines of its sources apart
	@mkdir -p target/wheel-debug
	python3 -m venv target/wheel-venv
	target/wheel-venv/bin/pip install --quiet --disable-pip-version-check 'maturin>=1.10,<2' 'wheel>=0.45' ziglang cargo-zigbuild
	PATH="$$PWD/target/wheel-venv/bin:$$PATH" target/wheel-venv/bin/pip wheel --quiet --no-build-isolation --no-deps --wheel-dir out/wheels . \
		--config-settings build-args="--locked --zig --target x86_64-unknown-linux-gnu --compatibility manylinux_2_28"
	@ls -l out/wheels

site: .venv/tests ## make the documentation site in out/site
	.venv/bin/python tools/site

lint: .venv/tests ## check formatting, types and prose, and that no linter has anything to say
	cargo fmt --all --check
	@# As maturin sets it: otherwise clippy and the build undo each other's work on pyo3.
	PYO3_CONFIG_FILE="$$(ls "$$PWD"/target/maturin/pyo3-config-*.txt)" \
		cargo clippy --workspace --all-targets --locked -- -D warnings
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/mypy
	MYPYPATH=python .venv/bin/stubtest cohkit._cohkit
	.venv/bin/python tools/lint_prose

clean: ## remove what these targets made
	cargo clean
	rm -rf .venv out python/cohkit/_cohkit.*.so
