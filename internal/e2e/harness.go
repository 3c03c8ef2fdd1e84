// Package e2e holds the tests that drive pawgate from outside: the built
// command, the real Claude Code CLI, the official MCP conformance suite and
// the Lambda and SAM stand-ins. It never imports the product's packages; it
// starts processes, speaks the wire, and reads what comes back.
//
// The tests carry the build tag e2e, since they need a built bin/pawgate and
// clients from a package registry:
//
//	make build
//	export CLAUDE_BIN=$(.ci/lib/claude.sh) NODE22_BIN=$(.ci/lib/node22.sh) CONFORMANCE_DIR=$(.ci/lib/conformance.sh)
//	go test -tags e2e -v ./internal/e2e/...
//
// The variables may be left out when the scripts have run: they fill .cache,
// which is where the tests look first. A client that is missing skips its
// tests, and fails them when CI is true. Nothing here reaches beyond the
// loopback interface, and a test fails if a client tries to.
package e2e
