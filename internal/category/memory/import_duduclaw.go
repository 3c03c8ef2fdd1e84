package memory

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"pawgate/internal/category/memory/sqlitefile"
	"pawgate/internal/postgres"
)

// ImportDuDuClaw reads a DuDuClaw memory database (an SQLite file) into an
// agent's memories. owner picks the rows of one owner key of that database,
// such as "dudu" or "internal/gateway-internal"; empty takes all owners', which
// is how the predecessor's two keys for one agent become one.
//
// The file must not be in use: what is still in its write-ahead log cannot be
// read, so a log that is not empty is an error.
func ImportDuDuClaw(ctx context.Context, db postgres.DB, agent, path, owner string, o ImportOptions) (Imported, error) {
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		return Imported{}, fmt.Errorf("the database has changes in its write-ahead log; stop DuDuClaw, or run: sqlite3 FILE 'pragma wal_checkpoint(truncate)'")
	}
	file, err := os.Open(path)
	if err != nil {
		return Imported{}, fmt.Errorf("open DuDuClaw database: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Imported{}, fmt.Errorf("open DuDuClaw database: %w", err)
	}
	return importDuDuClaw(ctx, newImporter(db, agent, o), file, info.Size(), owner)
}

func importDuDuClaw(ctx context.Context, in *importer, r io.ReaderAt, size int64, owner string) (Imported, error) {
	source, err := sqlitefile.Open(r, size)
	if err != nil {
		return in.done, fmt.Errorf("read DuDuClaw database: %w", err)
	}
	if columns, ok := source.Columns("memories"); !ok || len(columns) == 0 {
		return in.done, fmt.Errorf("read DuDuClaw database: it has no table memories")
	}
	for row, err := range source.Rows("memories") {
		if err != nil {
			return in.done, fmt.Errorf("read DuDuClaw memories: %w", err)
		}
		in.done.Read++
		l, reason := duduclawMemory(row, owner)
		if reason != "" {
			in.skip(reason)
			continue
		}
		if err := in.add(ctx, l); err != nil {
			return in.done, err
		}
	}
	for row, err := range source.Rows("entity_alias") {
		if err != nil {
			return in.done, fmt.Errorf("read DuDuClaw aliases: %w", err)
		}
		in.done.Read++
		if owner != "" && text(row, "agent_id") != owner {
			in.skip("of another owner")
			continue
		}
		in.alias = append(in.alias, alias{Canonical: text(row, "canonical"), Alias: text(row, "alias")})
	}
	for range source.Rows("memories_archive") {
		in.done.Read++
		in.skip("archived: forgotten on purpose")
	}
	return in.finish(ctx)
}

// duduclawMemory understands one row, or says why not.
func duduclawMemory(row sqlitefile.Row, owner string) (l memoryLine, skip string) {
	if owner != "" && text(row, "agent_id") != owner {
		return l, "of another owner"
	}
	created, err := duduclawTime(row, "timestamp")
	if err != nil || created == nil {
		return l, "no readable time"
	}
	l = memoryLine{
		ID: "m_dudu_" + text(row, "id"), Content: text(row, "content"), CreatedAt: *created,
		Layer: strings.ToLower(text(row, "layer")), Importance: number64(row, "importance"), Tags: duduclawList(text(row, "tags")),
		Origin: strings.ToLower(text(row, "origin")), SourceEvent: text(row, "source_event"),
		Subject: text(row, "subject"), Predicate: text(row, "predicate"), Object: text(row, "object"),
		Quarantined: number64(row, "quarantined") != 0,
	}
	if row["origin_trust"] != nil {
		t := number64(row, "origin_trust")
		l.OriginTrust = &t
	}
	l.Supersedes, l.SupersededBy = duduclawID(row, "supersedes"), duduclawID(row, "superseded_by")
	for _, id := range duduclawList(text(row, "derived_from")) {
		l.DerivedFrom = append(l.DerivedFrom, "m_dudu_"+id)
	}
	for _, t := range []struct {
		column string
		into   **time.Time
	}{{"valid_from", &l.ValidFrom}, {"valid_until", &l.ValidUntil}} {
		if *t.into, err = duduclawTime(row, t.column); err != nil {
			return l, "no readable time"
		}
	}
	// There, whatever was replaced or taken back has an end; here it is
	// retired unless its timeline says so by itself.
	l.Retired = l.ValidUntil != nil
	return l, ""
}

func duduclawID(row sqlitefile.Row, column string) string {
	if id := text(row, column); id != "" {
		return "m_dudu_" + id
	}
	return ""
}

// duduclawTime reads RFC 3339 and SQLite's own format; nil for none.
func duduclawTime(row sqlitefile.Row, column string) (*time.Time, error) {
	value := text(row, column)
	if value == "" {
		return nil, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(layout, value); err == nil {
			return &at, nil
		}
	}
	return nil, fmt.Errorf("no time: %q", value)
}

// duduclawList reads a JSON array of texts or a list with commas.
func duduclawList(value string) []string {
	var list []string
	if jsonv2.Unmarshal([]byte(value), &list) != nil && value != "" {
		list = strings.Split(value, ",")
	}
	for i := range list {
		list[i] = shorten(strings.TrimSpace(list[i]), maxTagLength)
	}
	return list[:min(len(list), maxTags)]
}

func text(row sqlitefile.Row, column string) string {
	switch v := row[column].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

func number64(row sqlitefile.Row, column string) float64 {
	switch v := row[column].(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}
