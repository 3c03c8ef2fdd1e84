package policy_test

import (
	"testing"

	"pawgate/internal/policy"
	"pawgate/internal/tool"
)

// A used-up budget stops every tool but those by which an agent finds out why
// and asks for help.
func TestLimitedByMoney(t *testing.T) {
	t.Parallel()
	s := policy.Snapshot{Money: &policy.Money{Covered: true, Stop: &policy.Budget{ID: "b", Period: "day", Limit: 100, Settled: 120, Hard: true}}}
	for category, want := range map[string]bool{"web": false, "memory": false, "cost": true, "control": true} {
		d := policy.Limited(s, policy.Tool{Definition: tool.Definition{Name: "x"}, Category: category})
		if d.Allowed != want {
			t.Errorf("%s: %+v", category, d)
		}
		if !want && (d.Step != policy.StepLimit || d.Fault == nil || d.Fault.Reason != "budget_exceeded") {
			t.Errorf("%s: %+v", category, d)
		}
	}
	s.Money.Stop = nil
	if d := policy.Limited(s, policy.Tool{Category: "web"}); !d.Allowed {
		t.Errorf("money left: %+v", d)
	}
}

func TestDollars(t *testing.T) {
	t.Parallel()
	for micros, want := range map[int64]string{0: "$0.00", 400_000: "$0.40", 1_250_000: "$1.25", 125: "$0.000125", 1_000_010: "$1.00001", -5_000_000: "-$5.00"} {
		if got := policy.Dollars(micros); got != want {
			t.Errorf("%d: %s, want %s", micros, got, want)
		}
	}
}
