package agent

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/roster"
)

// maxDiff is how much of a difference an answer shows, in bytes.
const maxDiff = 16 << 10

type soulArgs struct {
	AgentID    string `json:"agent_id" doc:"-" maxlen:"64"`
	Content    string `json:"content,omitempty" doc:"Whole new text" maxlen:"65536"`
	RollbackTo int    `json:"rollback_to,omitempty" doc:"Or: version to bring back" min:"1"`
	IfVersion  *int   `json:"if_version,omitempty" doc:"Refuse if another version holds"`
	Reason     string `json:"reason,omitempty" doc:"-" maxlen:"500"`
}

// Validate asks for one of the two wishes.
func (a soulArgs) Validate() error {
	switch {
	case a.Content != "" && a.RollbackTo != 0:
		return fault.Invalid("rollback_to", "content and rollback_to exclude each other")
	case a.RollbackTo != 0:
		return nil
	}
	return roster.CheckSoul("content", a.Content)
}

type soulResult struct {
	AgentID      string `json:"agent_id"`
	Version      int    `json:"version"`
	Replaces     int    `json:"replaces"` // the version before; 0: there was none
	Changed      bool   `json:"changed"`  // false: the text held already
	SHA256       string `json:"sha256"`
	SHA256Before string `json:"sha256_before,omitzero"`
	Bytes        int    `json:"bytes"`
	Diff         string `json:"diff"` // unified; cut where it is long
	DiffCut      bool   `json:"diff_cut,omitzero"`
}

// updateSoul adds a version; the ones before are kept. It fails with
// fault.NotFound for an agent that the caller may not see and for a version
// that there is not, and with fault.Conflict when if_version does not hold.
func (c agent) updateSoul(ctx context.Context, who caller.Caller, a soulArgs) (soulResult, error) {
	var written roster.SoulWritten
	err := postgres.InTx(ctx, c.db, func(tx pgx.Tx) error {
		if _, err := findLive(ctx, tx, who, a.AgentID); err != nil {
			return err
		}
		var err error
		written, err = roster.WriteSoul(ctx, tx, roster.SoulChange{AgentID: a.AgentID, Content: a.Content, Rollback: a.RollbackTo,
			IfVersion: a.IfVersion, Note: a.Reason, By: author(who), Now: c.now()})
		return err
	})
	if err != nil {
		return soulResult{}, err
	}
	r := soulResult{AgentID: a.AgentID, Version: written.After.Version, Replaces: written.Before.Version, Changed: written.Changed(),
		SHA256: written.After.Digest(), Bytes: len(written.After.Content)}
	if written.Before.Version > 0 {
		r.SHA256Before = written.Before.Digest()
	}
	r.Diff, r.DiffCut = cut(written.Diff())
	return r, nil
}

// cut bounds a text, at a line's end where it can.
func cut(text string) (string, bool) {
	if len(text) <= maxDiff {
		return text, false
	}
	text = strings.ToValidUTF8(text[:maxDiff], "")
	if i := strings.LastIndexByte(text, '\n'); i > 0 {
		text = text[:i+1]
	}
	return text, true
}
