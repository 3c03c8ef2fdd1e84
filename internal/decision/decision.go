// Package decision records the choices that an agent offers to a person in a
// message: a question and its options, of which one is chosen later with the
// tool decision_resolve.
//
// It writes offers and nothing else. It never decides, never sends, and tells
// nobody of an offer but the agent that made it.
package decision

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed record.sql
var recordSQL string

// Bounds of an offer. Longer texts are cut: they were sent already, and a
// person has seen them whole.
const (
	MaxOptions  = 20
	maxKey      = 40   // code points
	maxQuestion = 1024 // code points
	maxContent  = 2048 // code points
	// Life is how long a choice stays open, unless the offer says otherwise.
	Life = 7 * 24 * time.Hour
)

// Option is one of the choices.
type Option struct {
	Key     string `json:"key"` // what a person answers with, such as A
	Content string `json:"content"`
}

// Offer is a question with its options.
type Offer struct {
	AgentID  string // who asks
	Message  string // identifies the message: the same one again is the same offer
	Question string
	Options  []Option
	Life     time.Duration // 0: Life
}

// Record keeps an offer and gives its id. A message that was recorded before
// changes nothing and gives the same id. It fails with a broken argument for
// fewer than two options, and for keys that are empty or differ only in case.
func Record(ctx context.Context, db postgres.DB, o Offer) (string, error) {
	if err := o.check(); err != nil {
		return "", err
	}
	options := make([]Option, len(o.Options))
	for i, option := range o.Options {
		options[i] = Option{strings.TrimSpace(option.Key), cut(option.Content, maxContent)}
	}
	encoded, err := json.Marshal(options)
	if err != nil {
		return "", fmt.Errorf("encode options: %w", err)
	}
	life := o.Life
	if life <= 0 {
		life = Life
	}
	id := idOf(o)
	_, err = postgres.Exec(ctx, db, recordSQL, pgx.StrictNamedArgs{
		"id": id, "agent": o.AgentID, "question": cut(o.Question, maxQuestion), "options": string(encoded), "life": life.Seconds(),
	})
	if err != nil {
		return "", fmt.Errorf("write decision: %w", err)
	}
	return id, nil
}

func (o Offer) check() error {
	switch {
	case strings.TrimSpace(o.Question) == "":
		return fault.Invalid("question", "question must not be empty")
	case o.Message == "":
		return fault.Invalid("message", "message must identify the message that asks")
	case len(o.Options) < 2 || len(o.Options) > MaxOptions:
		return fault.Invalid("options", "options must be 2 to %d, not %d", MaxOptions, len(o.Options))
	}
	seen := map[string]bool{}
	for _, option := range o.Options {
		key := Fold(option.Key)
		if key == "" || len([]rune(key)) > maxKey || seen[key] {
			return fault.Invalid("options", "every option needs a key of its own, at most %d characters; case does not count", maxKey)
		}
		seen[key] = true
	}
	return nil
}

// Fold is the form in which keys are compared.
func Fold(key string) string { return strings.ToLower(strings.TrimSpace(key)) }

// idOf is the same for the same message of the same agent.
func idOf(o Offer) string {
	sum := sha256.Sum256([]byte(o.AgentID + "\x00" + o.Message))
	return "d" + hex.EncodeToString(sum[:6])
}

func cut(text string, most int) string {
	runes := []rune(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\ufffd"))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most-1]) + "…"
}
