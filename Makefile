# Bare `make` lists the targets. Each is one command; CI runs the same ones.
SHELL := /bin/bash
.DEFAULT_GOAL := help
CARGO ?= cargo
DEMO_DIR ?= demo
PYTHON ?= python3
DIST_DIR ?= dist
PYTHON_VENV ?= target/python-venv
# Every build resolves the features of the whole workspace, those of the wheel included: where
# they differ, third parties are built anew.
WORKSPACE := --locked --workspace --features airmile-python/extension
export PYO3_NO_PYTHON := 1
OPTIMISED := $(CARGO) build --release $(WORKSPACE) --bin
TARGET := $(or $(CARGO_TARGET_DIR),target)
RELEASE := $(TARGET)/release
# Suites that run our programs use the build of the tests: our own crates optimised a little,
# overflow checks and debug assertions on.
TESTED := $(CARGO) test $(WORKSPACE) --no-run --quiet
TESTS := $(TARGET)/debug
AIRMILE ?= $(RELEASE)/airmile
DEMO := $(or $(BIN),$(TARGET)/demo/airmile)
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
# What builds the wheel; the same as in pyproject.toml.
MATURIN ?= maturin==1.16.0

.PHONY: help quick links site scale build demo check fmt lint test docs accuracy bench differential kernel-tcp kernel-causes study-traffic test-realtime soak-realtime measure-realtime player fuzz fuzz-commands crash deny units wheel test-python \
	test-claw test-qcut release-qcut package-qcut measure-qcut cpu-qcut soak-qcut soak-live fuzz-http measure-live web web-check test-web test-browser performance pictures clean \
	release msrv test-install

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

build: ## build the airmile command (target/release/airmile)
	$(OPTIMISED) airmile

# The first build of a clone: what takes long to optimise is not (Cargo.toml, profile.demo), and
# commands that use a network or a modem are left out (crates/airmile-cli/Cargo.toml, features).
demo: ## build the command fast (target/demo/airmile), make two sample logs and diagnose them; BIN=... takes a built airmile
	$(if $(BIN),,$(CARGO) build --locked --profile demo -p airmile-cli --no-default-features --bin airmile)
	$(DEMO) lab run sample-download --force -o $(DEMO_DIR)/sample-download
	$(DEMO) lab run sample-rate-limited --force -o $(DEMO_DIR)/sample-rate-limited
	$(DEMO) diagnose $(DEMO_DIR)/sample-download/modem.mi2log
	$(DEMO) diagnose $(DEMO_DIR)/sample-rate-limited/modem.mi2log

check: fmt lint test accuracy docs ## before a commit: format, lints, tests, accuracy bars, docs; CI asks more

# The cores have few dependencies, so that choosing them by package builds little anew.
CORES := model decode capture pseudonym radio wire blind control
quick: fmt ## while you work: format, lints, unit tests of the cores that are quick to run
	$(CARGO) clippy $(WORKSPACE) --all-targets -- -D warnings
	$(CARGO) test --locked --lib $(CORES:%=-p airmile-%)

fmt: ## formatting, checked
	$(CARGO) fmt --all --check

lint: ## lints, as errors
	$(CARGO) clippy $(WORKSPACE) --all-targets -- -D warnings

test: ## all tests, corpora of the fuzz targets included (ONLY="--test it documents")
	$(CARGO) test $(WORKSPACE) $(ONLY)

docs: ## API documentation, warnings as errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(WORKSPACE) --no-deps

accuracy: ## errors against known truth, beside the papers' figures; fails under a bar
	$(TESTED)
	$(TESTS)/airmile-accuracy

bench: ## decoding, inference and packets beside bare loops and peers, memory
	python3 -m venv target/bench-venv
	target/bench-venv/bin/pip -q install signalcat==2.1.2 || echo "SKIPPED: signalcat cannot be installed"
	$(OPTIMISED) airmile-bench
	scat=target/bench-venv/bin/scat; $(RELEASE)/airmile-bench $$([ ! -x $$scat ] || echo --signalcat $$scat)

differential: ## our decode of the sample logs against another decoder's, packets against tshark and tcptrace
	$(CARGO) test --locked --release -p airmile-decode --test it -- --nocapture reference::
	$(OPTIMISED) airmile-accuracy
	$(RELEASE)/airmile-accuracy --peers

test-claw: ## CLAW beside nginx through the lab in real time, against Cubic; root, clang, nginx, curl (SKIPPED without)
	@command -v clang >/dev/null || { echo "SKIPPED: needs clang"; exit 0; }; \
	[ "$$(id -u)" = 0 ] || { echo "SKIPPED: needs root"; exit 0; }; \
	$(OPTIMISED) airmile --features airmile-cli/bpf && $(PYTHON) tests/claw/privileges.py $(AIRMILE) && $(PYTHON) tests/claw/measure.py $(AIRMILE)

kernel-tcp: ## the emulated TCP against the kernel's over one link; needs root (SKIPPED without)
	$(PYTHON) tests/kernel/compare.py

kernel-causes: build ## known causes over the kernel's TCP through the lab in real time, beside their bars (SEED=1); needs root (SKIPPED without)
	$(PYTHON) tests/kernel/causes.py $(AIRMILE) --seed $(or $(SEED),1)

study-traffic: build ## packets on real traffic whose losses are known (SECONDS=30); needs root (SKIPPED without), curl, iperf3
	$(PYTHON) tests/kernel/study.py $(AIRMILE) $(or $(SECONDS),30)

test-realtime: ## the lab in real time and captures of an interface in network namespaces; root or user namespaces (SKIPPED without)
	$(CARGO) test $(WORKSPACE) --test it -- --ignored --nocapture --test-threads=1

soak-realtime: build ## two hundred runs in real time in a row: nothing may be left (SKIPPED without namespaces)
	$(PYTHON) tests/realtime/soak.py $(AIRMILE) 200

measure-realtime: build ## iperf3 through the lab in real time: rate and lateness beside their bars; needs iperf3
	$(PYTHON) tests/realtime/measure.py $(AIRMILE)

test-qcut: ## airmile qcut in namespaces: what it changes is put back however it ends; BIN=... takes a built airmile; root (SKIPPED without)
	$(if $(BIN),,$(TESTED))
	$(PYTHON) tests/qcut/restore.py $(or $(BIN),$(TESTS)/airmile)

measure-qcut: ## a page beside an upload with each deployment, through the lab in real time; root, iperf3 (SKIPPED without)
	$(if $(BIN),,$(OPTIMISED) airmile)
	$(PYTHON) tests/qcut/measure.py $(or $(BIN),$(AIRMILE))

# Those that need nothing but rustup. Others (armv7, mipsel, mips) need rust-src and zig: docs/qcut.md.
QCUT_MACHINES ?= aarch64 x86_64
QCUT_MOST_BYTES := 3000000
release-qcut: ## airmile-qcut for routers: static, small (dist/airmile-qcut-MACHINE); sizes beside their bar (QCUT_MACHINES="armv7 mipsel mips"; a machine whose tools are not there is SKIPPED)
	@mkdir -p $(DIST_DIR) && rm -f $(QCUT_MACHINES:%=$(DIST_DIR)/airmile-qcut-%)
	@for machine in $(QCUT_MACHINES); do \
	  CARGO="$(CARGO)" PYTHON="$(PYTHON)" packaging/openwrt/build.sh $$machine $(DIST_DIR)/airmile-qcut-$$machine || exit 1; done
	$(PYTHON) tests/qcut/program.py $(QCUT_MOST_BYTES) $(QCUT_MACHINES:%=$(DIST_DIR)/airmile-qcut-%)

package-qcut: release-qcut ## packages for OpenWrt (dist/*.ipk, and *.apk where apk-tools 3 is), tried in a root of their own; root (SKIPPED without)
	@for machine in $(QCUT_MACHINES); do [ ! -e $(DIST_DIR)/airmile-qcut-$$machine ] || \
	  $(PYTHON) packaging/openwrt/package.py $(DIST_DIR)/airmile-qcut-$$machine $$machine $(DIST_DIR) || exit 1; done
	@[ ! -e $(DIST_DIR)/airmile-qcut-$$(uname -m) ] && echo "SKIPPED: no program of this machine" || \
	  $(PYTHON) tests/qcut/openwrt.py $(DIST_DIR)/airmile-qcut-$$(uname -m)

cpu-qcut: ## processor time of each deployment at 50 Mbit/s up beside its bar; root, iperf3 (SKIPPED without)
	$(if $(BIN),,$(OPTIMISED) airmile)
	$(PYTHON) tests/qcut/cpu.py $(or $(BIN),$(AIRMILE))

soak-qcut: ## the gate over 30 simulated hours of rate changes, silences and handovers: nothing lost, nothing stuck
	$(CARGO) run --release --locked -p airmile-control --example soak_qcut -- --hours 30

soak-live: ## a day of airmile live in minutes: memory by the hour, which may not grow
	$(CARGO) run --release --locked -p airmile-live --example soak -- --hours 24

measure-live: build ## airmile live on 100 Mbit/s of packets and a modem stream: CPU beside its bar; root, iperf3 (SKIPPED without)
	$(PYTHON) tests/live/measure.py $(AIRMILE)

fuzz-http: ## requests by the interface's own document against airmile live (schemathesis; SKIPPED where pip cannot have it); BIN=... takes a built airmile
	$(if $(BIN),,$(TESTED))
	$(PYTHON) tests/live/fuzz_http.py $(or $(BIN),$(TESTS)/airmile)

player: lab/player/node_modules ## install the lab's DASH player (lab/player) with npm; it needs Chromium and ffmpeg

lab/player/node_modules: lab/player/package-lock.json
	cd lab/player && npm ci --no-audit --no-fund && touch node_modules

fuzz: ## a million mutated frames and files, on all cores, none may panic
	$(TESTED)
	seq $$(nproc) | xargs -P 0 -I SEED $(TESTS)/airmile-fuzz --iterations $$((1000000 / $$(nproc))) --seed SEED

fuzz-commands: ## whole commands on mutated files with overflow checks (MUTANTS=5000 SEED=1 SECONDS=...); BIN=... takes a built airmile
	$(if $(BIN),,$(TESTED))
	$(PYTHON) tests/hostile/fuzz_commands.py $(or $(BIN),$(TESTS)/airmile) --mutants $(or $(MUTANTS),5000) --seed $(or $(SEED),1) $(if $(SECONDS),--seconds $(SECONDS))

crash: ## commands killed at each of their writes (POINTS=25): no part of a file has a final name; BIN=... takes a built airmile; strace (SKIPPED without)
	$(if $(BIN),,$(TESTED))
	$(PYTHON) tests/hostile/crash.py $(or $(BIN),$(TESTS)/airmile) --points $(or $(POINTS),25)

DENY := target/tools/bin/cargo-deny
deny: ## licences, sources and advisories of third parties (deny.toml); installs cargo-deny into target/tools
	@[ -x $(DENY) ] || CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_TARGET_DIR=target/tools/build \
	  $(CARGO) install --quiet --locked --root target/tools --version 0.20.2 cargo-deny
	$(DENY) --workspace --all-features check licenses bans sources
	@if git ls-remote https://github.com/RustSec/advisory-db HEAD >/dev/null 2>&1; then $(DENY) --workspace --all-features check advisories; \
	  else echo "SKIPPED: advisories: github.com/RustSec/advisory-db cannot be reached"; fi

units: ## exposure of the systemd services, under 3.0 (SKIPPED without systemd-analyze)
	@command -v systemd-analyze >/dev/null || { echo "SKIPPED: no systemd-analyze"; exit 0; }; \
	for unit in packaging/systemd/*.service; do \
	  set -o pipefail; systemd-analyze security --offline=true --no-pager --threshold=30 $$unit | tail -1 || exit 1; done

wheel: ## build the Python package with the command in it (dist/*.whl; PROFILE=release); needs Rust and Python 3.11
	rm -rf target/wheel-venv $(DIST_DIR)/airmile-*.whl
	$(PYTHON) -m venv target/wheel-venv
	target/wheel-venv/bin/pip install --quiet '$(MATURIN)'
	target/wheel-venv/bin/maturin build --profile $(or $(PROFILE),release) --locked --out $(DIST_DIR)
	@for wheel in $(DIST_DIR)/airmile-*.whl; do case $$wheel in *-linux_*.whl) \
	  echo "error: $$wheel has no manylinux or musllinux tag: something in it needs more than any of them allows (target/wheel-venv/bin/maturin build -v says what). For this machine alone: pip install ." >&2; \
	  exit 1;; esac; done

# packaging/release.sh has a function for each part: binaries deb wheels sbom npm container checksums.
release: ## static binaries, wheels and .deb for x86_64 and aarch64, SBOM, image, sums into dist/; needs pip (ARCHES=x86_64)
	packaging/release.sh all

release-%:
	packaging/release.sh $*

msrv: ## the oldest Rust that Cargo.toml states compiles all crates (SKIPPED where rustup cannot have it)
	@rustup run $(MSRV) rustc --version 2>/dev/null || rustup toolchain install $(MSRV) --profile minimal --no-self-update >/dev/null 2>&1 || \
	  { echo "SKIPPED: Rust $(MSRV) cannot be installed here"; exit 0; }; \
	CARGO_TARGET_DIR=$(TARGET)/msrv rustup run $(MSRV) cargo check $(WORKSPACE)

test-install: ## the static binary, the wheel and the .deb in empty roots: a sample and its diagnosis, under 10 s (SKIPPED without root or mirror)
	$(PYTHON) tests/install/empty_root.py $(DIST_DIR) $(or $(BIN),$(wildcard $(TARGET)/*-linux-musl/$(or $(PROFILE),dist)/airmile))

test-python: wheel ## install the wheel where there is no compiler, and run the Python tests
	rm -rf $(PYTHON_VENV)
	$(PYTHON) -m venv $(PYTHON_VENV)
	export PATH="$(CURDIR)/$(PYTHON_VENV)/bin:/usr/bin:/bin" MPLBACKEND=Agg; \
	  pip install --quiet $(DIST_DIR)/airmile-*.whl -r python/tests/requirements.txt && \
	  python -m pytest -q

web: web/node_modules ## build the HTML report's program (web/dist, committed) with npm
	cd web && npm run --silent types && npm run --silent build

web-check: web/node_modules ## types are strict, and web/dist and web/keep-warm/dist are what the source gives
	cd web && npm run --silent check

test-web: web/node_modules ## unit tests of the report's program and of keep-warm
	cd web && npm run --silent test

test-browser: web/node_modules lab/player/node_modules ## use reports in Chromium, from disk, and keep-warm with real players (SKIPPED where it is absent); BIN=... takes a built airmile
	$(if $(BIN),,$(TESTED))
	cd web && AIRMILE=$(abspath $(or $(BIN),$(TESTS)/airmile)) npm run --silent test-browser

pictures: build web/node_modules ## take the pictures of README and site (docs/pictures) in Chromium
	cd web && AIRMILE=$(abspath $(AIRMILE)) npm run --silent pictures

performance: build web/node_modules ## size and frames of a report of ten million TTIs
	cd web && AIRMILE=$(abspath $(AIRMILE)) npm run --silent performance

web/node_modules: web/package-lock.json
	cd web && npm ci --no-audit --no-fund && touch node_modules

links: ## relative links and anchors of all Markdown lead somewhere, names in docs/papers exist; the index of decisions is current
	$(PYTHON) tests/docs/links.py .
	$(PYTHON) tests/docs/papers.py
	$(PYTHON) tests/docs/decisions.py --check

site: links ## the documentation as a site (target/site); pip installs MkDocs
	$(PYTHON) -m venv target/site-venv
	target/site-venv/bin/pip install --quiet -r tests/docs/requirements.txt
	target/site-venv/bin/mkdocs build --strict --quiet
	mkdir -p target/site/schema/v1 && cp docs/schema/*.json target/site/schema/v1/

scale: ## ten million packets on two Ray workers beside one process: rows, CPU (three rounds), a killed worker; needs make test-python's venv
	$(PYTHON_VENV)/bin/pip install --quiet numpy 'airmile[ray]' && rm -rf target/scale
	PATH="$(CURDIR)/$(PYTHON_VENV)/bin:$$PATH" $(PYTHON_VENV)/bin/python tests/scale/measure.py airmile 10000000 20 target/scale

clean: ## remove what was built
	$(CARGO) clean
	rm -rf $(DEMO_DIR) $(DIST_DIR) target/wheel-venv $(PYTHON_VENV)
