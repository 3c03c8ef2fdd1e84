package agentfile

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	toml "github.com/pelletier/go-toml/v2"

	"pawgate/internal/policy"
)

// file has the keys that pawgate acts on or says something particular about.
// Every other key is kept in the text and noted.
type file struct {
	Agent struct {
		Name        string `toml:"name"`
		DisplayName string `toml:"display_name"`
		Role        string `toml:"role"`
		Status      string `toml:"status"`
		Trigger     string `toml:"trigger"`
		ReportsTo   string `toml:"reports_to"`
		Icon        string `toml:"icon"`
	} `toml:"agent"`
	Model struct {
		Preferred string  `toml:"preferred"`
		Fallback  *string `toml:"fallback"`
		APIMode   *string `toml:"api_mode"`
	} `toml:"model"`
	Budget struct {
		MonthlyLimitCents *int64 `toml:"monthly_limit_cents"`
		HardStop          *bool  `toml:"hard_stop"`
	} `toml:"budget"`
	Container struct {
		MaxConcurrent *int64 `toml:"max_concurrent"`
	} `toml:"container"`
	Heartbeat struct {
		Enabled *bool   `toml:"enabled"`
		Cron    *string `toml:"cron"`
	} `toml:"heartbeat"`
	Permissions struct {
		CanCreateAgents   *bool `toml:"can_create_agents"`
		CanSendCrossAgent *bool `toml:"can_send_cross_agent"`
		CanScheduleTasks  *bool `toml:"can_schedule_tasks"`
		CanModifyOwnSoul  *bool `toml:"can_modify_own_soul"`
	} `toml:"permissions"`
	Evolution    map[string]any `toml:"evolution"`
	Capabilities struct {
		AllowedTools           []string      `toml:"allowed_tools"`
		DeniedTools            []string      `toml:"denied_tools"`
		ApprovalRequiredTools  []string      `toml:"approval_required_tools"`
		IrreversibleTools      []string      `toml:"irreversible_tools"`
		MaybeIrreversibleTools []string      `toml:"maybe_irreversible_tools"`
		ScopedTools            []string      `toml:"scoped_tools"`
		Policy                 []policy.Rule `toml:"policy"`
		ComputerUse            bool          `toml:"computer_use"`
		OSNative               bool          `toml:"os_native"`
		Recording              bool          `toml:"recording"`
	} `toml:"capabilities"`
}

// unused are the predecessor's tables and keys that say nothing about what an
// agent may call here. They share one note.
var unused = regexp.MustCompile(`^(acp|antigravity|budget|channels|container|evolution|fork|guardrails|heartbeat|` +
	`memory|model|odoo|permissions|planner|proactive|prompt|runtime|skills|sticker|voice|worktree|` +
	`capabilities\.(computer_use_mode|computer_use_config|browser_via_bash|wiki_visible_to|native_sandbox|` +
	`grant_ttl_secs|auto_approve_install|autonomy_level|git_credentials|system_operator|codrive))(\.|$)`)

// unknown notes the keys that are not in file: those of the predecessor in
// one sentence, the others one by one, because they may be misspelt. Within a
// rule it refuses them: a rule without its misspelt condition is another rule.
func (p *parser) unknown(missing []toml.DecodeError) error {
	var kept []string
	for _, m := range missing {
		key := strings.Join(m.Key(), ".")
		line, _ := m.Position()
		if line, problem := inRule(m.Key(), m); problem != "" {
			return invalid("line %d: %s", line, problem)
		}
		switch {
		case unused.MatchString(key):
			kept = append(kept, key)
		case strings.HasPrefix(key, "capabilities."):
			p.note(key, line, "is no key that pawgate knows, so it limits nothing; check the spelling (it is kept in the stored text)")
		default:
			p.note(key, line, "is no key that pawgate knows; it is kept in the stored text")
		}
	}
	slices.Sort(kept)
	if kept = slices.Compact(kept); len(kept) > 0 {
		p.note(strings.Join(kept, ", "), 0, "not used here; kept in the stored text")
	}
	return nil
}

// secretKey is the shape of a key whose value does not belong in a file, and
// reference the shape of a value that only points at a secret.
var (
	secretKey = regexp.MustCompile(`(?i)(token|secret|password|passwd|api_?key|credential)s?$`)
	reference = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://`)
)

// secrets notes values that look like secrets in clear, without showing them.
func (p *parser) secrets(text string) {
	var tree map[string]any
	if toml.Unmarshal([]byte(strings.TrimPrefix(text, "\ufeff")), &tree) != nil {
		return // decode accepted the same text
	}
	for _, key := range secretKeys("", tree) {
		p.note(key, 0, "looks like a secret in clear, and the stored text keeps it; replace it with a reference such as env://NAME and import again")
	}
}

func secretKeys(path string, value any) []string {
	var found []string
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			key := strings.TrimPrefix(path+"."+name, ".")
			if text, ok := v[name].(string); ok && text != "" && secretKey.MatchString(name) && !reference.MatchString(text) {
				found = append(found, key)
			}
			found = append(found, secretKeys(key, v[name])...)
		}
	case []any:
		for i, element := range v {
			found = append(found, secretKeys(fmt.Sprintf("%s[%d]", path, i), element)...)
		}
	}
	return found
}
