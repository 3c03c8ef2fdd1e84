package store

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
	"pawgate/internal/skill"
	"pawgate/internal/skill/scan"
)

var (
	//go:embed check.sql
	checkSQL string
	//go:embed check_files.sql
	checkFilesSQL string
)

// Checked are those of several skills that may be worked by, in the version in
// use: their bytes are those that were judged, by the rules of today, and they
// pass or somebody took the risk. What Use would refuse is left out. Whoever
// calls it bounds how many there are, for all of their files are in memory.
func Checked(ctx context.Context, db postgres.DB, ids []string) (map[string]skill.Skill, error) {
	rows, err := postgres.All[Stored](ctx, db, checkSQL, pgx.StrictNamedArgs{"ids": ids})
	if err != nil {
		return nil, fmt.Errorf("read skills: %w", err)
	}
	all, err := postgres.All[struct {
		SkillID    string
		Path       string
		Content    []byte
		Executable bool
	}](ctx, db, checkFilesSQL, pgx.StrictNamedArgs{"ids": ids})
	if err != nil {
		return nil, fmt.Errorf("read skill files: %w", err)
	}
	files := map[string][]skill.File{}
	for _, f := range all {
		files[f.SkillID] = append(files[f.SkillID], skill.File{Path: f.Path, Content: f.Content, Executable: f.Executable})
	}
	fit := map[string]skill.Skill{}
	for _, s := range rows {
		digest := skill.Digest(files[s.ID])
		if digest != [sha256.Size]byte(s.Digest) {
			continue
		}
		v := judge(digest, files[s.ID])
		if s.Scanner != scan.Version || s.Passed != v.Passed {
			if err := keepVerdict(ctx, db, s, v, ""); err != nil {
				return nil, err
			}
		}
		parsed, problems := skill.Parse("", files[s.ID])
		if (v.Passed || s.AcceptedBy != "") && len(problems.Broken()) == 0 {
			fit[s.ID] = parsed
		}
	}
	return fit, nil
}
