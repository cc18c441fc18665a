# `make help` lists the targets. Each target names missing tools, with the command that installs them. As root on Debian, every target
# except `build`, `install` and `uninstall` installs them.

PREFIX ?= /usr/local
LIBDIR ?= lib
DESTDIR ?=
SOAK_SECONDS ?= 1800

# An absolute path: commands run in other folders. ($(abspath) would take a path with a space for two.)
TARGET := $(if $(filter /%,$(CARGO_TARGET_DIR)),,$(CURDIR)/)$(or $(CARGO_TARGET_DIR),target)
CARGO ?= cargo

.PHONY: help build run try bench profiles languages budget test test-all test-nightly lint loom upstream interop bsd programs node dotnet soak fuzz asan tsan miri attack systems install uninstall clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the library: target/release/libzmq.so and libzmq.a (TLS=1 with tls+tcp and wss, which need a C compiler; NAMES=1 with name://; as your own user; INSTALL_TOOLS=1 as root installs missing tools)
	@scripts/need.sh --tell cargo:cargo gcc:gcc
	$(CARGO) build --release -p tautline-libzmq $(if $(TLS)$(NAMES),--features "$(if $(TLS),tls) $(if $(NAMES),names)")

run: ## the benchmark against libzmq 4.3.5 (FULL=1 every cell with more repeats; SCENARIO=file)
	@$(if $(FULL),FULL=$(FULL)) $(if $(SCENARIO),SCENARIO=$(SCENARIO)) scripts/run.sh

bench: ## a longer scenario: SCENARIO=matrix, fanout, topics, roundtrip, latency, crowd, crowded, memory, loans, environments, ... (bench/scenarios)
	@SCENARIO=$(or $(SCENARIO),matrix) scripts/run.sh $(ARGS)

try: ## runs and times one language on Tautline, in a minute: LANGUAGE=cpp, dotnet, go, java, mono, node, python or rust
	@PREFIX='$(PREFIX)' scripts/try.sh $(or $(LANGUAGE),cpp)

languages: ## each language on libzmq and on Tautline, into docs/results: ONLY=node,python; QUICK=1 to try it out
	@$(if $(ONLY),ONLY=$(ONLY)) $(if $(QUICK),QUICK=$(QUICK)) scripts/languages.sh $(ARGS)

profiles: ## Tautline built in each build profile, PGO too, over the whole matrix: ARGS="--pairs 2 --only transport=tcp"
	@scripts/profiles.sh $(ARGS)

budget: ## instructions of a send and a receive, and the files that they enter, against bench/budget
	@scripts/budget.sh

# Tools that the suites need. Suites that run only at a merge or at night install their other tools themselves.
TEST_TOOLS := cargo:cargo gcc:gcc g++:g++ make:make nm:binutils pkg-config:pkg-config cmake:cmake python3:python3 py=ensurepip:python3-venv \
    lib=libsodium:libsodium-dev lib=gnutls:libgnutls28-dev valgrind:valgrind ip:iproute2 pkill:procps flock:util-linux
MERGE_TOOLS := node:nodejs npm:npm go:golang-go javac:default-jdk-headless mvn:maven mcs:mono-mcs mono:mono-runtime
# Compiler caches, if they are installed.
ifneq ($(shell command -v sccache),)
test test-all test-nightly: export RUSTC_WRAPPER := sccache
endif
ifneq ($(shell command -v ccache),)
test test-all test-nightly: export CMAKE_C_COMPILER_LAUNCHER := ccache
test test-all test-nightly: export CMAKE_CXX_COMPILER_LAUNCHER := ccache
endif
empty :=
# ONLY="abi interop" runs these suites. OPTIONS are options of CTest, for example OPTIONS=--rerun-failed.
known = $(foreach one,$(ONLY),grep -q "^suite.$(one) " tests/CMakeLists.txt || { echo "there is no suite $(one)" >&2; exit 2; };)
suites = $(known) exec tests/run $(OPTIONS) $(if $(ONLY),-R '^($(subst $(empty) $(empty),|,$(strip $(ONLY))))$$',$1)

test: ## the suites that a change to the engine, the C interface or the Rust crate needs; ONLY="abi interop" names some, of any kind
	@scripts/need.sh $(TEST_TOOLS) $(if $(ONLY),--also $(MERGE_TOOLS))
	@$(call suites,-L change)

test-all: ## the suites that a merge needs: those of `make test`, programs, packages and bindings
	@scripts/need.sh $(TEST_TOOLS) --also $(MERGE_TOOLS)
	@$(call suites,-L 'change|merge$(if $(LINT),|lint)')

test-nightly: ## the other suites: other processors and systems, sanitizers, long runs, new seeds, packages of distributions; hours
	@scripts/need.sh $(TEST_TOOLS) --also $(MERGE_TOOLS) qemu-x86_64-static:qemu-user-static
	@$(call suites,-L nightly)

lint: ## formatting, house rules, planted faults, shellcheck, clippy, rustdoc, dependencies; scripts/lint.sh quick or slow runs a part
	@CARGO='$(CARGO)' scripts/lint.sh

loom: ## the concurrent parts under every interleaving
	@tests/rust/loom.sh

upstream: ## libzmq's own behaviour tests on our library
	@tests/wire/upstream/run.sh

interop: ## exchange with libzmq, JeroMQ, go-zeromq, omq-tokio, zmq.rs and peers written from raw bytes
	@tests/wire/interop/run.sh
	@tests/wire/implementations/run.sh

bsd: ## the code for macOS and the BSDs, on an imitation of their calls: unit tests, libzmq's own, the C ABI, interoperability
	@tests/host/bsd/run.sh

programs: ## real programs, unmodified: pyzmq, Node.js, Go, Rust, Jupyter, locust, rsyslog, PHP ... (PREFIX=baseline: on libzmq 4.3.5)
	@tests/world/programs/run.sh

node: ## the Node.js package with its addon for this platform: target/npm/tautline-*.tgz
	@scripts/need.sh cargo:cargo gcc:gcc node:nodejs npm:npm
	@rm -rf '$(TARGET)/node/package'
	@CARGO_TARGET_DIR='$(TARGET)/node' node bindings/node/scripts/build.mjs --out '$(TARGET)/node/package'
	@mkdir -p '$(TARGET)/npm' && cd '$(TARGET)/node/package' && npm pack --pack-destination '$(TARGET)/npm'

dotnet: ## our .NET binding, compiled with Mono's compiler into target/bindings/dotnet, and its tests
	@tests/ship/dotnet/run.sh

soak: ## connect, kill, reconnect, terminate for SOAK_SECONDS (1800)
	@SOAK_SECONDS=$(SOAK_SECONDS) tests/host/soak/run.sh

fuzz: ## coverage-guided fuzzing of every target for SECONDS (60) each; TARGETS="null curve" for these only
	@scripts/fuzz.sh $(or $(SECONDS),60) $(TARGETS)

asan: ## the tests of the C ABI and of the Python module with AddressSanitizer
	@scripts/asan.sh

tsan: ## the tests of the engine and its I/O with ThreadSanitizer; FILTER="inbound:: pipe::" for these only
	@$(if $(FILTER),FILTER="$(FILTER)") scripts/tsan.sh

miri: ## memory, messages and parts of the queue under Miri
	@scripts/miri.sh

systems: ## packages for distributions, installed, used and removed in Debian 12 and 13; recipes for package managers. As root
	@tests/ship/distro/run.sh
	@tests/ship/distro/recipes.sh

attack: ## memory, processor time and replies to a good client under some hundred attacks, compared with libzmq 4.3.5; APART=1 reserves a core for that client; OLD=folder of a third library
	@$(if $(OLD),OLD=$(OLD)) $(if $(APART),APART=$(APART)) tests/wire/attacks/run.sh --table

# `install` and `uninstall` do not build: root may have no Rust, and the owner of the tree cannot replace files that root built.
# `make build install` builds first.
ifneq ($(filter build,$(MAKECMDGOALS)),)
install: build
endif
install uninstall: export PREFIX := $(PREFIX)
install uninstall: export LIBDIR := $(LIBDIR)
install uninstall: export DESTDIR := $(DESTDIR)
install: export DRAFTS := $(DRAFTS)
install: ## installs the built library to PREFIX (/usr/local), LIBDIR (lib), DESTDIR; DRAFTS=1 announces the draft interface
	@packaging/install.sh install

uninstall: ## removes the files that `make install` installed, and restores the files that it replaced
	@packaging/install.sh uninstall

clean: ## removes all build results, also the libzmq for comparison
	$(CARGO) clean
