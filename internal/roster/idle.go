package roster

import (
	"fmt"
	"slices"
	"strings"
)

// idle are the settings of an agent that are kept, shown and exported, and that
// nothing here acts on.
var idle = []string{"fallback_model", "api_mode", "heartbeat_enabled", "heartbeat_cron"}

// IdleNote is what whoever changed such a setting is told, so that nobody relies
// on it; empty when none of those that were changed is one.
func IdleNote(changed ...string) string {
	kept := slices.DeleteFunc(slices.Clone(changed), func(name string) bool { return !slices.Contains(idle, name) })
	if len(kept) == 0 {
		return ""
	}
	return fmt.Sprintf("pawgate keeps %s for whatever runs the agent and does not act on it itself; to wake an agent at given times, use schedule_task", strings.Join(kept, ", "))
}

// EvolutionNote keeps anyone from waiting for what does not come.
const EvolutionNote = "a setting, not activity: pawgate itself starts no evolution; what runs the agent acts on it, and on its own default where the value is null"
