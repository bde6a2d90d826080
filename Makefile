# Every task has a target here; `make help` lists them. Everything else is plain cargo.

CARGO ?= cargo
LANEMARK = $(CARGO) run --quiet --release --locked -p lanemark-cli --
FUZZ_SECONDS ?= 60
# Part of the names of the tests that `test-qemu` runs; all if it is empty.
GUEST_TESTS ?=

# Pages have sliders in every build of this file; `LANEMARK_LIVE=0 make` leaves them out.
export LANEMARK_LIVE ?= 1

.DEFAULT_GOAL := build
.PHONY: help wasm build install-c conform test every-test test-qemu test-iommufd test-kmod-debug test-runtimes test-rtl prove synthesise rtl-platform test-python test-long test-browser test-ssh runtimes ptxas lint bench reproduce dependencies schemas corpus picture fuzz mutants structures
.DELETE_ON_ERROR:

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 12

# What runs in a browser is compiled for it.
wasm:
	@rustup target add wasm32-unknown-unknown >/dev/null 2>&1 || \
		echo "pages will have no sliders, unless the compiler has the target: rustup target add wasm32-unknown-unknown"

build: wasm ## build the optimised program, target/release/lanemark
	$(CARGO) build --release --locked

install-c: ## build the C library and install it: PREFIX=/usr/local, LIBDIR=PREFIX/lib, DESTDIR=
	$(CARGO) build --release --locked -p lanemark-capi
	@PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" DESTDIR="$(DESTDIR)" crates/capi/install "$${CARGO_TARGET_DIR:-target}/release"

test: wasm ## run every test: units, documents, house, papers, real kernel, runtimes, browser, ssh
	@checks/total $(MAKE) --no-print-directory every-test

# A failure does not hide others: every step runs, and the last status is that of a failed one.
# Each of these tests is named in the whole workspace, because a package alone is compiled again: with fewer features.
every-test:
	@status=0; \
	$(CARGO) test --workspace --locked --no-fail-fast || status=$$?; \
	$(MAKE) --no-print-directory --keep-going test-qemu test-runtimes test-python test-browser test-ssh || status=$$?; \
	exit $$status

test-qemu: ## run the tests on a real kernel with emulated cards; unpacked into .tools/, nothing installed
	@status=0; skipped=; checks/guest/fetch || status=$$?; \
	if [ $$status -eq 77 ] && [ -z "$$LANEMARK_REQUIRE_QEMU" ]; then \
		skipped="a real kernel, for the reason before the tests"; \
	elif [ $$status -ne 0 ]; then \
		exit $$status; \
	fi; \
	status=0; no_module=; [ -n "$$skipped" ] || checks/guest/headers || status=$$?; \
	if [ $$status -eq 77 ] && [ -z "$$LANEMARK_REQUIRE_QEMU" ]; then \
		no_module="our kernel module, for the reason before the tests"; \
	elif [ $$status -ne 0 ]; then \
		exit $$status; \
	fi; \
	LANEMARK_SKIPPED_QEMU="$$skipped" LANEMARK_SKIPPED_KMOD="$$no_module" \
		$(CARGO) test --locked --workspace --test guest -- $(GUEST_TESTS)

# The usual kernel's package also has the programs of the guest.
test-iommufd: ## run the tests of VFIO on kernels with iommufd, which it builds; takes ten minutes of a processor the first time
	@status=0; skipped=; { checks/guest/fetch && checks/guest/kernel iommufd; } || status=$$?; \
	if [ $$status -eq 77 ] && [ -z "$$LANEMARK_REQUIRE_IOMMUFD" ]; then \
		skipped="a kernel with iommufd, for the reason before the tests"; \
	elif [ $$status -ne 0 ]; then \
		exit $$status; \
	fi; \
	status=0; for kernel in guest-kernel-iommufd guest-kernel-iommufd-groups; do \
		LANEMARK_GUEST_KERNEL=$$kernel LANEMARK_SKIPPED_IOMMUFD="$$skipped" \
			$(CARGO) test --locked --workspace --test guest || status=$$?; \
	done; \
	exit $$status

test-kmod-debug: ## run the tests of our kernel module under lockdep and KASAN, on a kernel that it builds; takes 20 minutes of a processor the first time
	@status=0; skipped=; { checks/guest/fetch && checks/guest/kernel debug; } || status=$$?; \
	if [ $$status -eq 77 ] && [ -z "$$LANEMARK_REQUIRE_KMOD_DEBUG" ]; then \
		skipped="a kernel with lockdep and KASAN, for the reason before the tests"; \
	elif [ $$status -ne 0 ]; then \
		exit $$status; \
	fi; \
	LANEMARK_GUEST_KERNEL=guest-kernel-debug LANEMARK_SKIPPED_KMOD="$$skipped" \
		$(CARGO) test --locked --workspace --test guest

DUT ?= duts/host.toml
conform: ## test a backend on a device that DUT=FILE names (see duts/), whose named bytes are overwritten, and print a report
	@$(CARGO) build --quiet --release --locked --workspace --bin promises
	@target/release/promises dut $(DUT)

test-runtimes: ## run the tests on an OpenCL runtime for the processor; unpacked into .tools/, nothing installed
	@status=0; skipped=; checks/runtimes/fetch || status=$$?; \
	if [ $$status -eq 77 ] && [ -z "$$LANEMARK_REQUIRE_RUNTIMES" ]; then \
		skipped="an OpenCL runtime, for the reason before the tests"; \
	elif [ $$status -ne 0 ]; then \
		exit $$status; \
	fi; \
	LANEMARK_SKIPPED_RUNTIMES="$$skipped" $(CARGO) test --locked --workspace --test runtimes

test-rtl: ## compile the designs of rtl/ with Verilator and test them and their mutants; Verilator, cocotb and Yosys are fetched into .tools/
	@status=0; skipped=; rtl/fetch || status=$$?; \
	if [ $$status -eq 77 ] && [ -z "$$LANEMARK_REQUIRE_RTL" ]; then \
		skipped="Verilator and cocotb, for the reason before the tests"; \
	elif [ $$status -ne 0 ]; then \
		exit $$status; \
	fi; \
	status=0; no_proofs=; rtl/fetch yosys || status=$$?; \
	if [ $$status -eq 77 ] && [ -z "$$LANEMARK_REQUIRE_RTL" ]; then \
		no_proofs="Yosys and Bitwuzla, for the reason before the tests"; \
	elif [ $$status -ne 0 ]; then \
		exit $$status; \
	fi; \
	LANEMARK_SKIPPED_RTL="$$skipped" LANEMARK_SKIPPED_PROOFS="$$no_proofs" \
		$(CARGO) test --locked --workspace --test rtl

prove: ## prove rules of the card of rtl/ and refute them for mutants, with Yosys and Bitwuzla; fetched into .tools/
	@rtl/prove

synthesise: ## estimate the size and the clock of the card of rtl/ with Yosys and nextpnr; fetched into .tools/
	@rtl/synthesise

rtl-platform: ## write rtl/platform.toml, the platform file of the card of rtl/, from its sources; test-rtl checks that it is current
	@rtl/platform > rtl/.platform.toml || { rm -f rtl/.platform.toml; exit 1; }
	@mv rtl/.platform.toml rtl/platform.toml

test-python: ## build the Python package and run its tests; in an environment in .tools/, nothing installed
	@status=0; checks/python/run --quiet || status=$$?; \
	if [ $$status -eq 77 ] && [ -z "$$LANEMARK_REQUIRE_PYTHON" ]; then \
		ignored=$$(cat python/tests/*.py | grep -c '^ *def test_'); \
		echo "test result: ok. 0 passed; 0 failed; $$ignored ignored; the Python package, for the reason above"; \
	elif [ $$status -ne 0 ]; then \
		exit $$status; \
	fi

test-long: ## kill fifty workers of a Dask cluster, choose copies on a thousand GPUs, send ten million TLPs to the card of rtl/; takes minutes
	@LANEMARK_LONG=1 $(CARGO) test --locked --workspace --test copy_regret
	@LANEMARK_LONG=1 checks/python/run --quiet -k killed_workers_of_dask
	@rtl/fetch
	LANEMARK_LONG=1 $(CARGO) test --locked --workspace --test rtl ten_million

test-browser: wasm ## run the tests of pages in headless Chromium; unpacked into .tools/, nothing installed
	@status=0; skipped=; checks/browser/fetch || status=$$?; \
	if [ $$status -eq 77 ] && [ -z "$$LANEMARK_REQUIRE_BROWSER" ]; then \
		skipped="a browser, for the reason before the tests"; \
	elif [ $$status -ne 0 ]; then \
		exit $$status; \
	fi; \
	LANEMARK_SKIPPED_BROWSER="$$skipped" $(CARGO) test --locked --workspace --no-fail-fast --test browser --test pages

test-ssh: ## run the tests of fleets over a real ssh server; unpacked into .tools/, nothing installed
	@status=0; skipped=; checks/ssh/fetch || status=$$?; \
	if [ $$status -eq 77 ] && [ -z "$$LANEMARK_REQUIRE_SSH" ]; then \
		skipped="an ssh server, for the reason before the tests"; \
	elif [ $$status -ne 0 ]; then \
		exit $$status; \
	fi; \
	LANEMARK_SKIPPED_SSH="$$skipped" $(CARGO) test --locked --workspace --test ssh

runtimes: ## fetch Intel's OpenCL, FPGA emulation and SYCL into .tools/ (350 MB, under Intel's licence)
	@checks/runtimes/intel

ptxas: ## fetch NVIDIA's assembler into .tools/ for the tests of CUDA kernels (52 MB, under NVIDIA's licence)
	@checks/fetch_ptxas

# Tests that `make test` runs in steps of their own, so that `--all-targets` does not have them.
OTHER_TESTS := guest runtimes rtl browser pages ssh
# Lint looks at no page.
lint: export LANEMARK_LIVE = 0
lint: ## check formatting, clippy (fuzz targets too, and aarch64 where code differs), licences and advisories of dependencies
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --workspace --locked $(OTHER_TESTS:%=--test %) -- -D warnings
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	@if command -v c++ >/dev/null; then \
		$(CARGO) clippy --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz -- -D warnings; \
	else \
		echo "skipped: fuzz targets, because there is no C++ compiler: apt-get install g++"; \
	fi
	@if rustup target add aarch64-unknown-linux-gnu >/dev/null 2>&1; then \
		$(CARGO) clippy --locked --target aarch64-unknown-linux-gnu -p lanemark-hw -p lanemark-model -p lanemark-live -- -D warnings; \
	else \
		echo "skipped: aarch64, because its standard library is not installed: rustup target add aarch64-unknown-linux-gnu"; \
	fi
	@if ! $(CARGO) deny --version >/dev/null 2>&1; then \
		echo "skipped: licences and advisories, because cargo deny is not installed: cargo install cargo-deny --locked"; \
	elif $(CARGO) deny fetch db >/dev/null 2>&1; then \
		$(CARGO) deny check; \
	else \
		echo "skipped: advisories, because their database cannot be fetched from github.com"; \
		$(CARGO) deny check bans licenses sources; \
	fi

bench: ## measure the speed of simulator, formulas and program
	$(CARGO) build --release --locked -p lanemark-cli
	$(CARGO) run --release --locked -p lanemark-checks --bin bench
	@LANEMARK_PROGRAM="$$(realpath "$${CARGO_TARGET_DIR:-target}")/release/lanemark" \
		$(MAKE) --no-print-directory GUEST_TESTS=cost:: test-qemu

reproduce: ## compare the papers under experiments/ with simulation and formula
	$(LANEMARK) reproduce

dependencies: ## compute experiments/*/dependencies.csv, the classes of published figures; takes minutes
	@for paper in experiments/*/; do \
		paper="$$(basename "$$paper")"; \
		$(LANEMARK) reproduce --dependencies "$$paper" > "experiments/$$paper/.dependencies.csv" || \
			{ rm -f "experiments/$$paper/.dependencies.csv"; exit 1; }; \
		mv "experiments/$$paper/.dependencies.csv" "experiments/$$paper/dependencies.csv"; \
		echo "wrote experiments/$$paper/dependencies.csv"; \
	done

schemas: ## write schemas/*.json from the code; a test compares them
	@mkdir -p schemas
	@for kind in platform device record doctor fleet guidance space sweep-log copies; do \
		$(LANEMARK) schema $$kind > schemas/.$$kind.json || { rm -f schemas/.$$kind.json; exit 1; }; \
		mv schemas/.$$kind.json schemas/$$kind.json; \
		echo "wrote schemas/$$kind.json"; \
	done

corpus: ## simulate the records of platforms again, and write records/corpus.json; a test compares them
	LANEMARK_BLESS=1 $(CARGO) test --quiet --locked --workspace --test corpus todays_program

picture: wasm ## draw the pictures of the README, docs/methods.svg and docs/report.png; tests compare them
	LANEMARK_BLESS=1 $(CARGO) test --quiet --locked --workspace --test docs the_picture
	checks/browser/fetch
	LANEMARK_BLESS=1 $(CARGO) test --quiet --locked --workspace --test browser the_picture

fuzz: ## run each fuzz target for a minute (FUZZ_SECONDS=60), with the pinned toolchain
	@FUZZ_SECONDS=$(FUZZ_SECONDS) fuzz/run

structures: ## fit random cards with a hidden mechanism: forty, and twelve of read data; takes minutes
	$(CARGO) test --release --locked -p lanemark-fit --test structures -- --ignored --nocapture

mutants: ## change code of wire, dma, model and sim, and count what their tests detect; takes hours
	@checks/mutants
