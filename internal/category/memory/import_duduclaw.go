package memory

import (
	"fmt"
	"os"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"pawgate/internal/category/memory/sqlitefile"
)

// Converted counts what ReadDuDuClaw took from a database.
type Converted struct {
	Read int `json:"read"` // rows
	// Skipped counts what was left out, by reason.
	Skipped map[string]int `json:"skipped"`
}

// ReadDuDuClaw turns a DuDuClaw memory database (an SQLite file) into the
// lines that Import reads. owner picks the rows of one owner key of that
// database, such as "dudu" or "internal/gateway-internal"; empty takes all
// owners', which is how the predecessor's two keys for one agent become one.
//
// The file must not be in use: what is still in its write-ahead log cannot be
// read, so a log that is not empty is an error.
func ReadDuDuClaw(path, owner string, take func(line []byte) error) (Converted, error) {
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		return Converted{}, fmt.Errorf("the database has changes in its write-ahead log; stop DuDuClaw, or run: sqlite3 FILE 'pragma wal_checkpoint(truncate)'")
	}
	file, err := os.Open(path)
	if err != nil {
		return Converted{}, fmt.Errorf("open DuDuClaw database: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Converted{}, fmt.Errorf("open DuDuClaw database: %w", err)
	}
	source, err := sqlitefile.Open(file, info.Size())
	if err != nil {
		return Converted{}, fmt.Errorf("read DuDuClaw database: %w", err)
	}
	if columns, ok := source.Columns("memories"); !ok || len(columns) == 0 {
		return Converted{}, fmt.Errorf("read DuDuClaw database: it has no table memories")
	}
	c := converter{owner: owner, take: take, done: Converted{Skipped: map[string]int{}}}
	for _, table := range []struct {
		name string
		row  func(sqlitefile.Row) error
	}{{"memories", c.memory}, {"entity_alias", c.alias}, {"memories_archive", c.archived}} {
		for row, err := range source.Rows(table.name) {
			if err != nil {
				return c.done, fmt.Errorf("read DuDuClaw table %s: %w", table.name, err)
			}
			c.done.Read++
			if err := table.row(row); err != nil {
				return c.done, err
			}
		}
	}
	return c.done, nil
}

// converter turns rows into lines.
type converter struct {
	owner string
	take  func([]byte) error
	done  Converted
}

func (c *converter) skip(reason string) { c.done.Skipped[reason]++ }

func (c *converter) give(l line) error {
	b, err := encodeLine(l)
	if err != nil {
		return err
	}
	return c.take(b)
}

func (c *converter) memory(row sqlitefile.Row) error {
	l, reason := duduclawMemory(row, c.owner)
	if reason != "" {
		c.skip(reason)
		return nil
	}
	return c.give(line{Type: lineMemory, memoryLine: l})
}

func (c *converter) alias(row sqlitefile.Row) error {
	if c.owner != "" && text(row, "agent_id") != c.owner {
		c.skip("of another owner")
		return nil
	}
	return c.give(line{Type: lineAlias, alias: alias{Canonical: text(row, "canonical"), Alias: text(row, "alias")}})
}

func (c *converter) archived(sqlitefile.Row) error {
	c.skip("archived: forgotten on purpose")
	return nil
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
		Layer: strings.ToLower(text(row, "layer")), Importance: float32(number64(row, "importance")), Tags: duduclawList(text(row, "tags")),
		Origin: strings.ToLower(text(row, "origin")), SourceEvent: text(row, "source_event"),
		Subject: text(row, "subject"), Predicate: text(row, "predicate"), Object: text(row, "object"),
		Quarantined: number64(row, "quarantined") != 0,
	}
	if row["origin_trust"] != nil {
		t := float32(number64(row, "origin_trust"))
		l.OriginTrust = &t
	}
	l.Supersedes, l.SupersededBy = duduclawID(row, "supersedes"), duduclawID(row, "superseded_by")
	for _, id := range duduclawList(text(row, "derived_from")) {
		l.DerivedFrom = append(l.DerivedFrom, "m_dudu_"+id)
	}
	for _, t := range []struct {
		column string
		into   **time.Time
	}{{"valid_from", &l.ValidFrom}, {"valid_until", &l.ValidUntil}, {"invalidated_at", &l.InvalidatedAt}} {
		if *t.into, err = duduclawTime(row, t.column); err != nil {
			return l, "no readable time"
		}
	}
	if l.InvalidatedAt != nil {
		// There, a fact that was replaced is invalidated as well; it is part of
		// the history. What nothing replaced was taken back, and is not.
		if l.InvalidatedBy = originImport; l.SupersededBy != "" {
			l.InvalidatedAt, l.InvalidatedBy = nil, ""
		}
	}
	// There, whatever was replaced has an end; here it is retired unless its
	// timeline says so by itself.
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
