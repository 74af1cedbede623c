# Mendflow. `make help` lists the targets; `make check` is the one command that CI runs.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

GOLANGCI_VERSION := v2.15.0
WORKFLOWCHECK_VERSION := v0.6.0
GOVULNCHECK_VERSION := v1.9.0

TOOLS := $(CURDIR)/.cache/bin
GOLANGCI := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
WORKFLOWCHECK := $(TOOLS)/workflowcheck-$(WORKFLOWCHECK_VERSION)
GOVULNCHECK := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)

SOURCES := $(shell find . -name '*.go' -not -path './internal/devserver/*' -not -name '*_test.go' -not -path './.cache/*') go.mod go.sum
SCHEMAS := $(shell find internal -name '*.json' -not -path '*/testdata/*' -not -path './internal/devserver/*')
# The embedded server is two modules of their own: the server, and beneath it the driver of its database, which is C.
IN_SERVER := cd internal/devserver && GOFLAGS="$${GOFLAGS-} -tags=sqlite_fts5"
IN_DRIVER := cd internal/devserver/sqlite && GOFLAGS="$${GOFLAGS-} -tags=sqlite_fts5"
SERVER_SOURCES := $(shell find internal/devserver -name '*.go' -not -name '*_test.go') internal/devserver/go.mod internal/devserver/go.sum internal/devserver/default.pgo

.PHONY: test-agents agents-skipped test-postgres vuln help build demo modernize test check bench fuzz soak format lint lint-rules tidy vet unit devserver-test workflowcheck e2e clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

build: bin/starter bin/worker bin/devserver ## build the three programs into bin/

bin/starter: $(SOURCES) $(SCHEMAS)
	go build -o $@ ./starter

bin/worker: $(SOURCES) $(SCHEMAS)
	go build -o $@ ./worker

# Its first build takes some minutes.
bin/devserver: $(SERVER_SOURCES)
	$(IN_SERVER) go build -o ../../bin/devserver .

demo: build ## run the tour from start to end against the embedded server
	examples/tour/demo

modernize: build ## bring a public repository to Go 1.26, thrice, once sabotaged; needs the Go module proxy
	examples/modernize/demo

test: check ## what the README names; the same as check

check: format lint lint-rules tidy vet unit devserver-test workflowcheck fuzz e2e agents-skipped ## everything that CI runs

format: ## refuse files that gofmt would change
	@files=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$files" ]; then echo "run gofmt -w on:"; echo "$$files"; exit 1; fi

lint: $(GOLANGCI) ## linter with the import rules, all modules
	$(GOLANGCI) run --allow-parallel-runners ./...
	$(IN_SERVER) $(GOLANGCI) run --allow-parallel-runners --config ../../.golangci.yml ./...
	$(IN_DRIVER) $(GOLANGCI) run --allow-parallel-runners --config ../../../.golangci.yml ./...

lint-rules: $(GOLANGCI) ## plant forbidden imports in a copy and see the linter refuse each
	scripts/lint-rules $(GOLANGCI)

tidy: ## refuse a go.mod that is not tidy, in all modules
	go mod tidy -diff
	$(IN_SERVER) go mod tidy -diff
	$(IN_DRIVER) go mod tidy -diff

vet:
	go vet ./...
	$(IN_SERVER) go vet ./...
	$(IN_DRIVER) go vet ./...

unit: bin/devserver ## race tests of the main module, replay of kept histories included
	go test -race -timeout 20m $$(go list ./... | grep -v '^mendflow/e2e')

devserver-test: bin/devserver
	$(IN_DRIVER) go test -timeout 10m ./...
	$(IN_SERVER) go test -timeout 10m ./...

workflowcheck: $(WORKFLOWCHECK) ## refuse workflow code that is not deterministic
	$(WORKFLOWCHECK) -config .workflowcheck.yaml ./workflows/...

e2e: build ## end-to-end tests against the embedded server
	go test -timeout 30m ./e2e/...

test-postgres: build ## the embedded server's tests and the end-to-end tests on a PostgreSQL of Debian's package
	scripts/with-postgres sh -c 'cd internal/devserver && go test -tags=sqlite_fts5 -count=1 -timeout 10m -run Postgres .'
	scripts/with-postgres go test -count=1 -timeout 40m ./e2e/...

# GOVULNDB names another vulnerability database (https://go.dev/security/vuln/database). Without one that can be
# reached it fails and says so; it is no part of check, since what it says changes by itself.
vuln: $(GOVULNCHECK) ## known vulnerabilities in what both modules call
	$(GOVULNCHECK) $(if $(GOVULNDB),-db $(GOVULNDB)) ./...
	$(IN_SERVER) $(GOVULNCHECK) $(if $(GOVULNDB),-db $(GOVULNDB)) ./...

bench: build ## the figures of docs/performance.md
	go run ./e2e/bench

# Each target in turn, four at once; what crashes one is kept as a file of its corpus (testdata/fuzz).
# A count, not a time: the go command reports a deadline that comes in the middle of an input as a failure.
FUZZTIME := 5000x
fuzz: ## every fuzz target for FUZZTIME (5000 inputs)
	@mkdir -p .cache
	@git grep -E '^func Fuzz' -- '*_test.go' | sed -E 's#^(.*)/[^/]*:func (Fuzz[A-Za-z0-9_]*).*#\1 \2#' | \
	xargs -P 4 -L 1 sh -c 'go test ./$$0 -run "^$$1\$$" -fuzz "^$$1\$$" -fuzztime $(FUZZTIME) -parallel 2 >.cache/fuzz-$$(basename $$0)-$$1.log 2>&1 && \
	  echo "ok $$0 $$1" || { cat .cache/fuzz-$$(basename $$0)-$$1.log; exit 255; }'

soak: build ## long random tests: kills, fuzzing
	MENDFLOW_SOAK=1 MENDFLOW_SOAK_ROUNDS=20 MENDFLOW_SOAK_KILLS=100 MENDFLOW_SOAK_BYTES=10737418240 \
	  go test -timeout 80m -count=1 ./e2e/... ./internal/gitrepo ./internal/process ./workflows
	$(MAKE) fuzz FUZZTIME=2m

# Versions are the tested ones that the adapters state. What cannot be had is skipped by its tests.
AGENTS := $(CURDIR)/.cache/agents
AGENT_PACKAGES := @anthropic-ai/claude-code@2.1.332 @openai/codex@0.171.0 opencode-ai@1.18.33 \
	@google/gemini-cli@0.61.0 @qwen-code/qwen-code@0.24.4

AGENT_TESTS := go test -count=1 -v -run '^Test(Each)?Real(Program|Agent|Claude)' ./internal/provider ./e2e

test-agents: build ## try the real agent programs against a scripted model; installs them by npm into .cache/agents
	@for p in $(AGENT_PACKAGES); do \
		npm install --prefix $(AGENTS) --no-audit --no-fund --loglevel=error $$p || echo "skipped: $$p cannot be installed"; done
	@mkdir -p .cache
	@code=0; MENDFLOW_AGENTS=$(AGENTS) $(AGENT_TESTS) -timeout 60m 2>&1 | tee .cache/test-agents.log || code=$$?; \
	  scripts/agents-table docs/agents.md $(AGENTS) <.cache/test-agents.log; exit $$code

agents-skipped: build ## count the cases of real agent programs that check leaves to test-agents
	@log=$$(env -u MENDFLOW_AGENTS $(AGENT_TESTS)) || { echo "$$log"; exit 1; }; \
	  echo "real agent programs: $$(grep -c -- '--- SKIP' <<<"$$log" || true) cases skipped; make test-agents runs them"

clean: ## remove what was built
	rm -rf bin

$(GOLANGCI):
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(TOOLS)/golangci-lint $@

$(WORKFLOWCHECK):
	GOBIN=$(TOOLS) go install go.temporal.io/sdk/contrib/tools/workflowcheck@$(WORKFLOWCHECK_VERSION)
	mv $(TOOLS)/workflowcheck $@

$(GOVULNCHECK):
	GOBIN=$(TOOLS) go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	mv $(TOOLS)/govulncheck $@
