package skill

import (
	"context"

	"pawgate/internal/caller"
	format "pawgate/internal/skill"
	"pawgate/internal/skill/scan"
	"pawgate/internal/skill/store"
)

type scanArgs struct {
	AgentID   string `json:"agent_id" doc:"-" maxlen:"64"`
	SkillName string `json:"skill_name" doc:"-" maxlen:"64"`
	Text      string `json:"text,omitempty" doc:"A SKILL.md to look through instead" maxlen:"262144"`
}

type scanResult struct {
	SkillID       string           `json:"skill_id,omitzero"`
	SkillName     string           `json:"skill_name"`
	Version       int              `json:"version,omitzero"`
	ContentSHA256 string           `json:"content_sha256"`
	Risk          string           `json:"risk"` // clean, low, medium, high, critical
	Passed        bool             `json:"passed"`
	AcceptedBy    string           `json:"accepted_by,omitzero"` // who took the risk of these bytes
	Findings      []scan.Finding   `json:"findings"`
	Omitted       int              `json:"omitted,omitzero"`
	Scanner       int              `json:"scanner_version"`
	Problems      []format.Problem `json:"problems,omitempty"` // rules of the format that are broken
}

// securityScan looks through all files of a skill of the agent, of today's
// rules, or through a text that was given.
func (k skills) securityScan(ctx context.Context, who caller.Caller, a scanArgs) (scanResult, error) {
	agent, err := k.reach(ctx, who, a.AgentID)
	if err != nil {
		return scanResult{}, err
	}
	if a.Text != "" {
		files := []format.File{{Path: format.Main, Content: []byte(a.Text)}}
		_, problems := format.Parse(a.SkillName, files)
		return scanned(scanResult{SkillName: a.SkillName, Problems: problems}, files), nil
	}
	s, err := k.mine(ctx, agent, a.SkillName)
	if err != nil {
		return scanResult{}, err
	}
	files, err := store.Read(ctx, k.db, s)
	if err != nil {
		return scanResult{}, err
	}
	return scanned(scanResult{SkillID: s.ID, SkillName: s.Name, Version: s.Version, AcceptedBy: s.AcceptedBy}, files), nil
}

func scanned(r scanResult, files []format.File) scanResult {
	v := scan.Files(files)
	r.ContentSHA256 = format.Hex(format.Digest(files))
	r.Risk, r.Passed, r.Findings, r.Omitted, r.Scanner = v.Risk, v.Passed, v.Findings, v.Omitted, v.Scanner
	return r
}
