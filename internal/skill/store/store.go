// Package store keeps skills in Postgres: versions with their files, hashed and
// bounded, and what the scan thinks of them.
//
// A skill belongs to an agent, lies among the shared ones, or is every agent's
// (global). It has a lineage: the hub and folder it was installed from, the
// skill it was adopted from, the agent that shared it. Only the same lineage
// makes a new version of it, so nothing takes another skill's place by having
// its name. A pinned skill gets no new version.
//
// A verdict belongs to exact bytes. Whoever uses a skill reads it through Use,
// which hashes the files again, scans them again when the rules are newer, and
// refuses what is not safe unless somebody took the risk for these bytes.
package store

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/skill"
	"pawgate/internal/skill/scan"
	"pawgate/internal/terms"
)

var (
	//go:embed lock.sql
	lockSQL string
	//go:embed take.sql
	takeSQL string
	//go:embed insert.sql
	insertSQL string
	//go:embed insert_version.sql
	insertVersionSQL string
	//go:embed insert_files.sql
	insertFilesSQL string
	//go:embed activate.sql
	activateSQL string
	//go:embed files.sql
	filesSQL string
	//go:embed find.sql
	findSQL string
	//go:embed verdict.sql
	verdictSQL string
	//go:embed used.sql
	usedSQL string
)

// The scopes of a skill.
const (
	Agent  = "agent"
	Shared = "shared"
	Global = "global"
)

// Unsafe is the reason of a skill whose scan did not pass.
const Unsafe fault.Reason = "unsafe_skill"

// Tampered is the reason of stored files that are not those that were stored.
const Tampered fault.Reason = "tampered_skill"

// Pinned is the reason of a change to a skill that must not change.
const Pinned fault.Reason = "pinned"

// Source is where a version was installed from.
type Source struct {
	Hub    string `json:"hub,omitzero"`
	Repo   string `json:"repo,omitzero"`
	Path   string `json:"path,omitzero"`
	Commit string `json:"commit,omitzero"`
}

// Draft is a skill to keep.
type Draft struct {
	Scope   string
	Agent   string // of the scope agent
	Skill   skill.Skill
	Lineage string
	State   string // draft or active
	By      string // the agent or operator that keeps it
	Source  Source
	// Update allows a new version of what is there.
	Update bool
	// Accept is the digest, in hexadecimal, of a skill that By takes although
	// its scan did not pass.
	Accept string
	Now    time.Time
}

// Kept is what became of a draft.
type Kept struct {
	ID      string
	Version int
	// Outcome is installed, updated or unchanged.
	Outcome string
	Verdict scan.Verdict
	Digest  string
	Changes []skill.Change // of an update
}

// row is a skill that has the name already.
type row struct {
	ID      string
	Lineage string
	Pinned  bool
	Version int
	Digest  []byte
	Latest  int
}

// Keep stores a skill: a first version, a new one of the same lineage, or
// nothing when it is there as it is. It fails with Unsafe, fault.Conflict or
// Pinned, and then nothing was changed.
func Keep(ctx context.Context, db postgres.DB, d Draft) (Kept, error) {
	digest := skill.Digest(d.Skill.Files)
	k := Kept{Verdict: scan.Files(d.Skill.Files), Digest: skill.Hex(digest)}
	accepted := ""
	if !k.Verdict.Passed {
		if d.Accept != k.Digest {
			return k, refused(d.Skill.Name, k.Verdict, k.Digest)
		}
		accepted = d.By
	}
	err := postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		args := pgx.StrictNamedArgs{"scope": d.Scope, "agent": d.Agent, "name": d.Skill.Name}
		if _, err := postgres.Exec(ctx, tx, lockSQL, args); err != nil {
			return err
		}
		there, err := postgres.All[row](ctx, tx, takeSQL, args)
		if err != nil {
			return err
		}
		if len(there) == 0 {
			return k.insert(ctx, tx, d, digest, accepted)
		}
		return k.update(ctx, tx, d, there[0], digest, accepted)
	})
	return k, err
}

func refused(name string, v scan.Verdict, digest string) *fault.Fault {
	return fault.New(Unsafe, "the security scan of %s found %s risk: %s", name, v.Risk, summary(v)).
		With("risk", v.Risk).With("findings", v.Findings).With("content_sha256", digest)
}

// summary names the first findings.
func summary(v scan.Verdict) string {
	const most = 3
	var parts []string
	for _, f := range v.Findings {
		if len(parts) == most {
			break
		}
		parts = append(parts, fmt.Sprintf("%s in %s line %d", f.Rule, f.Path, f.Line))
	}
	return strings.Join(parts, ", ")
}

func (k *Kept) insert(ctx context.Context, tx pgx.Tx, d Draft, digest [sha256.Size]byte, accepted string) error {
	k.ID, k.Version, k.Outcome = NewID("s"), 1, "installed"
	if _, err := postgres.Exec(ctx, tx, insertSQL, pgx.StrictNamedArgs{"id": k.ID, "scope": d.Scope, "agent": d.Agent, "name": d.Skill.Name,
		"lineage": d.Lineage, "state": d.State, "by": d.By, "now": d.Now}); err != nil {
		return fmt.Errorf("insert skill: %w", err)
	}
	return k.insertVersion(ctx, tx, d, digest, accepted)
}

func (k *Kept) update(ctx context.Context, tx pgx.Tx, d Draft, there row, digest [sha256.Size]byte, accepted string) error {
	k.ID, k.Version = there.ID, there.Version
	switch {
	case there.Lineage != d.Lineage:
		return fault.New(fault.Conflict, "there is another skill %s here (%s, from %s); it is not replaced", d.Skill.Name, there.ID, there.Lineage).With("skill_id", there.ID)
	case [sha256.Size]byte(there.Digest) == digest:
		k.Outcome = "unchanged"
		return nil
	}
	before, err := Files(ctx, tx, there.ID, there.Version)
	if err != nil {
		return err
	}
	k.Changes = skill.Diff(before, d.Skill.Files)
	switch {
	case there.Pinned:
		return fault.New(Pinned, "%s is pinned to version %d; skill_pin with pinned false lets it change", d.Skill.Name, there.Version).With("changes", k.Changes)
	case !d.Update:
		return fault.New(fault.Conflict, "%s is here already, as version %d of other content; update true makes a new version", d.Skill.Name, there.Version).
			With("skill_id", there.ID).With("changes", k.Changes).With("content_sha256", k.Digest)
	}
	k.Version, k.Outcome = there.Latest+1, "updated"
	if err := k.insertVersion(ctx, tx, d, digest, accepted); err != nil {
		return err
	}
	_, err = postgres.Exec(ctx, tx, activateSQL, pgx.StrictNamedArgs{"id": k.ID, "version": k.Version, "now": d.Now})
	return err
}

func (k *Kept) insertVersion(ctx context.Context, tx pgx.Tx, d Draft, digest [sha256.Size]byte, accepted string) error {
	s := d.Skill
	findings, err := json.Marshal(k.Verdict.Findings)
	if err != nil {
		return err
	}
	metadata, err := json.Marshal(s.Metadata)
	if err != nil {
		return err
	}
	bytes := 0
	var paths []string
	var contents, sums [][]byte
	var executable []bool
	for _, f := range s.Files {
		sum := sha256.Sum256(f.Content)
		content := f.Content
		if content == nil {
			content = []byte{}
		}
		bytes += len(content)
		paths, contents, sums, executable = append(paths, f.Path), append(contents, content), append(sums, sum[:]), append(executable, f.Executable)
	}
	head, body := Terms(s)
	if _, err := postgres.Exec(ctx, tx, insertVersionSQL, pgx.StrictNamedArgs{
		"id": k.ID, "version": k.Version, "description": s.Description, "license": s.License, "compatibility": s.Compatibility,
		"tools": list(s.AllowedTools), "metadata": string(metadata), "tags": s.Tags(), "body": s.Body, "digest": digest[:], "bytes": bytes,
		"hub": d.Source.Hub, "repo": d.Source.Repo, "path": d.Source.Path, "commit": d.Source.Commit, "by": d.By, "now": d.Now,
		"risk": k.Verdict.Risk, "passed": k.Verdict.Passed, "findings": string(findings), "omitted": k.Verdict.Omitted, "scanner": scan.Version,
		"accepted": accepted, "head_terms": head, "body_terms": body,
	}); err != nil {
		return fmt.Errorf("insert skill version: %w", err)
	}
	if _, err := postgres.Exec(ctx, tx, insertFilesSQL, pgx.StrictNamedArgs{"id": k.ID, "version": k.Version,
		"paths": paths, "contents": contents, "sums": sums, "executable": executable}); err != nil {
		return fmt.Errorf("insert skill files: %w", err)
	}
	return nil
}

func list(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}

// Terms are what a skill is found by: those of its name, tags and description,
// and those of its instructions.
func Terms(s skill.Skill) (head, body []string) {
	return termsOf(s.Name + "\n" + strings.Join(s.Tags(), "\n") + "\n" + s.Description), termsOf(s.Body)
}

func termsOf(text string) []string {
	bag := terms.Document(text)
	all := make([]string, len(bag.Terms))
	for i, t := range bag.Terms {
		all[i] = t.Text
	}
	return all
}

// NewID is a new name for a row, sortable by age: s_018f….
func NewID(kind string) string {
	id, err := uuid.NewV7()
	if err != nil {
		id = uuid.New() // no clock: unsorted, and still unique
	}
	return kind + "_" + strings.ReplaceAll(id.String(), "-", "")
}

// Files are the files of one version, in the order of their paths.
func Files(ctx context.Context, db postgres.DB, id string, version int) ([]skill.File, error) {
	rows, err := postgres.All[struct {
		Path       string
		Content    []byte
		Sha256     []byte
		Executable bool
	}](ctx, db, filesSQL, pgx.StrictNamedArgs{"id": id, "version": version})
	if err != nil {
		return nil, fmt.Errorf("read skill files: %w", err)
	}
	files := make([]skill.File, len(rows))
	for i, r := range rows {
		if sha256.Sum256(r.Content) != [sha256.Size]byte(r.Sha256) {
			return nil, fault.New(Tampered, "the stored file %s is not the one that was stored; install the skill again", r.Path)
		}
		files[i] = skill.File{Path: r.Path, Content: r.Content, Executable: r.Executable}
	}
	return files, nil
}

// Stored is one version of a skill, as it is listed.
type Stored struct {
	ID          string
	Scope       string
	AgentID     string
	Name        string
	Lineage     string
	State       string
	Pinned      bool
	Version     int
	Description string
	Tags        []string
	Body        string
	Digest      []byte
	Risk        string
	Passed      bool
	Scanner     int
	AcceptedBy  string
	CreatedBy   string
}

// Find is the skill of a name in a scope, in the version in use. It fails with
// fault.NotFound.
func Find(ctx context.Context, db postgres.DB, scope, agent, name string) (Stored, error) {
	s, err := postgres.One[Stored](ctx, db, findSQL, pgx.StrictNamedArgs{"scope": scope, "agent": agent, "name": name})
	if errors.Is(err, pgx.ErrNoRows) {
		return s, fault.New(fault.NotFound, "no skill %q here; skill_list shows those there are", short(name))
	}
	if err != nil {
		return s, fmt.Errorf("find skill: %w", err)
	}
	return s, nil
}

func short(text string) string { return strings.ToValidUTF8(text[:min(len(text), 100)], "") }

// Use reads a skill to work by it: its bytes are those that were judged, by
// the rules of today. It fails with Unsafe or Tampered. The use is counted when
// now is given.
func Use(ctx context.Context, db postgres.DB, s Stored, now time.Time) (skill.Skill, scan.Verdict, error) {
	files, err := Files(ctx, db, s.ID, s.Version)
	if err != nil {
		return skill.Skill{}, scan.Verdict{}, err
	}
	digest := skill.Digest(files)
	if [sha256.Size]byte(s.Digest) != digest {
		return skill.Skill{}, scan.Verdict{}, fault.New(Tampered, "the stored skill %s is not the one that was judged; install it again", s.Name)
	}
	v := scan.Files(files)
	if s.Scanner != scan.Version || s.Passed != v.Passed {
		if err := keepVerdict(ctx, db, s, v); err != nil {
			return skill.Skill{}, v, err
		}
	}
	if !v.Passed && s.AcceptedBy == "" {
		return skill.Skill{}, v, refused(s.Name, v, skill.Hex(digest))
	}
	parsed, problems := skill.Parse("", files)
	if broken := problems.Broken(); len(broken) > 0 {
		return skill.Skill{}, v, fault.New(Tampered, "the stored skill %s breaks the format: %s", s.Name, broken.Error())
	}
	if !now.IsZero() {
		if _, err := postgres.Exec(ctx, db, usedSQL, pgx.StrictNamedArgs{"id": s.ID, "now": now}); err != nil {
			return skill.Skill{}, v, fmt.Errorf("count use: %w", err)
		}
	}
	return parsed, v, nil
}

func keepVerdict(ctx context.Context, db postgres.DB, s Stored, v scan.Verdict) error {
	findings, err := json.Marshal(v.Findings)
	if err != nil {
		return err
	}
	if _, err := postgres.Exec(ctx, db, verdictSQL, pgx.StrictNamedArgs{"id": s.ID, "version": s.Version, "risk": v.Risk, "passed": v.Passed,
		"findings": string(findings), "omitted": v.Omitted, "scanner": v.Scanner}); err != nil {
		return fmt.Errorf("keep verdict: %w", err)
	}
	return nil
}

// errDry rolls a trial back.
var errDry = errors.New("only a trial")

// Try is Keep with nothing kept.
func Try(ctx context.Context, db postgres.DB, d Draft) (Kept, error) {
	var k Kept
	var kept error
	err := postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		if k, kept = Keep(ctx, tx, d); kept != nil {
			return kept
		}
		return errDry
	})
	if errors.Is(err, errDry) {
		return k, nil
	}
	return k, err
}
