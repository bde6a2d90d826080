# One door to every task; `make help` lists them. Everything else is plain cargo.

CARGO ?= cargo
LANEMARK = $(CARGO) run --quiet --release --locked -p lanemark-cli --
FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := build
.PHONY: help build test test-qemu test-runtimes runtimes lint bench reproduce schemas fuzz
.DELETE_ON_ERROR:

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 12

build: ## the program, optimised: target/release/lanemark
	$(CARGO) build --release --locked

test: ## every test: units, documents, house, papers, real kernel
	$(CARGO) test --workspace --locked
	@$(MAKE) --no-print-directory test-qemu test-runtimes

test-qemu: ## a real kernel with emulated cards, unpacked into .tools/, nothing installed
	@status=0; checks/guest/fetch || status=$$?; \
	if [ $$status -eq 77 ] && [ -z "$$LANEMARK_REQUIRE_QEMU" ]; then \
		echo "skipped: tests on a real kernel, because of what the line above says; make test-qemu runs them"; \
	elif [ $$status -ne 0 ]; then \
		exit $$status; \
	else \
		$(CARGO) test --locked -p lanemark-checks --test guest; \
	fi

test-runtimes: ## an OpenCL runtime for the processor, unpacked into .tools/, nothing installed
	@status=0; checks/runtimes/fetch || status=$$?; \
	if [ $$status -eq 77 ] && [ -z "$$LANEMARK_REQUIRE_RUNTIMES" ]; then \
		echo "skipped: tests on an OpenCL runtime, because of what the line above says; make test-runtimes runs them"; \
	elif [ $$status -ne 0 ]; then \
		exit $$status; \
	else \
		$(CARGO) test --locked -p lanemark-checks --test runtimes; \
	fi

runtimes: ## Intel's OpenCL, its FPGA emulation and SYCL beside PoCL, in .tools/; under Intel's licence, 350 MB
	@checks/runtimes/intel

lint: ## formatting, clippy without warnings here and for aarch64, licences and advisories of dependencies
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@if rustup target add aarch64-unknown-linux-gnu >/dev/null 2>&1; then \
		$(CARGO) clippy --workspace --locked --target aarch64-unknown-linux-gnu -- -D warnings; \
	else \
		echo "skipped: aarch64, because its standard library cannot be had: rustup target add aarch64-unknown-linux-gnu"; \
	fi
	@if ! $(CARGO) deny --version >/dev/null 2>&1; then \
		echo "skipped: licences and advisories, because cargo deny is not here: cargo install cargo-deny --locked"; \
	elif $(CARGO) deny fetch db >/dev/null 2>&1; then \
		$(CARGO) deny check; \
	else \
		echo "skipped: advisories, because their database cannot be fetched from github.com"; \
		$(CARGO) deny check bans licenses sources; \
	fi

bench: ## how fast simulator, formulas and program are, side by side
	$(CARGO) build --release --locked -p lanemark-cli
	$(CARGO) run --release --locked -p lanemark-checks --bin bench

reproduce: ## the papers under experiments/ against simulation and formula
	$(LANEMARK) reproduce

schemas: ## schemas/*.json from the code; a test compares them
	@mkdir -p schemas
	@for kind in platform record doctor; do \
		$(LANEMARK) schema $$kind > schemas/.$$kind.json || { rm -f schemas/.$$kind.json; exit 1; }; \
		mv schemas/.$$kind.json schemas/$$kind.json; \
		echo "wrote schemas/$$kind.json"; \
	done

fuzz: ## each fuzz target for a minute (FUZZ_SECONDS=60), with the pinned toolchain
	@FUZZ_SECONDS=$(FUZZ_SECONDS) fuzz/run
