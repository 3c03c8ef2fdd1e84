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
	//go:embed count_lock.sql
	countLockSQL string
	//go:embed count.sql
	countSQL string
	//go:embed alike.sql
	alikeSQL string
	//go:embed activate.sql
	activateSQL string
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
	State   string
	// Of the version in use.
	Scanner    int
	AcceptedBy string
}

// Keep stores a skill: a first version, a new one of the same lineage, or
// nothing when it is there as it is. It fails with Unsafe, fault.Conflict or
// Pinned, and then nothing was changed.
func Keep(ctx context.Context, db postgres.DB, d Draft) (Kept, error) {
	digest := skill.Digest(d.Skill.Files)
	k := Kept{Verdict: judge(digest, d.Skill.Files), Digest: skill.Hex(digest)}
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
	if err := withinQuota(ctx, tx, d); err != nil {
		return err
	}
	if err := unlikeOthers(ctx, tx, d); err != nil {
		return err
	}
	k.ID, k.Version, k.Outcome = NewID("s"), 1, "installed"
	if _, err := postgres.Exec(ctx, tx, insertSQL, pgx.StrictNamedArgs{"id": k.ID, "scope": d.Scope, "agent": d.Agent, "name": d.Skill.Name,
		"lineage": d.Lineage, "state": d.State, "by": d.By, "now": d.Now}); err != nil {
		return fmt.Errorf("insert skill: %w", err)
	}
	return k.insertVersion(ctx, tx, d, digest, accepted)
}

// MaxSkills is how many skills an agent has at most, and how many it shares.
const MaxSkills = 500

// OverQuota is the reason of one skill too many.
const OverQuota fault.Reason = "over_quota"

// withinQuota refuses one skill too many, under a lock, so that two that come
// at once do not both take the last place. Operators keep what global ones
// there are.
func withinQuota(ctx context.Context, tx pgx.Tx, d Draft) error {
	if d.Scope == Global {
		return nil
	}
	args := pgx.StrictNamedArgs{"scope": d.Scope, "agent": d.Agent, "by": ""}
	if d.Scope == Shared {
		args["by"] = d.By
	}
	if _, err := postgres.Exec(ctx, tx, countLockSQL, args); err != nil {
		return fmt.Errorf("lock skills: %w", err)
	}
	n, err := postgres.One[struct{ Skills int }](ctx, tx, countSQL, args)
	if err != nil {
		return fmt.Errorf("count skills: %w", err)
	}
	if n.Skills >= MaxSkills {
		return fault.New(OverQuota, "there are %d skills here, and no more are kept; the operator removes some: pawgate skill remove", n.Skills)
	}
	return nil
}

// unlikeOthers refuses a name that looks like that of another skill in the same
// place, as one of Cyrillic letters may: whoever reads the name takes one for
// the other.
func unlikeOthers(ctx context.Context, tx pgx.Tx, d Draft) error {
	others, err := postgres.All[struct{ Name string }](ctx, tx, alikeSQL, pgx.StrictNamedArgs{"scope": d.Scope, "agent": d.Agent, "name": d.Skill.Name})
	if err != nil {
		return fmt.Errorf("compare names: %w", err)
	}
	for _, o := range others {
		if scan.Looks(o.Name) == scan.Looks(d.Skill.Name) {
			return fault.New(fault.Conflict, "the name %s looks like that of another skill, %s, and is spelled with other letters; it needs another name", d.Skill.Name, o.Name)
		}
	}
	return nil
}

func (k *Kept) update(ctx context.Context, tx pgx.Tx, d Draft, there row, digest [sha256.Size]byte, accepted string) error {
	k.ID, k.Version = there.ID, there.Version
	before, err := Files(ctx, tx, there.ID, there.Version)
	f, tampered := fault.Of(err)
	if tampered = tampered && f.Reason == Tampered; err != nil && !tampered {
		return err
	}
	tampered = tampered || skill.Digest(before) != [sha256.Size]byte(there.Digest)
	same := [sha256.Size]byte(there.Digest) == digest
	switch {
	case same && !tampered: // whoever it is from, nothing is replaced
		return k.confirm(ctx, tx, d, there, accepted)
	case there.Lineage != d.Lineage:
		return fault.New(fault.Conflict, "there is another skill %s here (%s, from %s); it is not replaced", d.Skill.Name, there.ID, there.Lineage).With("skill_id", there.ID)
	}
	k.Changes = skill.Diff(before, d.Skill.Files)
	switch {
	case same: // what was stored again after it was changed in the store
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

// confirm is for a skill that is there as it is: today's verdict is kept, and
// who takes the risk, and what was put away comes back.
func (k *Kept) confirm(ctx context.Context, tx pgx.Tx, d Draft, there row, accepted string) error {
	k.Outcome = "unchanged"
	if there.Scanner != scan.Version || accepted != "" && there.AcceptedBy == "" {
		if err := keepVerdict(ctx, tx, Stored{ID: there.ID, Version: there.Version}, k.Verdict, accepted); err != nil {
			return err
		}
	}
	if there.State != "archived" {
		return nil
	}
	_, err := postgres.Exec(ctx, tx, activateSQL, pgx.StrictNamedArgs{"id": k.ID, "version": k.Version, "now": d.Now})
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
