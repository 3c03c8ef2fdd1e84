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

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/skill"
	"pawgate/internal/skill/scan"
)

var (
	//go:embed files.sql
	filesSQL string
	//go:embed find.sql
	findSQL string
	//go:embed verdict.sql
	verdictSQL string
	//go:embed used.sql
	usedSQL string
)

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

// Read gives the files of a skill as they were judged, without a word on whether
// they are safe. It fails with Tampered.
func Read(ctx context.Context, db postgres.DB, s Stored) ([]skill.File, error) {
	files, err := Files(ctx, db, s.ID, s.Version)
	if err != nil {
		return nil, err
	}
	if [sha256.Size]byte(s.Digest) != skill.Digest(files) {
		return nil, fault.New(Tampered, "the stored skill %s is not the one that was judged; install it again", s.Name)
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
	s, err := postgres.One[Stored](ctx, db, findSQL, pgx.StrictNamedArgs{"scope": scope, "agent": agent, "name": norm.NFKC.String(name)})
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
	files, err := Read(ctx, db, s)
	if err != nil {
		return skill.Skill{}, scan.Verdict{}, err
	}
	v := judge([sha256.Size]byte(s.Digest), files) // Read has compared it
	if s.Scanner != scan.Version || s.Passed != v.Passed {
		if err := keepVerdict(ctx, db, s, v, ""); err != nil {
			return skill.Skill{}, v, err
		}
	}
	if !v.Passed && s.AcceptedBy == "" {
		return skill.Skill{}, v, refused(s.Name, v, skill.Hex([sha256.Size]byte(s.Digest)))
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

func keepVerdict(ctx context.Context, db postgres.DB, s Stored, v scan.Verdict, accepted string) error {
	findings, err := json.Marshal(v.Findings)
	if err != nil {
		return err
	}
	if _, err := postgres.Exec(ctx, db, verdictSQL, pgx.StrictNamedArgs{"id": s.ID, "version": s.Version, "risk": v.Risk, "passed": v.Passed,
		"findings": string(findings), "omitted": v.Omitted, "scanner": v.Scanner, "accepted": accepted}); err != nil {
		return fmt.Errorf("keep verdict: %w", err)
	}
	return nil
}
