package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// target is one conformance run: a release of the suite at one protocol
// revision (its name, such as next/2025-11-25) against one server.
type target struct{ server, run string }

// check is one finding of a scenario, as the suite writes it to checks.json.
type check struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Status       string `json:"status"` // SUCCESS, FAILURE, WARNING, INFO, SKIPPED
	ErrorMessage string `json:"errorMessage"`
}

// failed follows the suite's own rule for expected failures: a warning (a
// SHOULD that does not hold) has to be listed too.
func (c check) failed() bool { return c.Status == "FAILURE" || c.Status == "WARNING" }

// group is a set of failures that have one reason.
type group struct {
	Reason string `yaml:"reason"`
	// Fails are scenarios, or single checks written scenario:check-id. A check
	// named alone keeps the others of its scenario enforced.
	Fails []string `yaml:"fails"`
	// Server is the one server this holds for; empty means every one.
	Server string `yaml:"server"`
	// Runs are the runs this holds for; none means every run of the scenario.
	Runs []string `yaml:"runs"`
}

// covers says whether the group holds for a run.
func (g group) covers(at target) bool {
	return (g.Server == "" || g.Server == at.server) && (len(g.Runs) == 0 || slices.Contains(g.Runs, at.run))
}

// readGroups reads a file of expected failures; each group must have a reason.
func readGroups(path string) ([]group, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read expected failures: %w", err)
	}
	var groups []group
	if err := yaml.Unmarshal(raw, &groups); err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	for i, g := range groups {
		if strings.TrimSpace(g.Reason) == "" || len(g.Fails) == 0 {
			return nil, fmt.Errorf("%s: group %d has no reason or names nothing", path, i+1)
		}
	}
	return groups, nil
}

// verdict is what one run amounts to, in scenarios.
type verdict struct {
	Passed     int
	Failed     int
	Expected   int      // scenarios with listed failures and no others
	Unexpected []string // scenario:check-id: message
	Stale      []string // listed, and did not fail
}

// add counts another run in.
func (v *verdict) add(w verdict) {
	v.Passed, v.Failed, v.Expected = v.Passed+w.Passed, v.Failed+w.Failed, v.Expected+w.Expected
}

// judge compares one run with what is listed for it. scenarios maps each
// scenario that ran to its checks.
func judge(at target, scenarios map[string][]check, groups []group) verdict {
	listed := map[string]bool{} // entry → met
	for _, g := range groups {
		if !g.covers(at) {
			continue
		}
		for _, entry := range g.Fails {
			scenario, _, _ := strings.Cut(entry, ":")
			if _, ran := scenarios[scenario]; ran {
				listed[entry] = false
			}
		}
	}
	var v verdict
	for _, scenario := range slices.Sorted(maps.Keys(scenarios)) {
		unexpected, expected := judgeScenario(scenario, scenarios[scenario], listed)
		v.Unexpected = append(v.Unexpected, unexpected...)
		switch {
		case len(unexpected) > 0:
			v.Failed++
		case expected:
			v.Expected++
		default:
			v.Passed++
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(listed)) {
		if !listed[entry] {
			v.Stale = append(v.Stale, entry)
		}
	}
	return v
}

// judgeScenario sorts the failed checks of one scenario into listed ones, which
// it ticks off, and others. A scenario without any check did not run at all.
func judgeScenario(scenario string, checks []check, listed map[string]bool) (unexpected []string, expected bool) {
	if len(checks) == 0 {
		checks = []check{{ID: "did-not-run", Status: "FAILURE", ErrorMessage: "the suite wrote no checks"}}
	}
	for _, c := range checks {
		if !c.failed() {
			continue
		}
		met := false
		for _, entry := range []string{scenario, scenario + ":" + c.ID} {
			if _, is := listed[entry]; is {
				listed[entry], met = true, true
			}
		}
		if met {
			expected = true
			continue
		}
		unexpected = append(unexpected, fmt.Sprintf("%s:%s: %s: %s", scenario, c.ID, c.Name, c.ErrorMessage))
	}
	return unexpected, expected
}

// unmatched are the entries that no run could have met: a misspelt scenario or
// run, or a scenario that left the suite. ran holds the scenarios of each run.
func unmatched(groups []group, ran map[target]map[string][]check) []string {
	var out []string
	for _, g := range groups {
		for _, entry := range g.Fails {
			scenario, _, _ := strings.Cut(entry, ":")
			found := false
			for at, scenarios := range ran {
				_, has := scenarios[scenario]
				found = found || has && g.covers(at)
			}
			if !found {
				out = append(out, entry)
			}
		}
	}
	return out
}

func TestJudgeConformance(t *testing.T) {
	t.Parallel()
	ok, bad := check{ID: "a", Status: "SUCCESS"}, check{ID: "b", Name: "B", Status: "FAILURE", ErrorMessage: "no"}
	warn := check{ID: "c", Name: "C", Status: "WARNING", ErrorMessage: "should"}
	cases := []struct {
		name      string
		scenarios map[string][]check
		groups    []group
		want      verdict
	}{
		{"passes", map[string][]check{"s": {ok}}, nil, verdict{Passed: 1}},
		{"fails unlisted", map[string][]check{"s": {ok, bad}}, nil, verdict{Failed: 1, Unexpected: []string{"s:b: B: no"}}},
		{"warning counts", map[string][]check{"s": {warn}}, nil, verdict{Failed: 1, Unexpected: []string{"s:c: C: should"}}},
		{"fails listed", map[string][]check{"s": {bad}}, []group{{Fails: []string{"s"}}}, verdict{Expected: 1}},
		{"listed check", map[string][]check{"s": {bad}}, []group{{Fails: []string{"s:b"}}}, verdict{Expected: 1}},
		{"listed check leaves the others enforced", map[string][]check{"s": {bad, warn}}, []group{{Fails: []string{"s:b"}}},
			verdict{Failed: 1, Unexpected: []string{"s:c: C: should"}}},
		{"stale", map[string][]check{"s": {ok}}, []group{{Fails: []string{"s"}}}, verdict{Passed: 1, Stale: []string{"s"}}},
		{"stale check", map[string][]check{"s": {ok}}, []group{{Fails: []string{"s:a"}}}, verdict{Passed: 1, Stale: []string{"s:a"}}},
		{"listed for another run", map[string][]check{"s": {bad}}, []group{{Fails: []string{"s"}, Runs: []string{"other"}}},
			verdict{Failed: 1, Unexpected: []string{"s:b: B: no"}}},
		{"listed for another server", map[string][]check{"s": {bad}}, []group{{Fails: []string{"s"}, Server: "other"}},
			verdict{Failed: 1, Unexpected: []string{"s:b: B: no"}}},
		{"listed for a scenario of other runs", map[string][]check{"s": {ok}}, []group{{Fails: []string{"gone"}}}, verdict{Passed: 1}},
		{"no checks at all", map[string][]check{"s": nil}, nil,
			verdict{Failed: 1, Unexpected: []string{"s:did-not-run: : the suite wrote no checks"}}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, judge(target{"server", "run"}, tc.scenarios, tc.groups)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnmatchedConformance(t *testing.T) {
	t.Parallel()
	ran := map[target]map[string][]check{{"server", "run"}: {"s": nil}}
	groups := []group{
		{Fails: []string{"s:x", "typo"}, Runs: []string{"run"}},
		{Fails: []string{"s"}, Server: "gone"},
		{Fails: []string{"s:y"}, Runs: []string{"gone"}},
	}
	if diff := cmp.Diff([]string{"typo", "s", "s:y"}, unmatched(groups, ran)); diff != "" {
		t.Errorf("unmatched (-want +got):\n%s", diff)
	}
}
