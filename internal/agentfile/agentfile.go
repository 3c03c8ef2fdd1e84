// Package agentfile reads an agent.toml of DuDuClaw, the predecessor, and says
// in notes whatever it changed or did not understand; and it writes one.
//
// The text itself is kept whole, comments and unknown keys included, so that
// an export gives back what was imported, byte for byte, but for the values
// that have changed since. What limits an agent must not get
// lost on the way: a file with a broken syntax or a value of the wrong type is
// refused as a whole, where the predecessor dropped its lists in silence; and
// every doubt about a list is settled so that the agent may do less, save the
// one that the predecessor's users rely on: there an absent or empty
// allowed_tools meant every tool, so it becomes ["*"], with a note. Argument
// rules are taken over too; a misspelt member of one is refused, because the
// rule without it is another rule.
//
// The package does no I/O, grants nothing by itself, and its errors and notes
// never repeat a value of the file that could be a secret.
package agentfile

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	toml "github.com/pelletier/go-toml/v2"

	"pawgate/internal/fault"
	"pawgate/internal/policy"
)

// MaxSize is the largest file that is read, in bytes. Real ones have a few
// thousand.
const MaxSize = 256 << 10

// maxText bounds the one-line texts of [agent], in code points.
const maxText = 200

// Agent is what an agent.toml says, in pawgate's words.
type Agent struct {
	ID, DisplayName, Role, State, Model, ReportsTo, Icon, Trigger string
	// Of these, the file says nothing where they are nil.
	FallbackModel, APIMode, HeartbeatCron *string
	BudgetCents                           *int64 // for a month
	MaxConcurrent                         *int
	HeartbeatEnabled                      *bool
	// SoftBudget says that the budget warns and does not stop.
	SoftBudget bool
	// Evolution are the plain values of [evolution], as words.
	Evolution map[string]string
	// The lists hold patterns, see IsPattern.
	Allowed, Denied, ApprovalRequired, Scoped []string
	// Rules are the argument rules, not yet checked against the tools.
	Rules []policy.Rule
	// Source is the text as it came.
	Source string
	Notes  []Note
}

// Note is one thing that was changed or not understood.
type Note struct {
	Key  string `json:"key"`           // such as capabilities.allowed_tools
	Line int    `json:"line,omitzero"` // from 1; 0 when it is about an absent key
	Text string `json:"text"`
}

// id is the form of an agent's id, as the database checks it.
var id = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// IsID reports whether a text can be an agent's id.
func IsID(text string) bool { return id.MatchString(text) }

// Parse reads the text of an agent.toml. The error is always a
// *fault.InvalidArgument for the parameter source, with the line.
func Parse(text string) (Agent, error) {
	switch {
	case len(text) > MaxSize:
		return Agent{}, invalid("the file has %d bytes; at most %d are read", len(text), MaxSize)
	case strings.ContainsRune(text, 0):
		return Agent{}, invalid("the file holds a NUL character, which cannot be stored; remove it")
	case !utf8.ValidString(text):
		return Agent{}, invalid("the file is not UTF-8; save it as UTF-8 and import it again")
	}
	p := parser{agent: Agent{Source: text}}
	if err := p.decode(text); err != nil {
		return Agent{}, err
	}
	if err := p.identity(); err != nil {
		return Agent{}, err
	}
	p.settings()
	p.capabilities()
	if err := p.rules(); err != nil {
		return Agent{}, err
	}
	p.secrets(text)
	return p.agent, nil
}

// parser collects the agent and the notes on it.
type parser struct {
	file  file
	agent Agent
}

func (p *parser) note(key string, line int, text string, args ...any) {
	p.agent.Notes = append(p.agent.Notes, Note{Key: key, Line: line, Text: fmt.Sprintf(text, args...)})
}

func invalid(text string, args ...any) error {
	return fault.Invalid("source", "agent.toml: "+text+"; nothing was imported", args...)
}

// decode reads the keys that pawgate knows and notes the others.
func (p *parser) decode(text string) error {
	dec := toml.NewDecoder(strings.NewReader(strings.TrimPrefix(text, "\ufeff"))) // editors on Windows write that mark
	dec.DisallowUnknownFields()
	err := dec.Decode(&p.file)
	var unknown *toml.StrictMissingError
	var broken *toml.DecodeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		return p.unknown(unknown.Errors)
	case errors.As(err, &broken):
		line, _ := broken.Position()
		if key := strings.Join(broken.Key(), "."); strings.Contains(broken.Error(), "cannot decode") {
			return invalid("line %d: %s has the wrong type", line, key)
		}
		return invalid("line %d: %s", line, strings.TrimPrefix(broken.Error(), "toml: "))
	}
	return invalid("it cannot be read as TOML")
}

// identity takes over who the agent is.
func (p *parser) identity() error {
	in, out := p.file.Agent, &p.agent
	name := strings.TrimSpace(in.Name)
	out.ID = strings.ToLower(name)
	switch {
	case name == "":
		return invalid("[agent] has no name, which is the agent's id")
	case !IsID(out.ID):
		return invalid("the name in [agent] must start with a letter or digit and have only a-z, 0-9, - and _, at most 64 of them")
	case out.ID != in.Name:
		p.note("agent.name", 0, "ids are lower-case here: %s", out.ID)
	}
	out.DisplayName = cmp.Or(in.DisplayName, name)
	out.Role = cmp.Or(in.Role, "specialist")
	out.Icon, out.Trigger, out.Model = in.Icon, in.Trigger, p.file.Model.Preferred
	for _, text := range [][2]string{{"agent.display_name", out.DisplayName}, {"agent.role", out.Role},
		{"agent.icon", out.Icon}, {"agent.trigger", out.Trigger}, {"model.preferred", out.Model}} {
		if !IsText(text[1]) {
			return invalid("%s must be one line of at most %d characters", text[0], maxText)
		}
	}
	p.state(in.Status)
	return p.superior(in.ReportsTo)
}

// IsText reports whether a text can be a name, role, icon, trigger or model:
// one line, and nothing in it that cannot be seen or that turns the direction
// of writing, so that no name passes for another.
func IsText(text string) bool {
	return utf8.ValidString(text) && utf8.RuneCountInString(text) <= maxText && !strings.ContainsFunc(text, hides)
}

// hides reports whether a character is a control character, a line's end, or
// an invisible one. The joiners stay: emoji and some scripts need them.
func hides(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	return r != nonJoiner && r != joiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

func (p *parser) state(status string) {
	switch status {
	case "", "active":
		p.agent.State = "active"
	case "paused", "archived":
		p.agent.State = status
	case "terminated", "deleted":
		p.agent.State = "archived"
		p.note("agent.status", 0, "%s became archived: it may call nothing and is not listed", status)
	default:
		p.agent.State = "paused"
		p.note("agent.status", 0, "is none of active, paused, terminated, archived and deleted; became paused, to be safe")
	}
}

func (p *parser) superior(reportsTo string) error {
	boss := strings.ToLower(strings.TrimSpace(reportsTo))
	switch {
	case boss == "" || boss == "none": // both stand for the top in the predecessor's own templates
		return nil
	case !IsID(boss):
		return invalid("reports_to in [agent] is not the name of an agent")
	case boss == p.agent.ID:
		p.note("agent.reports_to", 0, "an agent cannot report to itself; it reports to nobody")
		return nil
	}
	p.agent.ReportsTo = boss
	return nil
}
