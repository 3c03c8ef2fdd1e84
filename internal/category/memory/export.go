package memory

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"io"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
)

var (
	//go:embed export.sql
	exportSQL string
	//go:embed export_aliases.sql
	exportAliasesSQL string
)

// exportPage is how many memories are read at a time.
const exportPage = 500

// line is one line of an exported file: a memory or an alias.
type line struct {
	Type string `json:"type"` // memory, alias
	memoryLine
	alias
}

const (
	lineMemory = "memory"
	lineAlias  = "alias"
)

// memoryLine is a memory with everything that is kept of it, also of one that
// no longer counts.
type memoryLine struct {
	ID            string     `json:"id,omitempty"`
	Content       string     `json:"content,omitempty"`
	Layer         string     `json:"layer,omitempty"`
	Importance    float64    `json:"importance,omitzero"`
	Tags          []string   `json:"tags,omitempty"`
	Marks         []string   `json:"marks,omitempty"`
	CreatedAt     time.Time  `json:"created_at,omitzero"`
	TimesStored   int        `json:"times_stored,omitzero"`
	LastStoredAt  time.Time  `json:"last_stored_at,omitzero"`
	Origin        string     `json:"origin,omitempty"`
	OriginTrust   *float64   `json:"origin_trust,omitzero"`
	DerivedFrom   []string   `json:"derived_from,omitempty"`
	SourceEvent   string     `json:"source_event,omitempty"`
	Subject       string     `json:"subject,omitempty"`
	Predicate     string     `json:"predicate,omitempty"`
	Object        string     `json:"object,omitempty"`
	ValidFrom     *time.Time `json:"valid_from,omitzero"`
	ValidUntil    *time.Time `json:"valid_until,omitzero"`
	Supersedes    string     `json:"supersedes,omitempty"`
	SupersededBy  string     `json:"superseded_by,omitempty"`
	Retired       bool       `json:"retired,omitzero"`
	Quarantined   bool       `json:"quarantined,omitzero"`
	InvalidatedAt *time.Time `json:"invalidated_at,omitzero"`
	InvalidatedBy string     `json:"invalidated_by,omitempty"`
	SameAs        string     `json:"same_as,omitempty"`
}

// Exported counts what Export wrote.
type Exported struct {
	Memories int `json:"memories"`
	Aliases  int `json:"aliases"`
}

// Export writes all memories and aliases of an agent as JSON Lines, oldest
// first, for Import to read back. Memories stored meanwhile may be in it or
// not. progress is called after each page and may be nil.
func Export(ctx context.Context, db postgres.DB, agent string, w io.Writer, progress func(Exported)) (Exported, error) {
	out := bufio.NewWriterSize(w, 1<<16)
	var done Exported
	for after := int32(0); ; {
		rows, err := postgres.All[struct {
			N int32
			memoryLine
		}](ctx, db, exportSQL, pgx.StrictNamedArgs{"agent": agent, "after": after, "limit": exportPage})
		if err != nil {
			return done, fmt.Errorf("export memories: %w", err)
		}
		for _, r := range rows {
			if err := writeLine(out, line{Type: lineMemory, memoryLine: r.memoryLine}); err != nil {
				return done, err
			}
			after = r.N
		}
		done.Memories += len(rows)
		if progress != nil {
			progress(done)
		}
		if len(rows) < exportPage {
			break
		}
	}
	aliases, err := postgres.All[alias](ctx, db, exportAliasesSQL, pgx.StrictNamedArgs{"agent": agent})
	if err != nil {
		return done, fmt.Errorf("export aliases: %w", err)
	}
	for _, a := range aliases {
		if err := writeLine(out, line{Type: lineAlias, alias: a}); err != nil {
			return done, err
		}
		done.Aliases++
	}
	if err := out.Flush(); err != nil {
		return done, fmt.Errorf("write export: %w", err)
	}
	return done, nil
}

func writeLine(w io.Writer, l line) error {
	b, err := jsonv2.Marshal(l, jsonv2.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("encode export: %w", err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write export: %w", err)
	}
	return nil
}
