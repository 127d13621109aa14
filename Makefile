# The targets, each with the line that bare `make` prints for it after "##".

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# A number of inputs, not a time: the deadline of a time is sometimes taken for a failure.
FUZZTIME ?= 20000x
BENCH ?= .
BENCHTIME ?= 1s
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.7.0

.PHONY: help build test race fuzz bench validate experiments lint docs-check arm64 slurm-test check

help:
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/llmsim
	$(GO) build -o bin/llmsim ./cmd/llmsim

test: ## run all tests
	$(GO) test ./...

race: ## run the tests with the race detector, without the longest
	$(GO) test -race -short ./...

fuzz: ## fuzz every target for FUZZTIME (20000x: inputs)
	@$(GO) test -list '^Fuzz' ./... \
	| awk '/^Fuzz/ { name[++n] = $$1 } /^ok/ { for (i = 1; i <= n; i++) print $$2, name[i]; n = 0 }' \
	| while read -r package target; do \
		echo "fuzz $$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x "$$package" </dev/null; \
	done

bench: ## run the benchmarks: BENCH (all) for BENCHTIME (1s) each
	@$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) ./... | grep -v 'no test files' | grep -Ev '^(PASS|ok)'

validate: ## errors against the measured runs of $LLMSIM_DATA (../shared/data), also into docs/validation.md
	@$(GO) run ./cmd/llmsim validate "$${LLMSIM_DATA:-../shared/data}/measured"
	@LLMSIM_REQUIRE_DATA=1 $(GO) test -count=1 -run 'TestDocuments/docs/validation.md' ./internal/docscheck -update

experiments: ## predict, measure and judge every experiment, and check the committed figures of the scenarios
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	$(GO) build -o "$$folder/llmsim" ./cmd/llmsim; \
	"$$folder/llmsim" experiment predict --dir "$$folder" >/dev/null; \
	"$$folder/llmsim" experiment measure --virtual --dir "$$folder" >/dev/null; \
	"$$folder/llmsim" experiment judge --dir "$$folder"; \
	"$$folder/llmsim" check scenarios/expect/*.yaml

lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l $$(find . -name '*.go' -not -path './.*')); \
	if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

docs-check: ## run every command of README.md and docs/ and compare what it prints
	$(GO) test -count=1 ./internal/docscheck

arm64: ## no fused products for arm64, and the same bytes as amd64 (under qemu-aarch64-static)
	LLMSIM_ARM64=$${LLMSIM_ARM64:-1} $(GO) test -count=1 -v ./internal/portable

slurm-test: ## docs/scale-out's array on a real Slurm of one node (as root; installs Debian's slurm-wlm)
	@GO='$(GO)' internal/slurm/run

check: ## everything CI runs
	@.ci/run
