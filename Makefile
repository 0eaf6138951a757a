# `make` says what there is. Tools are pinned in tools/go.mod and run from there.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

TOOL   := go tool -modfile=tools/go.mod
# Modules of their own: what they require does not go together with the others.
HELM_DOCS     := go tool -modfile=tools/helm-docs/go.mod helm-docs
HELM_UNITTEST := go tool -modfile=tools/helm-unittest/go.mod helm-unittest
GOTEST := $(TOOL) gotestsum --format testname --hide-summary=skipped --
# The race detector needs a C compiler. CI has one; without it the tests run all the
# same, and say so.
RACE   := $(if $(shell command -v gcc clang),-race)

# The layers of tests. What is not in LAYER_REAL needs nothing but Go.
LAYER_REAL := ./test/controlplane/... ./test/nodeconfig/... ./test/plugin/... ./test/integration/... ./test/chart/... \
              ./test/guards/... ./test/conformance/cluster/... ./test/bench/... ./test/audit/... \
              ./catalog/informers/...
# What takes root and Debian's runtimes beside that.
LAYER_NODE := ./test/node/...
LAYER_UNIT  = $(shell go list ./... | grep -vxF "$$(go list $(LAYER_REAL) $(LAYER_NODE))")

.PHONY: help
help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##: run

.PHONY: demo
demo: ## A real API server and scheduler route the pods of examples/ (the first run builds them, in about 11 minutes)
	@go run ./test/demo

.PHONY: build
build: ## bin/runtimeclass-router
	CGO_ENABLED=0 go build -trimpath -o bin/runtimeclass-router ./cmd/runtimeclass-router

# As .krew.yaml names them.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

.PHONY: dist
dist: ## dist/: an archive of the command line for each platform; VERSION is stamped in
	@for platform in $(PLATFORMS); do \
	  export GOOS=$${platform%/*} GOARCH=$${platform#*/} CGO_ENABLED=0; name=runtimeclass-router_$${GOOS}_$$GOARCH; \
	  mkdir -p dist/$$name; cp LICENSE dist/$$name; \
	  go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o dist/$$name/ ./cmd/runtimeclass-router; \
	  tar -C dist/$$name -czf dist/$$name.tar.gz .; rm -r dist/$$name; echo dist/$$name.tar.gz; \
	done

##: test

.PHONY: test
test: race-note test-unit test-helm test-real check-generated ## Everything: unit, Rego, fixtures, chart and integration tests

.PHONY: race-note
race-note:
	@$(if $(RACE),:,echo "NOTE: no C compiler, so the race detector is off (apt-get install gcc libc6-dev)")

.PHONY: test-unit
test-unit: ## Unit, Rego, fixture and property tests
	@echo "== layer: unit, Rego, fixtures, properties"
	@$(GOTEST) $(RACE) $(LAYER_UNIT)

.PHONY: test-helm
test-helm: ## The chart's own suites (helm-unittest)
	@echo "== layer: helm-unittest"
	@$(HELM_UNITTEST) charts/runtimeclass-router

.PHONY: test-real
test-real: controlplane ## Tests on a real API server: informers, chart, integration
	@echo "== layer: real API server"
	@$(GOTEST) $(RACE) -p 2 -timeout 20m $(LAYER_REAL)

.PHONY: controlplane
controlplane: ## Build etcd, the Kubernetes control plane, kubectl and helm into the user's cache
	@echo "control plane in $$(go run ./test/controlplane/build)"

.PHONY: test-matrix
test-matrix: ## Run integration, guards and the chart's installation on every Kubernetes version, and write docs/compatibility.md anew (an hour; FLAGS)
	go run ./test/matrix $(FLAGS)

.PHONY: test-node
test-node: ## On two real nodes, in containers that run: crun, runc and gVisor (root, Debian; RUN=regexp, LOGS=folder, BENCH=folder)
	@echo "== layer: real nodes"
	@go run ./test/controlplane/build nodes >/dev/null
	@$(if $(LOGS),RUNTIMECLASS_ROUTER_NODE_LOGS=$(abspath $(LOGS))) $(if $(BENCH),RUNTIMECLASS_ROUTER_NODE_BENCH=$(abspath $(BENCH))) \
	  $(GOTEST) -count=1 -timeout 15m $(if $(RUN),-run '$(RUN)') $(LAYER_NODE)

.PHONY: conformance
conformance: ## Send pods as public projects make them through real API servers, and write docs/conformance.md anew
	go run ./test/conformance/report -o docs/conformance.md

.PHONY: bench
bench: ## Go benchmarks of each stage, COUNT times (default 6): compare two outputs with `go tool -modfile=tools/go.mod benchstat`
	@go test -run '^$$' -bench . -benchmem -count "$${COUNT:-6}" ./policies ./catalog ./webhook

.PHONY: bench-compare
bench-compare: controlplane ## Measure the router beside other webhooks on a real API server, and write docs/performance.md anew (half an hour; FLAGS)
	go run ./test/bench $(FLAGS)

.PHONY: reliability
reliability: controlplane ## Create 20,000 pods while certificates rotate and replicas and the API server go and come, and write docs/reliability.md anew (FLAGS)
	go run ./test/reliability $(FLAGS)

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (default 1m)
	@for target in FuzzRoute FuzzMutatePod; do go test ./webhook -run '^$$' -fuzz "^$$target$$" -fuzztime "$${FUZZTIME:-1m}"; done

##: change

.PHONY: lint
lint: ## gofmt, vet and the linters of .golangci.yml
	$(TOOL) golangci-lint run ./...

.PHONY: fmt
fmt: ## Format Go and Rego
	gofmt -w $$(git ls-files '*.go')
	go test ./policies -run '^TestRegoIsFormatted$$' -update

.PHONY: golden
golden: ## Write golden files anew; read the diff before you commit it
	go test ./webhook ./cmd/... -update
	go test ./test/chart -run '^TestMonitoring$$' -update

.PHONY: generate
generate: ## Write generated files anew: the schema of a policy's input, the chart's README
	$(HELM_DOCS) --chart-search-root charts --sort-values-order file --log-level warning
	go run ./policies/schemas/generate \
	  "$$(cd test/controlplane/modules/kubernetes && go mod download k8s.io/kubernetes && go list -m -f '{{.Dir}}' k8s.io/kubernetes)/api/openapi-spec/v3/api__v1_openapi.json" \
	  >policies/schemas/input.json.new
	mv policies/schemas/input.json.new policies/schemas/input.json

.PHONY: check-generated
check-generated: generate ## Fail if a generated file is not what the source says
	git diff --exit-code -- policies/schemas charts/runtimeclass-router/README.md
