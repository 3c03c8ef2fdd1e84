package agentfile

import (
	"regexp"
	"slices"
	"strings"

	"pawgate/internal/policy"
)

// pattern is the form of an entry in a capability list: the exact name of a
// tool, a prefix of whole words ("memory_*"), or every tool ("*").
var pattern = regexp.MustCompile(`^(\*|[a-z][a-z0-9]*(_[a-z0-9]+)*(_\*)?)$`)

// maxPattern is longer than any tool's name.
const maxPattern = 64

// IsPattern reports whether a text can be in a capability list.
func IsPattern(text string) bool { return len(text) <= maxPattern && pattern.MatchString(text) }

// servers are the names under which the predecessor's tools, and ours, are
// mounted by a client.
var servers = []string{"duduclaw", "pawgate"}

// capabilities takes over the lists.
func (p *parser) capabilities() {
	in, out := p.file.Capabilities, &p.agent
	if len(in.AllowedTools) == 0 {
		out.Allowed = []string{"*"}
		p.note("capabilities.allowed_tools", 0,
			`absent or empty meant every tool in DuDuClaw, so it became ["*"]; if no tool was meant: pawgate agent allow %s --remove "*"`, out.ID)
	} else if out.Allowed = p.list("allowed_tools", in.AllowedTools, allowing); len(out.Allowed) == 0 {
		p.note("capabilities.allowed_tools", 0, "nothing of it is left, so the agent may call no tool")
	}
	out.Denied = p.list("denied_tools", in.DeniedTools, limiting)
	p.closed()
	p.forbidden()
	out.ApprovalRequired = p.list("approval_required_tools", in.ApprovalRequiredTools, limiting)
	p.mustAsk("irreversible_tools", in.IrreversibleTools, "each call was judged by its effects")
	p.mustAsk("maybe_irreversible_tools", in.MaybeIrreversibleTools, "a model judged each call")
	out.Scoped = p.list("scoped_tools", in.ScopedTools, limiting)
}

// family is the tools that the predecessor kept shut unless a flag opened them.
type family struct {
	key   string
	tools []string
}

var flagged = []family{
	{"computer_use", []string{"computer_*"}},
	{"os_native", []string{"os_*"}},
	{"recording", []string{"browser_record_*", "desktop_record_*", "skill_from_recording"}},
}

// closed denies the families whose flag is not set.
func (p *parser) closed() {
	in := p.file.Capabilities
	open := map[string]bool{"computer_use": in.ComputerUse, "os_native": in.OSNative, "recording": in.Recording}
	for _, f := range flagged {
		if open[f.key] {
			continue
		}
		p.agent.Denied = union(p.agent.Denied, f.tools)
		p.note("capabilities."+f.key, 0, "is not true, so denied_tools got %s", strings.Join(f.tools, ", "))
	}
}

// granted reports whether an agent may call a tool of the family: a pattern
// allows one, and none denies all of them.
func (f family) granted(a Agent) bool {
	return slices.ContainsFunc(f.tools, func(tools string) bool {
		return reaches(a.Allowed, tools) && !slices.ContainsFunc(a.Denied, func(p string) bool { return within(tools, p) })
	})
}

// reaches reports whether a list has a pattern for some of the tools.
func reaches(list []string, tools string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return within(p, tools) || within(tools, p) })
}

// within reports whether a pattern covers all that another does.
func within(tools, pattern string) bool {
	return policy.Matches(pattern, strings.TrimSuffix(tools, "*"))
}

// withoutIdle leaves out of a list what shuts a family that nothing allows
// anyway: whether it is there makes no difference.
func withoutIdle(denied, allowed []string) []string {
	return slices.DeleteFunc(slices.Clone(denied), func(d string) bool {
		return !reaches(allowed, d) && slices.ContainsFunc(flagged, func(f family) bool { return slices.Contains(f.tools, d) })
	})
}

// forbidden denies what a permission of the predecessor says no to. There most
// of these flags were written and shown, and nothing looked at them.
func (p *parser) forbidden() {
	in := p.file.Permissions
	for _, flag := range []struct {
		key   string
		given *bool
		tools []string
	}{
		{"can_create_agents", in.CanCreateAgents, []string{"create_agent"}},
		{"can_send_cross_agent", in.CanSendCrossAgent, []string{"send_to_agent", "spawn_agent", "spawn_ephemeral"}},
		{"can_schedule_tasks", in.CanScheduleTasks, []string{"schedule_task"}},
		{"can_modify_own_soul", in.CanModifyOwnSoul, []string{"agent_update_soul"}},
	} {
		if flag.given == nil || *flag.given {
			continue
		}
		p.agent.Denied = union(p.agent.Denied, flag.tools)
		p.note("permissions."+flag.key, 0, "is false, so denied_tools got %s", strings.Join(flag.tools, ", "))
	}
}

// mustAsk adds a list of the predecessor that ended in an approval for some
// calls; here every call asks.
func (p *parser) mustAsk(key string, entries []string, before string) {
	added := p.list(key, entries, limiting)
	if len(added) == 0 {
		return
	}
	p.agent.ApprovalRequired = union(p.agent.ApprovalRequired, added)
	p.note("capabilities."+key, 0, "added to approval_required_tools: %s, here each one asks", before)
}

// direction is whether an entry of a list widens or narrows what an agent may
// do; a doubtful entry counts only in a list that narrows.
type direction bool

const (
	allowing direction = true
	limiting direction = false
)

// list turns entries into patterns and notes what became of the odd ones.
func (p *parser) list(key string, entries []string, d direction) []string {
	out := []string{}
	var renamed, dropped []string
	for _, entry := range entries {
		base, ok := toPattern(entry, d)
		switch {
		case !ok:
			dropped = append(dropped, shorten(entry))
			continue
		case base != entry:
			renamed = append(renamed, shorten(entry)+" → "+base)
		}
		out = union(out, []string{base})
	}
	if len(renamed) > 0 {
		p.note("capabilities."+key, 0, "written as pawgate's own names: %s", strings.Join(renamed, ", "))
	}
	if len(dropped) > 0 {
		p.note("capabilities."+key, 0, "names no tool of pawgate, kept in the stored text only: %s", strings.Join(dropped, ", "))
	}
	return out
}

// toPattern reads one entry: "memory_search", "mcp__duduclaw__memory_search",
// "send_message(#general)". An argument in brackets limits the entry to some
// calls, and another server's tool only shares the name: both are dropped
// where they would widen and taken by their base name where they narrow.
func toPattern(entry string, d direction) (string, bool) {
	base, argument, _ := strings.Cut(strings.TrimSpace(entry), "(")
	base = strings.TrimSpace(base)
	if argument != "" && d == allowing {
		return "", false
	}
	if rest, qualified := strings.CutPrefix(base, "mcp__"); qualified {
		server, name, hasName := strings.Cut(rest, "__")
		ours := slices.Contains(servers, server)
		switch {
		case !ours && d == allowing:
			return "", false
		case !hasName && ours: // the whole server, in the notation of Claude Code
			name = "*"
		}
		base = name
	}
	return base, IsPattern(base)
}

func union(list, more []string) []string {
	for _, entry := range more {
		if !slices.Contains(list, entry) {
			list = append(list, entry)
		}
	}
	return list
}

// shorten keeps a note readable, whatever the file holds.
func shorten(entry string) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '·'
		}
		return r
	}, entry))
	if len(runes) > maxPattern {
		return string(runes[:maxPattern]) + "…"
	}
	return string(runes)
}
