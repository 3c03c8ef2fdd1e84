package memory

import (
	"cmp"
	"context"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
)

type storeArgs struct {
	Content     string   `json:"content" doc:"-" maxlen:"1048576"`
	Tags        []string `json:"tags,omitempty" doc:"-"`
	Layer       string   `json:"layer,omitempty" doc:"Default: judged" enum:"episodic,semantic,procedural"`
	Importance  float64  `json:"importance,omitempty" doc:"-" min:"1" max:"10"`
	Subject     string   `json:"subject,omitempty" doc:"Of a fact; with predicate and object" maxlen:"256"`
	Predicate   string   `json:"predicate,omitempty" doc:"Such as lives_in" maxlen:"128"`
	Object      string   `json:"object,omitempty" doc:"Of a fact" maxlen:"2000"`
	ValidFrom   string   `json:"valid_from,omitempty" doc:"Date or time; default now"`
	ValidUntil  string   `json:"valid_until,omitempty" doc:"-"`
	Supersedes  string   `json:"supersedes,omitempty" doc:"Id this corrects"`
	DerivedFrom []string `json:"derived_from,omitempty" doc:"Ids it follows from"`
	Origin      string   `json:"origin,omitempty" doc:"Such as web:example.com"`
}

func (a storeArgs) Validate() error {
	if err := validateContent(a.Content); err != nil {
		return err
	}
	if err := validateTags(a.Tags); err != nil {
		return err
	}
	if len(a.DerivedFrom) > maxBatch {
		return fault.Invalid("derived_from", "derived_from must hold at most %d ids", maxBatch)
	}
	if _, err := a.fact(time.Time{}); err != nil {
		return err
	}
	return validateOrigin(a.Origin)
}

// fact is the fact that the arguments state; nil when they state none.
func (a storeArgs) fact(now time.Time) (*fact, error) {
	return newFact(a.Subject, a.Predicate, a.Object, a.ValidFrom, a.ValidUntil, now)
}

type storeResult struct {
	MemoryID    string    `json:"memory_id"`
	StoredAt    time.Time `json:"stored_at"`
	TimesStored int       `json:"times_stored"`
	// Superseded is the memory that no longer holds.
	Superseded string `json:"superseded,omitzero"`
}

// store keeps a memory of the caller. It answers only after the row is
// committed. Content that the agent already has is not stored twice: the
// answer names the memory that has it.
func (m memory) store(ctx context.Context, who caller.Caller, a storeArgs) (storeResult, error) {
	j := judge(a.Content, a.Tags)
	f, err := a.fact(m.now())
	if err != nil {
		return storeResult{}, err
	}
	if f != nil {
		j.layer = semantic
	}
	origin := cmp.Or(a.Origin, originAgent)
	return m.keep(ctx, draft{
		agent: who.Agent, content: a.Content, tags: cleanTags(a.Tags), marks: j.marks,
		layer: cmp.Or(a.Layer, j.layer), importance: cmp.Or(a.Importance, j.importance),
		origin: origin, trust: trust(who, origin, 1), derivedFrom: a.DerivedFrom, supersedes: a.Supersedes, fact: f,
	})
}
