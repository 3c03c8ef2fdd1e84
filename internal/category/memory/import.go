package memory

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
)

//go:embed import.sql
var importSQL string

// ImportOptions say how to import.
type ImportOptions struct {
	// DryRun reads and checks everything and keeps nothing.
	DryRun bool
	// Now is when memories without a time of their own were stored.
	Now time.Time
	// Progress is called now and then; nil for never.
	Progress func(Imported)
}

// Imported counts what an import did.
type Imported struct {
	Read    int `json:"read"` // lines or rows
	Stored  int `json:"stored"`
	Known   int `json:"known"` // memories that the agent had already
	Aliases int `json:"aliases"`
	// Skipped counts what was left out, by reason.
	Skipped map[string]int `json:"skipped"`
}

// Import reads what Export wrote into an agent's memories. Ids are kept, so
// importing the same file again stores nothing twice. What cannot be taken is
// counted, by reason, and does not stop the rest. The agent's quota is not
// asked: importing is an operator's doing.
func Import(ctx context.Context, db postgres.DB, agent string, r io.Reader, o ImportOptions) (Imported, error) {
	in := newImporter(db, agent, o)
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		text, err := ReadLine(lines)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return in.done, fmt.Errorf("read import: %w", err)
		}
		if len(text) == 0 {
			continue
		}
		in.done.Read++
		if err := in.line(ctx, text); err != nil {
			return in.done, err
		}
	}
	return in.finish(ctx)
}

// maxLine bounds a line of an import, in bytes: the longest content, all its
// characters escaped, and the rest of a memory.
const maxLine = 16 << 20

// ReadLine reads a line without its end; one that is too long for a memory
// comes cut, so that it is no JSON any more.
func ReadLine(r *bufio.Reader) ([]byte, error) {
	var all []byte
	for {
		part, prefix, err := r.ReadLine()
		if errors.Is(err, io.EOF) && len(all) > 0 {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, part[:min(len(part), maxLine-len(all))]...)
		if !prefix {
			return all, nil
		}
	}
}

// importer takes in memories and aliases, wherever they come from.
type importer struct {
	m     memory
	agent string
	o     ImportOptions
	done  Imported
	batch []memoryLine
	alias []alias
}

// importBatch is how many memories one transaction takes.
const importBatch = 200

func newImporter(db postgres.DB, agent string, o ImportOptions) *importer {
	return &importer{m: memory{db: db, now: func() time.Time { return o.Now }}, agent: agent, o: o, done: Imported{Skipped: map[string]int{}}}
}

func (in *importer) line(ctx context.Context, text []byte) error {
	var l line
	if err := jsonv2.Unmarshal(text, &l); err != nil {
		in.skip("not valid JSON")
		return nil
	}
	switch l.Type {
	case lineMemory:
		return in.add(ctx, l.memoryLine)
	case lineAlias:
		in.alias = append(in.alias, l.alias)
	default:
		in.skip("neither a memory nor an alias")
	}
	return nil
}

func (in *importer) skip(reason string) { in.done.Skipped[reason]++ }

// add takes one memory in, with the next batch.
func (in *importer) add(ctx context.Context, l memoryLine) error {
	if reason := l.complete(in.o.Now); reason != "" {
		in.skip(reason)
		return nil
	}
	in.batch = append(in.batch, l)
	if len(in.batch) < importBatch {
		return nil
	}
	return in.flush(ctx)
}

// complete fills in what is missing and says why the memory cannot be taken;
// "" when it can.
func (l *memoryLine) complete(now time.Time) (reason string) {
	if reason := l.tooMuch(); reason != "" {
		return reason
	}
	switch {
	case strings.TrimSpace(l.Content) == "":
		return "blank content"
	case l.Origin != "" && !originName.MatchString(l.Origin):
		return "an origin that is no name"
	case l.Layer != "" && !slices.Contains([]string{episodic, semantic, procedural}, l.Layer):
		return "unknown layer"
	case l.ValidFrom != nil && l.ValidUntil != nil && l.ValidUntil.Before(*l.ValidFrom):
		return "a fact that ends before it begins"
	}
	l.Tags = cleanTags(l.Tags)
	j := judge(l.Content, l.Tags)
	l.Layer = cmp.Or(l.Layer, j.layer)
	l.Importance = min(max(cmp.Or(l.Importance, float32(j.importance)), 1), 10)
	if l.Marks == nil {
		l.Marks = j.marks
	}
	l.Marks = slices.DeleteFunc(l.Marks, func(mark string) bool { return !slices.Contains(marks, mark) })
	l.CreatedAt = cmp.Or(l.CreatedAt, now)
	l.LastStoredAt = cmp.Or(l.LastStoredAt, l.CreatedAt)
	l.TimesStored = min(max(l.TimesStored, 1), maxTimesStored)
	l.Origin = cmp.Or(l.Origin, originImport)
	if l.OriginTrust == nil {
		t := float32(trustCeiling(l.Origin))
		l.OriginTrust = &t
	}
	*l.OriginTrust = min(max(*l.OriginTrust, 0), float32(trustCeiling(l.Origin)))
	if l.Subject == "" || l.Predicate == "" || l.Object == "" {
		l.Subject, l.Predicate, l.Object, l.ValidFrom, l.ValidUntil = "", "", "", nil, nil
	} else if l.ValidFrom == nil {
		l.ValidFrom = &l.CreatedAt
	}
	return ""
}

// maxTimesStored leaves the counter room to count on.
const maxTimesStored = 1 << 30

// tooMuch says what of a memory is more than the table and its indexes hold:
// one such line must not keep the others from being imported.
func (l *memoryLine) tooMuch() (reason string) {
	ids := append([]string{l.ID, l.SourceEvent, l.Supersedes, l.SupersededBy, l.InvalidatedBy, l.SameAs}, l.DerivedFrom...)
	for _, part := range []struct {
		reason string
		most   int // characters
		texts  []string
	}{
		{"content longer than 1048576 characters", 1 << 20, []string{l.Content}},
		{"an id longer than 128 characters", 128, ids},
		{"a fact with a part that is too long", 256, []string{l.Subject}},
		{"a fact with a part that is too long", 128, []string{l.Predicate}},
		{"a fact with a part that is too long", 2000, []string{l.Object}},
		{"a tag longer than 64 characters", maxTagLength, l.Tags},
	} {
		for _, text := range part.texts {
			if strings.ContainsRune(text, 0) {
				return "a NUL character"
			}
			if len(text) > part.most && utf8.RuneCountInString(text) > part.most {
				return part.reason
			}
		}
	}
	switch {
	case len(l.Tags) > maxTags:
		return "more than 32 tags"
	case len(l.DerivedFrom) > maxBatch:
		return "derived from more than 100 memories"
	}
	for _, at := range []*time.Time{&l.CreatedAt, &l.LastStoredAt, l.ValidFrom, l.ValidUntil, l.SaidUntil, l.InvalidatedAt} {
		if at != nil && at.Year() < 1 {
			return "a time before the year 1"
		}
	}
	return ""
}

// flush keeps the batch in one transaction; in a dry run it is rolled back.
func (in *importer) flush(ctx context.Context) error {
	stored := 0
	err := postgres.InTx(ctx, in.m.db, func(tx pgx.Tx) error {
		for _, l := range in.batch {
			n, err := postgres.Exec(ctx, tx, importSQL, in.named(l))
			if err != nil {
				return fmt.Errorf("import memory: %w", err)
			}
			stored += int(n)
		}
		if in.o.DryRun {
			return errDryRun
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return err
	}
	in.done.Stored += stored
	in.done.Known += len(in.batch) - stored
	in.batch = in.batch[:0]
	if in.o.Progress != nil {
		in.o.Progress(in.done)
	}
	return nil
}

// errDryRun rolls a batch back.
var errDryRun = errors.New("dry run")

func (in *importer) named(l memoryLine) pgx.StrictNamedArgs {
	d := draft{agent: in.agent, id: cmp.Or(l.ID, newID(l.CreatedAt)), content: l.Content, tags: l.Tags, marks: l.Marks}
	if l.Subject != "" {
		d.fact = &fact{subject: l.Subject, predicate: l.Predicate, object: l.Object, from: *l.ValidFrom, until: l.ValidUntil, supersededBy: l.SupersededBy}
	}
	ix := indexOf(d)
	args := pgx.StrictNamedArgs{
		"agent": in.agent, "id": d.id, "content": l.Content, "digest": d.digest(), "layer": l.Layer, "importance": l.Importance,
		"tags": l.Tags, "marks": l.Marks, "at": l.CreatedAt, "times_stored": l.TimesStored, "last_stored_at": l.LastStoredAt,
		"origin": l.Origin, "origin_trust": *l.OriginTrust, "derived_from": append([]string{}, l.DerivedFrom...), "source_event": l.SourceEvent,
		"supersedes": l.Supersedes, "same_as": l.SameAs, "quarantined": l.Quarantined, "invalidated_at": l.InvalidatedAt,
		"invalidated_by": l.InvalidatedBy, "terms": ix.terms, "weights": ix.weights, "terms_version": ix.version,
	}
	d.fact.named(args, in.o.Now)
	args["superseded_by"], args["said_until"] = l.SupersededBy, l.SaidUntil
	args["retired"] = l.Retired || args["retired"].(bool)
	return args
}

// finish keeps what is left, and the aliases.
func (in *importer) finish(ctx context.Context) (Imported, error) {
	if err := in.flush(ctx); err != nil {
		return in.done, err
	}
	for _, a := range in.alias {
		args := aliasAddArgs{Canonical: a.Canonical, Alias: a.Alias}
		if err := args.Validate(); err != nil || foldName(a.Canonical) == foldName(a.Alias) {
			in.skip("an alias without two names")
			continue
		}
		in.done.Aliases++
		if in.o.DryRun {
			continue
		}
		if _, err := in.m.addAlias(ctx, in.agent, args); err != nil {
			return in.done, fmt.Errorf("import alias: %w", err)
		}
	}
	return in.done, nil
}
