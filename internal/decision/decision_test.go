package decision_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/decision"
	"pawgate/internal/fault"
	"pawgate/internal/postgres/postgrestest"
)

var options = []decision.Option{{Key: "A", Content: "first"}, {Key: " b ", Content: strings.Repeat("長", 3000)}}

func TestRecord(t *testing.T) {
	t.Parallel()
	tx := postgrestest.New(t)
	if _, err := tx.Exec(t.Context(), `insert into agents (id) values ('bot'), ('other')`); err != nil {
		t.Fatal(err)
	}
	offer := decision.Offer{AgentID: "bot", Message: "telegram:1:2", Question: "Which?", Options: options, Life: time.Hour}
	id, err := decision.Record(t.Context(), tx, offer)
	if err != nil {
		t.Fatal(err)
	}
	offer.Question = "Changed afterwards?"
	if again, err := decision.Record(t.Context(), tx, offer); err != nil || again != id {
		t.Errorf("the same message again: %q, %v; want %q", again, err, id)
	}
	offer.AgentID = "other"
	if other, err := decision.Record(t.Context(), tx, offer); err != nil || other == id {
		t.Errorf("another agent's message of the same name: %q, %v", other, err)
	}
	var question, key string
	var length int
	var life float64
	if err := tx.QueryRow(t.Context(), `select question, options -> 1 ->> 'key', length(options -> 1 ->> 'content'),
		extract(epoch from expires_at - created_at) from decisions where id = $1`, id).Scan(&question, &key, &length, &life); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"Which?", "b", 2048}, []any{question, key, length}); diff != "" {
		t.Errorf("question, key, length of the content (-want +got):\n%s", diff)
	}
	if life < 3599 || life > 3660 {
		t.Errorf("it stays open for %v s, want an hour", life)
	}
}

func TestRecord_refuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		offer decision.Offer
		want  string
	}{
		"no_question":          {decision.Offer{Message: "m", Question: " ", Options: options}, "question"},
		"no_message":           {decision.Offer{Question: "q", Options: options}, "message"},
		"one_option":           {decision.Offer{Message: "m", Question: "q", Options: options[:1]}, "options"},
		"no_key":               {decision.Offer{Message: "m", Question: "q", Options: []decision.Option{{Key: "a"}, {Key: " "}}}, "options"},
		"keys_alike":           {decision.Offer{Message: "m", Question: "q", Options: []decision.Option{{Key: "a"}, {Key: "A "}}}, "options"},
		"more_than_is_allowed": {decision.Offer{Message: "m", Question: "q", Options: make([]decision.Option, decision.MaxOptions+1)}, "options"},
	} {
		_, err := decision.Record(t.Context(), nil, c.offer)
		if invalid, ok := fault.InvalidOf(err); !ok || invalid.Parameter != c.want {
			t.Errorf("%s: %v, want the parameter %s refused", name, err, c.want)
		}
	}
}
