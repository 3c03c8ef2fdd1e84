package memory

// Where a memory comes from. The names are the predecessor's; they are kept
// in exports.
const (
	originAgent = "agent_derived"
)

// trustCeiling is the most that a memory of this origin is trusted, whatever
// is declared, between 0 and 1. An unknown origin counts like an agent's own
// thought.
func trustCeiling(origin string) float64 {
	switch origin {
	case "user_direct", "user", "user_profile", "operator":
		return 1
	case "import":
		return 0.7
	case "tool_echo":
		return 0.5
	case "channel", "mcp_external":
		return 0.3
	}
	return 0.6
}
