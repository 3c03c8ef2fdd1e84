package memory

import (
	"cmp"
	"context"
	"time"
	"unicode/utf8"

	"pawgate/internal/caller"
	"pawgate/internal/terms"
)

// How a restored context is made up: so many memories of each section, in
// this order, until its size is used up.
const (
	restoreCharacters = 6000
	restoreDoing      = 8
	restoreOpen       = 10
	restoreDecisions  = 8
	restoreRelevant   = 8
	restorePiece      = 600 // characters of one memory
)

type sessionRestoreContextArgs struct {
	Query         string `json:"query" doc:"What about" maxlen:"10000"`
	MaxCharacters int    `json:"max_characters,omitempty" doc:"Or 6000" min:"500" max:"50000"`
}

// sessionRestoreContextResult is what an agent needs to go on where it was. A
// memory stands in the first section it belongs to.
type sessionRestoreContextResult struct {
	Doing      []piece `json:"doing"`      // latest first
	OpenItems  []piece `json:"open_items"` // not superseded yet
	Decisions  []piece `json:"decisions"`
	Relevant   []piece `json:"relevant"` // to the query, best first
	Characters int     `json:"characters"`
	// Truncated says that some content was shortened or left out.
	Truncated bool `json:"truncated"`
}

type piece struct {
	ID        string    `json:"id"`
	Content   string    `json:"content"`
	CreatedAt time.Time `json:"created_at"`
}

// sessionRestoreContext gathers what the agent was doing, what is open, what
// was decided and what bears on the query, within a size.
func (m memory) sessionRestoreContext(ctx context.Context, who caller.Caller, a sessionRestoreContextArgs) (sessionRestoreContextResult, error) {
	var result sessionRestoreContextResult
	room := packer{left: cmp.Or(a.MaxCharacters, restoreCharacters), seen: map[string]bool{}}
	for _, section := range []struct {
		into   *[]piece
		query  string
		filter filterArgs
		limit  int
	}{
		{&result.OpenItems, "", filterArgs{mark: markOpen}, restoreOpen},
		{&result.Decisions, "", filterArgs{mark: markDecision}, restoreDecisions},
		{&result.Relevant, a.Query, filterArgs{}, restoreRelevant},
		{&result.Doing, "", filterArgs{Layer: episodic}, restoreDoing},
	} {
		if section.into == &result.Relevant && len(terms.Query(a.Query)) == 0 {
			continue // to nothing: else it takes the latest, which are what the agent was doing
		}
		found, err := m.find(ctx, own(who.Agent), searchArgs{Query: section.query, filterArgs: section.filter, Limit: section.limit})
		if err != nil {
			return result, err
		}
		*section.into = room.pack(found.Memories)
		result.Characters += room.used
	}
	result.Truncated = room.truncated
	return result, nil
}

// packer fills a given size with contents.
type packer struct {
	left      int
	used      int // by the last section
	seen      map[string]bool
	truncated bool
}

func (p *packer) pack(memories []found) []piece {
	var pieces []piece
	p.used = 0
	for _, f := range memories {
		if p.seen[f.ID] {
			continue
		}
		content := shorten(f.Content, restorePiece)
		size := utf8.RuneCountInString(content)
		p.truncated = p.truncated || f.Truncated || content != f.Content || size > p.left
		if size > p.left {
			continue
		}
		p.seen[f.ID] = true
		p.left -= size
		p.used += size
		pieces = append(pieces, piece{ID: f.ID, Content: content, CreatedAt: f.CreatedAt})
	}
	return pieces
}
