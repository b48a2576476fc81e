# Everything that CONTRIBUTING.md and the README promise. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test page pictures scoreboard check fuzz fmt dist dist-test

CARGO := scripts/cargo.sh
# Drops by socket (BPF). The feature needs clang, which scripts/packages.sh installs.
FEATURES := --features chokepoint/bpf

help: ## list what can be made
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## five faults before a real nginx and php-fpm: found one behind the other, fixed, proven, held against a hand-made fix, undone
	@echo "1 of 3: the packages that the demo and the build need"
	@scripts/packages.sh
	@echo "2 of 3: building: about three minutes on two cores, nothing if it is built"
	@$(CARGO) build --profile demo --package chokepoint $(FEATURES)
	@echo "3 of 3: the demo"
	@scripts/as-root.sh "$${CARGO_TARGET_DIR:-target}/demo/chokepoint" lab run throughput-collapse

test: ## all checks and all tests, as CI runs them
	@scripts/test.sh

page: ## build the page of `chokepoint watch` from ui/ (needs npm)
	@ui/page.sh build

pictures: ## write the pictures and the sample of a report in the documents anew (the picture of the page needs chromium)
	@$(CARGO) build --quiet --package chokepoint --package chokepoint-packaging
	@$(CARGO) run --quiet --package chokepoint-packaging -- picture crates/cli/tests/data/text/collapse/brief-color.txt docs/pictures
	@$(CARGO) run --quiet --package chokepoint-packaging -- sample --program "$${CARGO_TARGET_DIR:-target}/debug/chokepoint" \
	    tests/misses/worker-connections/worker-connections-few-watched.rec README.md
	@scripts/page-picture.sh

scoreboard: ## run all scenarios and a hundred random stacks again and again (hours) and write docs/scoreboard.md
	@scripts/packages.sh
	@$(CARGO) build --release --package chokepoint --package chokepoint-scoreboard $(FEATURES)
	@scripts/as-root.sh scripts/scoreboard.sh

check: ## the quick checks of `make test`: no tests, no packages
	@scripts/with-progress.sh "building the checks" $(CARGO) build --quiet --package xtask
	@$(CARGO) xtask check

fuzz: ## damaged configurations, logs, recordings, captures, maps and program files through the readers (CASES=N of each kind)
	@export CASES=$${CASES:-1000000}; export PROPTEST_CASES=$$CASES SEED=$${SEED:-$$(date +%s)}; echo "SEED=$$SEED CASES=$$CASES"; \
	$(CARGO) test --release --package chokepoint-config --package chokepoint-packets --package chokepoint-recording --package chokepoint-sources \
	    --test it hostile:: -- --nocapture && \
	$(CARGO) test --release --package chokepoint-profile --lib hostile -- --nocapture

fmt: ## format the code and write the generated pages
	@$(CARGO) fmt --all
	@$(CARGO) xtask docs --write

dist: ## a static program as .tar.gz and .deb with man pages and completions, in target/dist
	@scripts/packages.sh
	@packaging/dist.sh

dist-test: ## install the .deb in a bare Debian, diagnose its nginx as a new user would, and remove it (after `make dist`; asks for root)
	@scripts/packages.sh debootstrap lintian
	@scripts/as-root.sh packaging/dist-test.sh
