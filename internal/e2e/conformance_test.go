//go:build e2e

package e2e

import (
	"encoding/json"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// suite is one release of the conformance suite at one protocol revision.
type suite struct {
	name    string // as the file of expected failures calls the run
	release string // folder under CONFORMANCE_DIR
	args    []string
}

// suites are the releases and revisions that run. The stable release always
// speaks 2025-11-25; the pre-release speaks the wire form of each revision and
// covers all that --requirements would, save client and extension scenarios.
func suites() []suite {
	out := []suite{{"stable", "conformance-stable", []string{"--suite", "all"}}}
	for _, revision := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		out = append(out, suite{"next/" + revision, "conformance-next",
			[]string{"--suite", "all", "--spec-version", revision, "--timeout", "15000"}})
	}
	return out
}

// TestConformance runs the official MCP conformance suite against the product
// and against the fixture server, and holds both to testdata/conformance.yaml:
// what is not listed there must pass, and what is listed must fail.
func TestConformance(t *testing.T) {
	groups, err := readGroups("testdata/conformance.yaml")
	if err != nil {
		t.Fatal(err)
	}
	node, dir := conformanceTools(t)
	ran := map[target]map[string][]check{}
	var total verdict
	for _, server := range []string{"product", "fixture"} {
		t.Run(server, func(t *testing.T) {
			p := startServer(t, server)
			endpoint := bearerProxy(t, p.MCP, p.Key)
			for _, s := range suites() {
				t.Run(s.name, func(t *testing.T) {
					at := target{server, s.name}
					ran[at] = runSuite(t, node, dir, s, endpoint)
					v := judge(at, ran[at], groups)
					report(t, v)
					total.add(v)
				})
			}
		})
	}
	if len(ran) == 2*len(suites()) { // not when -run picked some
		for _, entry := range unmatched(groups, ran) {
			t.Errorf("stale entry, no run has it: %s", entry)
		}
	}
	t.Logf("conformance: %d passed, %d failed, %d expected", total.Passed, total.Failed, total.Expected)
}

// startServer runs one of the two servers that the suite is put to.
func startServer(t *testing.T, server string) *pawgate {
	t.Helper()
	if server == "product" {
		return startPawgate(t)
	}
	bin := filepath.Join(t.TempDir(), "fixture")
	out, err := runProcess(t, 3*time.Minute, repoRoot(t), os.Environ(), "go", "build", "-buildvcs=false", "-o", bin, "./internal/e2e/fixture")
	if err != nil {
		t.Fatalf("build the fixture server: %v\n%s", err, out)
	}
	return startServe(t, bin)
}

// report tells what a run amounts to and fails the test for what is not listed.
func report(t *testing.T, v verdict) {
	t.Helper()
	for _, u := range v.Unexpected {
		t.Errorf("unexpected failure: %s", u)
	}
	for _, s := range v.Stale {
		t.Errorf("stale entry, it passes now: %s", s)
	}
	t.Logf("scenarios: %d passed, %d failed, %d expected", v.Passed, v.Failed, v.Expected)
}

// conformanceTools are Node 22 and the folder with both releases of the suite.
func conformanceTools(t *testing.T) (node, dir string) {
	t.Helper()
	cache := filepath.Join(repoRoot(t), ".cache", "npm")
	node, dir = os.Getenv("NODE22_BIN"), os.Getenv("CONFORMANCE_DIR")
	if node == "" {
		if found, err := filepath.Glob(filepath.Join(cache, "node22", "node_modules", "node-linux-*", "bin", "node")); err == nil && len(found) > 0 {
			node = found[0]
		}
	}
	if dir == "" {
		dir = filepath.Join(cache, "conformance", "node_modules")
	}
	if _, err := os.Stat(node); err != nil {
		unavailable(t, "Node 22", "run .ci/lib/node22.sh and set NODE22_BIN to what it prints")
	}
	if _, err := os.Stat(filepath.Join(dir, "conformance-next")); err != nil {
		unavailable(t, "the conformance suite", "run .ci/lib/conformance.sh and set CONFORMANCE_DIR to what it prints")
	}
	return node, dir
}

// bearerProxy puts the key on every request to target, because the suite
// cannot send a header of ours. All else, Host and Origin above all, passes as
// it came.
func bearerProxy(t *testing.T, target, key string) string {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	srv := reverseProxy(t, func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+key)
	})
	return srv.URL + to.Path
}

// announced is the line with which the suite starts a scenario.
var announced = regexp.MustCompile(`(?m)^=== Running scenario: (\S+) ===$`)

// runSuite runs one suite and gives the checks of each scenario it announced.
// Its exit code is not asked: the verdict is made from the checks.
func runSuite(t *testing.T, node, dir string, s suite, endpoint string) map[string][]check {
	t.Helper()
	results := t.TempDir()
	args := append([]string{filepath.Join(dir, s.release, "dist", "index.js"), "server", "--url", endpoint, "-o", results}, s.args...)
	out, err := runProcess(t, 4*time.Minute, results, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + results}, node, args...)
	scenarios := map[string][]check{}
	for _, m := range announced.FindAllStringSubmatch(out, -1) {
		scenarios[m[1]] = nil
	}
	if len(scenarios) == 0 {
		t.Fatalf("the suite ran no scenario: %v\n%s", err, tail(out, 4000))
	}
	files, err := filepath.Glob(filepath.Join(results, "*", "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := scenarioOf(filepath.Base(filepath.Dir(file)))
		if _, is := scenarios[name]; !is {
			t.Fatalf("result folder %s belongs to no scenario announced", filepath.Dir(file))
		}
		scenarios[name] = readChecks(t, file)
	}
	return scenarios
}

// stamp is what the suite puts around a scenario's name for its folder.
var stamp = regexp.MustCompile(`^server-(.+)-\d{4}-\d{2}-\d{2}T[\dA-Za-z-]+$`)

// scenarioOf is the scenario whose results a folder holds.
func scenarioOf(folder string) string {
	if m := stamp.FindStringSubmatch(folder); m != nil {
		return m[1]
	}
	return strings.TrimPrefix(folder, "server-")
}

func readChecks(t *testing.T, file string) []check {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var checks []check
	if err := json.Unmarshal(raw, &checks); err != nil {
		t.Fatalf("read %s: %v", file, err)
	}
	return checks
}
