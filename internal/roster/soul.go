package roster

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed soul_lock.sql
	soulLockSQL string
	//go:embed soul_read.sql
	soulReadSQL string
	//go:embed soul_write.sql
	soulWriteSQL string
	//go:embed soul_history.sql
	soulHistorySQL string
)

// MaxSoul is the largest persona, in bytes. It is sent to a model with every
// run; 64 KiB are some 16 000 tokens.
const MaxSoul = 64 << 10

// keptSouls is how many versions of a persona are kept; older ones go when a
// new one comes.
const keptSouls = 200

// Soul is one version of an agent's persona.
type Soul struct {
	Version   int       `json:"version"` // from 1
	Content   string    `json:"content"`
	Note      string    `json:"note,omitzero"`
	WrittenBy string    `json:"written_by"`
	WrittenAt time.Time `json:"written_at"`
}

// Digest is the SHA-256 of the text, in hexadecimal.
func (s Soul) Digest() string {
	sum := sha256.Sum256([]byte(s.Content))
	return hex.EncodeToString(sum[:])
}

// CheckSoul refuses a text that cannot be a persona. parameter names the
// argument in the error.
func CheckSoul(parameter, content string) error {
	switch {
	case strings.TrimSpace(content) == "":
		return fault.Invalid(parameter, "%s must not be empty", parameter)
	case len(content) > MaxSoul:
		return fault.Invalid(parameter, "%s has %d bytes; at most %d are kept, because it is sent to the model with every run", parameter, len(content), MaxSoul)
	case !utf8.ValidString(content) || strings.ContainsRune(content, 0):
		return fault.Invalid(parameter, "%s must be UTF-8 without NUL characters", parameter)
	}
	return nil
}

// ReadSoul gives a version of an agent's persona, the newest for version 0. It
// fails with fault.NotFound when there is none.
func ReadSoul(ctx context.Context, db postgres.DB, agentID string, version int) (Soul, error) {
	s, err := postgres.One[Soul](ctx, db, soulReadSQL, pgx.StrictNamedArgs{"agent_id": agentID, "version": version})
	switch {
	case errors.Is(err, pgx.ErrNoRows) && version > 0:
		return Soul{}, fault.New(fault.NotFound, "agent %s has no version %d of its soul; the last %d are kept", agentID, version, keptSouls)
	case errors.Is(err, pgx.ErrNoRows):
		return Soul{}, fault.New(fault.NotFound, "agent %s has no soul yet", agentID)
	case err != nil:
		return Soul{}, fmt.Errorf("read soul: %w", err)
	}
	return s, nil
}

// SoulChange is a wish to change a persona: to a new text, or back to the text
// of a version.
type SoulChange struct {
	AgentID  string
	Content  string
	Rollback int // the version whose text comes back; 0: Content
	// IfVersion is the version that the change was made from: if another one
	// holds, the change is refused, so that nobody overwrites what he has not
	// seen. Nil: whatever holds.
	IfVersion *int
	Note, By  string
	Now       time.Time
}

// SoulWritten is what became of the wish.
type SoulWritten struct {
	Before, After Soul // the same when the text did not change
}

// Changed reports whether there is a new version.
func (w SoulWritten) Changed() bool { return w.Before.Version != w.After.Version }

// Diff shows the change line by line, in the unified format; empty when there
// is none.
func (w SoulWritten) Diff() string { return Diff(w.Before, w.After) }

// Diff compares two versions line by line, in the unified format.
func Diff(from, to Soul) string {
	return udiff.Unified(fmt.Sprintf("version %d", from.Version), fmt.Sprintf("version %d", to.Version), from.Content, to.Content)
}

// WriteSoul adds a version, in a transaction: of two writers at once one waits
// for the other. A text that holds already adds nothing. It fails with
// fault.Conflict when IfVersion does not hold, and with fault.NotFound for a
// version to roll back to that is not there.
func WriteSoul(ctx context.Context, tx postgres.DB, c SoulChange) (SoulWritten, error) {
	if _, err := postgres.Exec(ctx, tx, soulLockSQL, pgx.StrictNamedArgs{"agent_id": c.AgentID}); err != nil {
		return SoulWritten{}, fmt.Errorf("lock soul: %w", err)
	}
	before, err := ReadSoul(ctx, tx, c.AgentID, 0)
	if f, ok := fault.Of(err); err != nil && (!ok || f.Reason != fault.NotFound) {
		return SoulWritten{}, err
	}
	if c.IfVersion != nil && *c.IfVersion != before.Version {
		return SoulWritten{}, fault.New(fault.Conflict,
			"the soul has version %d by now, not %d: somebody changed it; read it, and make your change to that", before.Version, *c.IfVersion).With("version", before.Version)
	}
	if c.Rollback > 0 {
		old, err := ReadSoul(ctx, tx, c.AgentID, c.Rollback)
		if err != nil {
			return SoulWritten{}, err
		}
		c.Content, c.Note = old.Content, strings.TrimSpace(fmt.Sprintf("back to version %d. %s", c.Rollback, c.Note))
	}
	if c.Content == before.Content {
		return SoulWritten{Before: before, After: before}, nil
	}
	after := Soul{Version: before.Version + 1, Content: c.Content, Note: c.Note, WrittenBy: c.By, WrittenAt: c.Now}
	_, err = postgres.Exec(ctx, tx, soulWriteSQL, pgx.StrictNamedArgs{
		"agent_id": c.AgentID, "version": after.Version, "content": after.Content, "note": after.Note, "by": after.WrittenBy, "now": after.WrittenAt,
		"oldest": after.Version - keptSouls,
	})
	if err != nil {
		return SoulWritten{}, fmt.Errorf("write soul: %w", err)
	}
	return SoulWritten{Before: before, After: after}, nil
}

// SoulLine is a version in a list.
type SoulLine struct {
	Version   int       `json:"version"`
	Bytes     int       `json:"bytes"`
	WrittenBy string    `json:"written_by"`
	WrittenAt time.Time `json:"written_at"`
	Note      string    `json:"note,omitzero"`
}

// SoulHistory lists the versions that are kept, newest first.
func SoulHistory(ctx context.Context, db postgres.DB, agentID string) ([]SoulLine, error) {
	lines, err := postgres.All[SoulLine](ctx, db, soulHistorySQL, pgx.StrictNamedArgs{"agent_id": agentID})
	if err != nil {
		return nil, fmt.Errorf("list versions of a soul: %w", err)
	}
	return lines, nil
}
