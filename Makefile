# pawgate. "make" lists the targets; the two that matter are run and test.

GO      ?= go
ARCH    ?= arm64
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUNCTIONS := $(notdir $(wildcard functions/*))
# What Lambda runs: static, stripped, without the RPC mode that only the
# retired go1.x runtime needs.
LAMBDA  := CGO_ENABLED=0 GOOS=linux $(GO) build -trimpath -tags lambda.norpc -ldflags='-s -w'

.DEFAULT_GOAL := help
.PHONY: help run build test check generate tool functions conformance claude rie sam bench soak fuzz

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## Start pawgate on 127.0.0.1:8080 with a private database
	@bin/pawgate serve

build: ## Build bin/pawgate
	@$(GO) build -trimpath -o bin/pawgate ./local/pawgate

test: ## Run all tests; starts a private PostgreSQL when TEST_DATABASE_URL is not set
	@$(GO) test ./...

check: ## Vet, and run the repository's own rules
	@$(GO) vet ./... && $(GO) test ./internal/checks ./internal/catalog

generate: ## Write the catalogue and the README's tables from the code
	@UPDATE=1 $(GO) test -count=1 ./internal/catalog ./internal/checks -run 'Fresh' >/dev/null && git --no-pager diff --stat -- internal/catalog README.md

tool: ## Add a tool: make tool NAME=weather_today CATEGORY=web VERB=read
	@$(GO) run ./local/newtool -name "$(NAME)" -category "$(CATEGORY)" -verb "$(VERB)"

functions: ## Build every Lambda function for ARCH (arm64 or amd64) into bin/lambda
	@for f in $(FUNCTIONS); do GOARCH=$(ARCH) $(LAMBDA) -o bin/lambda/$(ARCH)/$$f/bootstrap ./functions/$$f || exit 1; done
