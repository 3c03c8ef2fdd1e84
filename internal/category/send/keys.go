package send

import (
	"encoding/json"
	"slices"
	"strings"

	"pawgate/internal/fault"
)

// key is a documented setting of a channel.
type key struct {
	name string
	kind kind
	// words are the values of a word or a number.
	words []string
	// unset is the value where none was given.
	unset string
	// access decides who gets in: only an operator's credential sets it, and
	// only for the whole channel. An empty list lets nobody in.
	access bool
	// sending says that this server acts on it; the others are kept for
	// whatever receives the channel's messages.
	sending bool
}

type kind int

const (
	boolean kind = iota
	word
	number
	list
)

var keys = []key{
	{name: "response_mode", kind: word, words: []string{"auto", "embed", "plain"}, unset: `"auto"`, sending: true},
	{name: "mention_only", kind: boolean, unset: `false`},
	{name: "auto_thread", kind: boolean, unset: `false`},
	{name: "thread_archive_minutes", kind: number, words: []string{"60", "1440", "4320", "10080"}, unset: `1440`},
	{name: "require_pairing", kind: boolean, unset: `true`, access: true},
	{name: "allowed_channels", kind: list, unset: `[]`, access: true},
	{name: "allowed_guilds", kind: list, unset: `[]`, access: true},
	{name: "allowed_users", kind: list, unset: `[]`, access: true},
	{name: "blocked_users", kind: list, unset: `[]`, access: true},
	{name: "agent_override", kind: word, unset: `""`, access: true},
}

func findKey(name string) (key, error) {
	i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
	if i >= 0 {
		return keys[i], nil
	}
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return key{}, fault.Invalid("key", "key must be one of %s", strings.Join(names, ", "))
}

// maxList bounds a list, in entries, and maxEntry one of them, in bytes.
const maxList, maxEntry = 200, 64

// read turns a value as it was sent into the one that is kept. The predecessor
// took every value as text, so text that holds exactly the value will do.
func (k key) read(v value) (json.RawMessage, error) {
	raw := json.RawMessage(v)
	var text string
	if json.Unmarshal(raw, &text) == nil && k.kind != word {
		raw = json.RawMessage(text)
	}
	switch k.kind {
	case boolean:
		if s := string(raw); s != "true" && s != "false" {
			return nil, fault.Invalid("value", "%s is true or false", k.name)
		}
	case number:
		if !slices.Contains(k.words, string(raw)) {
			return nil, fault.Invalid("value", "%s is one of %s", k.name, strings.Join(k.words, ", "))
		}
	case word:
		if json.Unmarshal(raw, &text) != nil || len(k.words) > 0 && !slices.Contains(k.words, text) || len(text) > maxEntry {
			return nil, fault.Invalid("value", "%s is %s", k.name, strings.Join(k.orName(), ", "))
		}
	case list:
		var entries []string
		if !strings.HasPrefix(string(raw), "[") || json.Unmarshal(raw, &entries) != nil || len(entries) > maxList || slices.ContainsFunc(entries, badEntry) {
			return nil, fault.Invalid("value", "%s is a list of at most %d ids, such as [\"123\"]; an empty one lets nobody in", k.name, maxList)
		}
	}
	return raw, nil
}

func (k key) orName() []string {
	if len(k.words) == 0 {
		return []string{"an agent's id"}
	}
	return append([]string{"one of"}, k.words...)
}

func badEntry(s string) bool { return strings.TrimSpace(s) == "" || len(s) > maxEntry }

// shown is a setting as it is answered.
type shown struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
	// From is where the value is set: the scope asked for, global, or default.
	From string `json:"from"`
	Note string `json:"note,omitzero"`
}

func (k key) shown(rows []row) shown {
	s := shown{Key: k.name, Value: json.RawMessage(k.unset), From: "default"}
	if i := slices.IndexFunc(rows, func(r row) bool { return r.Key == k.name }); i >= 0 { // the narrower scope is first
		s.Value, s.From = rows[i].Value, rows[i].ScopeID
	}
	if !k.sending {
		s.Note = "kept for what receives messages; sending does not use it"
	}
	if k.access {
		s.Note += "; set by operators only"
	}
	return s
}

// row is a row of channel_settings.
type row struct {
	ScopeID string
	Key     string
	Value   json.RawMessage
}
