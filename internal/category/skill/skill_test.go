package skill_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/category/skill"
	"pawgate/internal/client/chat"
	"pawgate/internal/client/github"
	"pawgate/internal/client/github/githubtest"
	"pawgate/internal/postgres/postgrestest"
	format "pawgate/internal/skill"
	"pawgate/internal/skill/store"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

// noon is the clock of every test, until a test moves it.
var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// bench is a firm of three agents: boss, with clerk below, and stranger.
type bench struct {
	tx  pgx.Tx
	hub *githubtest.GitHub
	now time.Time
	cat tool.Category
}

func setup(t *testing.T, model ...skill.Model) *bench {
	t.Helper()
	b := &bench{tx: postgrestest.New(t), hub: githubtest.New(t), now: noon}
	b.exec(t, `insert into agents (id, reports_to) values ('boss', null), ('clerk', 'boss'), ('stranger', null)`)
	s := skill.Settings{GitHub: github.Config{URL: b.hub.URL}, Hubs: []string{"acme=acme/skills"}, Chat: chat.Config{Model: "scribe-1"}}
	var m skill.Model
	if len(model) > 0 {
		m = model[0]
	}
	b.cat = skill.NewWith(b.tx, s, m, func() time.Time { return b.now })
	return b
}

func (b *bench) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.tx.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	var n int
	if err := b.tx.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func operator() caller.Caller {
	who := tooltest.Who("boss")
	who.Scopes = append(who.Scopes, caller.ScopeOperator)
	return who
}

// text is a SKILL.md.
func text(name, description, body string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\nmetadata:\n  tags: docs\n---\n\n" + body + "\n"
}

// keep stores a skill of an agent, or of a scope without one.
func (b *bench) keep(t *testing.T, scope, agent, content string, more ...format.File) store.Kept {
	t.Helper()
	s, problems := format.Parse("", append([]format.File{{Path: "SKILL.md", Content: []byte(content)}}, more...))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	k, err := store.Keep(t.Context(), b.tx, store.Draft{Scope: scope, Agent: agent, Skill: s, Lineage: "test", State: "active", By: "boss", Update: true, Now: b.now})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// push makes the hub have a skill with these files, beside what else is given.
func (b *bench) push(files map[string]string, modes ...string) string {
	all := map[string]githubtest.File{"README.md": {Content: "hello"}}
	for path, content := range files {
		all[path] = githubtest.File{Content: content}
	}
	for i := 0; i+1 < len(modes); i += 2 {
		f := all[modes[i]]
		f.Mode = modes[i+1]
		all[modes[i]] = f
	}
	return b.hub.Push("acme/skills", all)
}

// scribe is a model that answers what it is told to, in turn.
type scribe struct {
	answers []string
	err     error
	asked   []chat.Request
}

func (s *scribe) Provider() string { return "test" }

func (s *scribe) Complete(_ context.Context, q chat.Request) (chat.Completion, error) {
	s.asked = append(s.asked, q)
	if s.err != nil {
		return chat.Completion{}, s.err
	}
	answer := s.answers[min(len(s.asked), len(s.answers))-1]
	return chat.Completion{Message: chat.Message{Role: chat.Assistant, Text: answer}, ID: string(rune('a' + len(s.asked))), Model: "scribe-1", Stop: chat.Done, Usage: chat.Usage{Input: 100, Output: 50}}, nil
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type listResult struct {
	AgentID string `json:"agent_id"`
	Skills  []struct {
		SkillID    string `json:"skill_id"`
		Name       string
		Scope      string
		State      string
		Overridden bool
		Uses       int
		Version    int
	}
	NextAfter string `json:"next_after"`
	Skill     *struct {
		SkillID      string `json:"skill_id"`
		Instructions string
		Scope        string
		Files        []struct{ Path string }
		File         *struct{ Path, Text, Base64 string }
	}
}

func (r listResult) names() []string {
	names := []string{}
	for _, s := range r.Skills {
		names = append(names, s.Scope+"/"+s.Name)
	}
	return names
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for hubs, ok := range map[string]bool{"": true, "a=x/y": true, "a=x/y,b=z/w": true, "x/y": false, "github=x/y": false, "A=x/y": false, "a=x": false, "own=x/y": false} {
		s := skill.Settings{}
		if hubs != "" {
			s.Hubs = strings.Split(hubs, ",")
		}
		if err := s.Validate(); (err == nil) != ok {
			t.Errorf("SKILL_HUBS %q: %v", hubs, err)
		}
	}
	if err := (skill.Settings{GitHub: github.Config{URL: "no url"}}).Validate(); err == nil {
		t.Error("an address that is none is taken")
	}
}
