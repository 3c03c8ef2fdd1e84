// Package memory holds the tools that keep and find what an agent remembers.
//
// Every memory belongs to one agent, the caller, and no argument changes
// that: there is one owner key, in every table and every statement. Content is
// kept as it came, to the byte. The same content twice is one memory, stored
// twice. What is invalidated or quarantined is kept for the record and found
// by no tool.
//
// Search works by words, and by meaning too where an embedder is configured.
// It needs no extension of PostgreSQL, and uses pgvector where that is: package terms takes texts apart, an
// inverted index in plain tables holds the terms, rank.go puts the candidates
// in order and says by which weights. How much a search by words reads is
// bounded by constants (search.go), not by the number of memories.
//
// An agent's memories are its own. Another reads them only where an operator
// shared them with it (share.go), all or those with some tags, by naming their
// owner; what it stores stays in its own.
package memory

import (
	"context"
	"fmt"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/client/embed"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

// Config is what the category reads from its environment.
type Config struct {
	postgres.Config
	Embeddings embed.Config
}

// Open is the category over the configured database. It does not wait for the
// database: a connection is made by the first call.
func Open(ctx context.Context, cfg Config) (tool.Category, error) {
	db, err := postgres.Open(ctx, cfg.Config)
	if err != nil {
		return tool.Category{}, fmt.Errorf("open memory: %w", err)
	}
	c := New(db, time.Now)
	if cfg.Embeddings.URL != "" {
		c = NewHybrid(db, time.Now, embed.New(cfg.Embeddings))
	}
	c.Close = db.Close
	return c, nil
}

// New is the category over an open database, searching by words. It does no
// I/O.
func New(db postgres.DB, now func() time.Time) tool.Category { return NewHybrid(db, now, nil) }

// NewHybrid is New, searching by meaning as well; a nil embedder is none.
func NewHybrid(db postgres.DB, now func() time.Time, e Embedder) tool.Category {
	m := memory{db: db, now: now, embedder: e, pgvector: new(pgvector)}
	return tool.Category{Name: "memory", Tools: []tool.Tool{
		tool.Write("memory_store", "Keep a memory, or a fact and its time.", m.store, tool.Idempotent),
		tool.Read("memory_search", "Find memories, best first. A score below 0.15 is no answer.", m.search),
		tool.Read("memory_search_by_layer", "Find memories of one layer, best first.", m.searchByLayer),
		tool.Read("memory_read", "Read one memory whole.", m.read),
		tool.Read("memory_fetch_batch", "Read memories by id, in the order asked.", m.fetchBatch),
		tool.Write("memory_alias_add", "Make two names mean the same.", m.aliasAdd, tool.Idempotent),
		tool.Read("memory_alias_list", "List the names that mean the same.", m.aliasList),
		tool.Read("memory_get_history", "Tell what held of a subject over time, oldest first.", m.getHistory),
		tool.Read("memory_get_at", "Tell what held of a subject at a given time.", m.getAt),
		tool.Destroy("memory_invalidate_by_origin", "Take back all from one origin, distrust what follows.",
			m.invalidateByOrigin, tool.Idempotent, tool.NeedsScope(caller.ScopeOperator)),
		tool.Read("memory_successful_conversations", "Find episodes that went well.", m.successfulConversations),
		tool.Read("memory_episodic_pressure", "Tell how much has happened lately.", m.episodicPressure),
		tool.Read("memory_consolidation_status", "Tell what waits and what the last run did.", m.consolidationStatus),
		tool.Read("memory_improve", "Gather memories of a topic by tag.", m.improve),
		tool.Write("user_profile_record", "Keep a trait of a user; it replaces the one before.", m.profileRecord, tool.Idempotent),
		tool.Read("user_profile_get", "Read a user's traits.", m.profileGet),
		tool.Read("user_code_profile", "Read users' traits as typed rules, with their conflicts.", m.userCodeProfile),
		tool.Read("session_restore_context", "Restore what was going on: work, open items, decisions.", m.sessionRestoreContext),
		tool.Write("log_mood", "Keep a mood, with a note.", m.logMood),
	}}
}

type memory struct {
	db       postgres.DB
	now      func() time.Time
	embedder Embedder // nil: words alone
	pgvector *pgvector
}
