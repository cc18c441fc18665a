# What can be done here: `make help`. Every target installs the tools it lacks when run as root, and names them otherwise.

PREFIX ?= /usr/local
LIBDIR ?= lib
DESTDIR ?=
SOAK_SECONDS ?= 1800

VERSION := 4.3.5
SO_VERSION := 5.2.5
TARGET := $(or $(CARGO_TARGET_DIR),target)
CARGO ?= cargo

.PHONY: help build run bench profiles languages budget test lint loom upstream interop bsd programs node dotnet soak fuzz asan tsan miri attack install uninstall clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the library: target/release/libzmq.so and libzmq.a
	@scripts/need.sh gcc:gcc cargo:cargo
	$(CARGO) build --release -p tautline-libzmq

run: ## the benchmark beside libzmq 4.3.5 (FULL=1 every cell with more repeats; SCENARIO=file)
	@$(if $(FULL),FULL=$(FULL)) $(if $(SCENARIO),SCENARIO=$(SCENARIO)) scripts/run.sh

bench: ## a longer scenario: SCENARIO=matrix, fanout, topics, roundtrip, latency, crowd, memory, ... (bench/scenarios)
	@SCENARIO=$(or $(SCENARIO),matrix) scripts/run.sh $(ARGS)

languages: ## each language on libzmq and on Tautline, into docs/results: ONLY=node,python; QUICK=1 to try it out
	@$(if $(ONLY),ONLY=$(ONLY)) $(if $(QUICK),QUICK=$(QUICK)) scripts/languages.sh $(ARGS)

profiles: ## Tautline built in each build profile, PGO too, over the whole matrix: ARGS="--pairs 2 --only transport=tcp"
	@scripts/profiles.sh $(ARGS)

budget: ## instructions of a send and a receive, against bench/budget/budget.txt
	@scripts/budget.sh

test: ## every test suite
	@.ci/test

lint := scripts/progress.sh "lint: $$step of 9, $$what" $(TARGET)/lint/$$step.log
lint: ## formatting, clippy, rustdoc, layers, sizes, unsafe, dependencies
	@step=1 what=formatting; $(lint) $(CARGO) fmt --all --check
	@step=2 what=clippy; $(lint) $(CARGO) clippy --workspace --all-targets --all-features -- -D warnings
	@step=3 what='formatting of fuzz'; $(lint) $(CARGO) fmt --manifest-path fuzz/Cargo.toml --all --check
	@step=4 what='clippy of fuzz'; $(lint) $(CARGO) clippy --manifest-path fuzz/Cargo.toml --no-default-features --all-targets -- -D warnings
	@step=5 what=documentation; $(lint) env RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --all-features --no-deps --document-private-items
	@step=6 what='formatting of the Node.js addon'; $(lint) $(CARGO) fmt --manifest-path bindings/node/Cargo.toml --check
	@step=7 what='clippy of the Node.js addon'; $(lint) env CARGO_TARGET_DIR=$(abspath $(TARGET))/node \
	    $(CARGO) clippy --manifest-path bindings/node/Cargo.toml -- -D warnings
	@step=8 what='layers, sizes, unsafe'; $(lint) $(CARGO) run -p xtask -- check
	@step=9 what='licences and sources of dependencies'; $(lint) scripts/deny.sh

loom: ## the concurrent parts under every interleaving
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(TARGET)/loom CARGO_PROFILE_RELEASE_LTO=off \
	    CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true $(CARGO) test --release -p tautline-io -p tautline-core --lib loom_

upstream: ## libzmq's own behaviour tests on our library
	@tests/upstream/run.sh

interop: ## exchange with libzmq, JeroMQ, go-zeromq, omq-tokio, zmq.rs and peers written from raw bytes
	@tests/interop/run.sh
	@tests/interop/peers.sh

bsd: ## the code for macOS and the BSDs, on an imitation of their calls: unit tests, libzmq's own, the C ABI, interoperability
	@tests/bsd/run.sh

programs: ## real programs, unmodified: pyzmq, Node.js, Go, Rust, Jupyter, locust, rsyslog, PHP ... (PREFIX=baseline: on libzmq 4.3.5)
	@tests/programs/run.sh

node: ## the Node.js package with its addon for this platform: bindings/node/tautline-*.tgz
	@scripts/need.sh cargo:cargo node:nodejs npm:npm
	@CARGO_TARGET_DIR=$(abspath $(TARGET))/node node bindings/node/scripts/build.mjs
	@cd bindings/node && npm pack

dotnet: ## our .NET binding, compiled with Mono's compiler into target/bindings/dotnet, and its tests
	@tests/bindings/dotnet.sh

soak: ## connect, kill, reconnect, terminate for SOAK_SECONDS (1800)
	@SOAK_SECONDS=$(SOAK_SECONDS) tests/soak/run.sh

fuzz: ## coverage-guided fuzzing of every target for SECONDS (60) each; TARGETS="null curve" some of them
	@scripts/fuzz.sh $(or $(SECONDS),60) $(TARGETS)

asan: ## the C ABI's tests with AddressSanitizer
	@scripts/asan.sh

tsan: ## the tests of the engine and its I/O with ThreadSanitizer; FILTER="queue:: pipe::" some of them
	@$(if $(FILTER),FILTER="$(FILTER)") scripts/tsan.sh

miri: ## the engine's messages, parts of its queue and the protocol's frames under Miri
	@scripts/miri.sh

attack: ## memory, processor time and a good client's answers under some thirty attacks, beside libzmq 4.3.5; OLD=folder of a third library
	@$(if $(OLD),OLD=$(OLD)) tests/attacks/run.sh --table

lib := $(DESTDIR)$(PREFIX)/$(LIBDIR)
include := $(DESTDIR)$(PREFIX)/include
# The draft interface is in every build. With DRAFTS=1 pkg-config and CMake tell every program so, as those of a libzmq that was
# configured with its drafts do; without, only those that ask for it.
announced := $(filter 1,$(DRAFTS))
fill = sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@VERSION@|$(VERSION)|g' \
	-e 's|@DRAFT_FLAG@|$(if $(announced), -DZMQ_BUILD_DRAFT_API=1)|g' -e 's|@DRAFTS@|$(if $(announced),TRUE,FALSE)|g' \
	-e "s|@INCLUDE_FROM_PACKAGE@|$$(realpath -ms --relative-to=$(PREFIX)/$(LIBDIR)/cmake/ZeroMQ $(PREFIX)/include)|g"

install: build ## library, header, pkg-config and CMake files to PREFIX (/usr/local), LIBDIR (lib), DESTDIR; DRAFTS=1 announces drafts
	install -d $(lib)/pkgconfig $(lib)/cmake/ZeroMQ $(include)
	install -m 755 $(TARGET)/release/libzmq.so $(lib)/libzmq.so.$(SO_VERSION)
	ln -sf libzmq.so.$(SO_VERSION) $(lib)/libzmq.so.5
	ln -sf libzmq.so.5 $(lib)/libzmq.so
	install -m 644 $(TARGET)/release/libzmq.a $(lib)/libzmq.a
	install -m 644 include/*.h $(include)
	$(fill) packaging/libzmq.pc.in > $(lib)/pkgconfig/libzmq.pc
	$(fill) packaging/libzmq-drafts.pc.in > $(lib)/pkgconfig/libzmq-drafts.pc
	$(fill) packaging/ZeroMQConfig.cmake.in > $(lib)/cmake/ZeroMQ/ZeroMQConfig.cmake
	$(fill) packaging/ZeroMQConfigVersion.cmake.in > $(lib)/cmake/ZeroMQ/ZeroMQConfigVersion.cmake
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ] && command -v ldconfig >/dev/null; then ldconfig; fi

uninstall: ## remove what `make install` put there
	rm -f $(lib)/libzmq.so.$(SO_VERSION) $(lib)/libzmq.so.5 $(lib)/libzmq.so $(lib)/libzmq.a
	rm -f $(lib)/pkgconfig/libzmq.pc $(lib)/pkgconfig/libzmq-drafts.pc $(patsubst include/%,$(include)/%,$(wildcard include/*.h))
	rm -rf $(lib)/cmake/ZeroMQ

clean: ## remove everything built, the libzmq for comparison too
	$(CARGO) clean
	rm -rf target
