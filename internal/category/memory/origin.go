package memory

import (
	"regexp"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
)

// Where a memory comes from. The names are the predecessor's; a caller may
// use any other, such as "web:example.com", to tell sources apart.
const (
	originAgent  = "agent_derived"
	originImport = "import"
)

// trustCeiling is the most that a memory of this origin is trusted, whatever
// is declared, between 0 and 1. An unknown origin counts like an agent's own
// thought.
func trustCeiling(origin string) float64 {
	switch origin {
	case "user_direct", "user", "user_profile", "operator":
		return 1
	case originImport:
		return 0.7
	case "tool_echo":
		return 0.5
	case "channel", "mcp_external":
		return 0.3
	}
	return trustCeilingAgent
}

// trustCeilingAgent bounds what an agent says itself: it may name a user as
// the origin, but its word is not the user's. Only an operator vouches for one.
const trustCeilingAgent = 0.6

// trust is how far a new memory is trusted: as declared (1 if nothing is),
// but no more than its origin and its caller allow.
func trust(who caller.Caller, origin string, declared float64) float64 {
	t := min(declared, trustCeiling(origin))
	if !who.Operator() {
		t = min(t, trustCeilingAgent)
	}
	return t
}

var originName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.:/-]{0,63}$`)

func validateOrigin(origin string) error {
	if origin != "" && !originName.MatchString(origin) {
		return fault.Invalid("origin", "origin must be 1 to 64 characters a-z, 0-9, _ . : / -")
	}
	return nil
}
