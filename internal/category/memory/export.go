package memory

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
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

// How much a page holds: a function's answer has 6 MB at most. One memory is
// always in it, whatever its size.
const (
	exportRows  = 500
	exportBytes = 1 << 19 // of content
)

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
// no longer counts. Its numbers are as narrow as their columns, so that 0.6 is
// not written 0.6000000238418579.
type memoryLine struct {
	ID            string     `json:"id,omitempty"`
	Content       string     `json:"content,omitempty"`
	Layer         string     `json:"layer,omitempty"`
	Importance    float32    `json:"importance,omitzero"`
	Tags          []string   `json:"tags,omitempty"`
	Marks         []string   `json:"marks,omitempty"`
	CreatedAt     time.Time  `json:"created_at,omitzero"`
	TimesStored   int        `json:"times_stored,omitzero"`
	LastStoredAt  time.Time  `json:"last_stored_at,omitzero"`
	Origin        string     `json:"origin,omitempty"`
	OriginTrust   *float32   `json:"origin_trust,omitzero"`
	DerivedFrom   []string   `json:"derived_from,omitempty"`
	SourceEvent   string     `json:"source_event,omitempty"`
	Subject       string     `json:"subject,omitempty"`
	Predicate     string     `json:"predicate,omitempty"`
	Object        string     `json:"object,omitempty"`
	ValidFrom     *time.Time `json:"valid_from,omitzero"`
	ValidUntil    *time.Time `json:"valid_until,omitzero"`
	SaidUntil     *time.Time `json:"said_until,omitzero"`
	Supersedes    string     `json:"supersedes,omitempty"`
	SupersededBy  string     `json:"superseded_by,omitempty"`
	Retired       bool       `json:"retired,omitzero"`
	Quarantined   bool       `json:"quarantined,omitzero"`
	InvalidatedAt *time.Time `json:"invalidated_at,omitzero"`
	InvalidatedBy string     `json:"invalidated_by,omitempty"`
	SameAs        string     `json:"same_as,omitempty"`
}

// Exported counts what was exported.
type Exported struct {
	Memories int `json:"memories"`
	Aliases  int `json:"aliases"`
}

// Page is a part of an export: lines, each a JSON object.
type Page struct {
	Lines []json.RawMessage `json:"lines"`
	// Next is where the next page begins; 0 after the last.
	Next int32 `json:"next,omitzero"`
	Exported
}

// Export writes all memories and aliases of an agent as JSON Lines, oldest
// first, for Import to read back. Memories stored meanwhile may be in it or
// not. progress is called after each page and may be nil.
func Export(ctx context.Context, db postgres.DB, agent string, w io.Writer, progress func(Exported)) (Exported, error) {
	return WritePages(w, progress, func(after int32) (Page, error) { return ExportPage(ctx, db, agent, after) })
}

// WritePages writes an export that comes page by page, wherever from.
func WritePages(w io.Writer, progress func(Exported), next func(after int32) (Page, error)) (Exported, error) {
	out := bufio.NewWriterSize(w, 1<<16)
	var done Exported
	for after := int32(0); ; {
		page, err := next(after)
		if err != nil {
			return done, err
		}
		for _, line := range page.Lines {
			if _, err := out.Write(append(line, '\n')); err != nil {
				return done, fmt.Errorf("write export: %w", err)
			}
		}
		done.Memories, done.Aliases = done.Memories+page.Memories, done.Aliases+page.Aliases
		if progress != nil {
			progress(done)
		}
		if after = page.Next; after == 0 {
			break
		}
	}
	if err := out.Flush(); err != nil {
		return done, fmt.Errorf("write export: %w", err)
	}
	return done, nil
}

// ExportPage is the part of an export that begins after a place, 0 being the
// beginning. The aliases are in the last one.
func ExportPage(ctx context.Context, db postgres.DB, agent string, after int32) (Page, error) {
	rows, err := postgres.All[struct {
		N int32
		memoryLine
	}](ctx, db, exportSQL, pgx.StrictNamedArgs{"agent": agent, "after": after, "limit": exportRows, "bytes": exportBytes})
	if err != nil {
		return Page{}, fmt.Errorf("export memories: %w", err)
	}
	var page Page
	for _, r := range rows {
		if err := page.add(line{Type: lineMemory, memoryLine: r.memoryLine}); err != nil {
			return page, err
		}
		page.Next = r.N
	}
	if page.Memories = len(rows); page.Memories > 0 {
		return page, nil
	}
	aliases, err := postgres.All[alias](ctx, db, exportAliasesSQL, pgx.StrictNamedArgs{"agent": agent})
	if err != nil {
		return page, fmt.Errorf("export aliases: %w", err)
	}
	for _, a := range aliases {
		if err := page.add(line{Type: lineAlias, alias: a}); err != nil {
			return page, err
		}
	}
	page.Aliases = len(aliases)
	return page, nil
}

func (p *Page) add(l line) error {
	b, err := encodeLine(l)
	p.Lines = append(p.Lines, b)
	return err
}

func encodeLine(l line) ([]byte, error) {
	b, err := jsonv2.Marshal(l, jsonv2.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("encode memory: %w", err)
	}
	return b, nil
}
