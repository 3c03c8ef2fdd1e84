# pawgate. "make" lists the targets; the two that matter are run and test.

GO      ?= go
ARCH    ?= arm64
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUNCTIONS := $(notdir $(wildcard functions/*))
# What Lambda runs: static, stripped, without the RPC mode that only the
# retired go1.x runtime needs.
LAMBDA  := CGO_ENABLED=0 GOOS=linux $(GO) build -trimpath -tags lambda.norpc -ldflags='-s -w'

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help run build test real check generate tool functions lambda resilience guide conformance claude sam bench bench-usage bench-memory pgvector soak fuzz

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## Start pawgate on 127.0.0.1:8080 with a private database
	@bin/pawgate serve

build: ## Build bin/pawgate
	@$(GO) build -trimpath -o bin/pawgate ./local/pawgate

test: ## Run all tests; starts a private PostgreSQL when TEST_DATABASE_URL is not set
	@$(GO) test -skip '^TestReal_' ./...

real: ## Run the tests with a real llama-server and a small model, which it builds and keeps in ~/.cache (PAWGATE_BENCH=1 measures the sidecar too)
	@set -e; settings=$$(local/sidecar/llama-server.sh); eval "$$settings"; \
		$(GO) test -count=1 -timeout 20m -v -run '^TestReal_' ./local/sidecar ./internal/client/llama/gguf

check: ## Vet, and run the repository's own rules
	@$(GO) vet ./... && $(GO) test ./internal/checks ./internal/catalog

generate: ## Write the catalogue and the README's tables from the code
	@UPDATE=1 $(GO) test -count=1 ./internal/catalog ./internal/checks -run 'Fresh' >/dev/null && git --no-pager diff --stat -- internal/catalog README.md

tool: ## Add a tool: make tool NAME=weather_today CATEGORY=web VERB=read
	@$(GO) run ./local/newtool -name "$(NAME)" -category "$(CATEGORY)" -verb "$(VERB)"

functions: ## Build every Lambda function for ARCH (arm64 or amd64) into bin/lambda
	@for f in $(FUNCTIONS); do GOARCH=$(ARCH) $(LAMBDA) -o bin/lambda/$(ARCH)/$$f/bootstrap ./functions/$$f || exit 1; done

# The slower layers drive what was built from outside. Each installs what it
# needs under .cache, or by apt.
E2E := $(GO) test -count=1 -timeout 30m -tags e2e -v ./internal/e2e

lambda: ## Run every function and event under the Lambda runtime emulator
	@.ci/lib/rie.sh >/dev/null && $(E2E) -run 'TestFunction|TestEvents|TestRouterInvokes'

resilience: build ## Take the database away, freeze functions, start many shims
	@.ci/lib/rie.sh >/dev/null && .ci/lib/pgbouncer.sh >/dev/null && $(E2E) -run 'TestResilience|TestGateProcesses'

guide: ## Follow the README's guide to a tool of one's own, in a copy of the tree
	@$(E2E) -run 'TestGuide'

conformance: build ## Run the official MCP conformance suite
	@.ci/lib/node22.sh >/dev/null && .ci/lib/conformance.sh >/dev/null && $(E2E) -run 'Conformance'

claude: build ## Connect the real Claude Code CLI and call tools with it
	@.ci/lib/node22.sh >/dev/null && .ci/lib/claude.sh >/dev/null && $(E2E) -run 'TestClaude'

sam: build ## Validate, build and run the template with the real SAM CLI
	@.ci/lib/sam.sh >/dev/null && $(GO) test -count=1 -timeout 40m -tags 'e2e sam' -v ./internal/e2e -run 'TestTemplate|TestSAM'

fuzz: ## Fuzz every target for FUZZTIME (10000x: inputs; or 30s)
	@for f in $$(grep -rl --include='*_test.go' '^func Fuzz' internal local); do for t in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$f); do \
		$(GO) test -run '^$$' -fuzz "^$$t$$" -fuzztime $${FUZZTIME:-10000x} ./$$(dirname $$f) || exit 1; done; done

bench: ## Measure what the README states, as ratios in one run
	@$(GO) test -count=1 -timeout 30m -tags bench -v -run 'TestGate|TestColdStart|TestAuditCost|TestLoad' ./internal/bench
	@$(GO) test -run '^$$' -bench 'List208' ./internal/router
	@$(GO) test -run '^$$' -bench 'Overhead' -benchtime 500x ./internal/category/odoo

bench-memory: ## Measure how well and how fast memory_search finds (PAWGATE_LOCOMO=FILE adds LoCoMo, PAWGATE_SCALE=1000,100000 sizes)
	@$(GO) test -count=1 -timeout 30m -v -run 'Labelled|Locomo' ./internal/category/memory
	@$(GO) test -v -run '^$$' -bench 'Scale' -benchtime 1x -timeout 60m ./internal/category/memory

bench-usage: ## Ask for reports over a year of ten million rows; takes minutes and gigabytes
	@$(GO) test -count=1 -timeout 60m -tags bench -v -run 'TestUsage' ./internal/bench

pgvector: ## Run memory's tests on a PostgreSQL with pgvector
	@export POSTGRES_BIN=$$(.ci/lib/pgvector.sh) && TEST_DATABASE_URL=$$(.ci/lib/postgres.sh) && export TEST_DATABASE_URL && \
		$(GO) test -count=1 ./internal/category/memory ./internal/checks; status=$$?; .ci/lib/postgres.sh stop; exit $$status

soak: build ## Load pawgate for SOAK_MINUTES (10) while its database, and those who do its work, are killed
	@$(GO) test -count=1 -timeout 90m -tags 'e2e soak' -v -run 'TestSoak' ./internal/e2e
