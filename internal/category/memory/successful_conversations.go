package memory

import (
	"context"

	"pawgate/internal/caller"
)

type successfulConversationsArgs struct {
	Topic string `json:"topic" doc:"Words; empty: the latest" maxlen:"10000"`
	Limit int    `json:"limit,omitempty" doc:"Or 10" min:"1" max:"100"`
}

// successfulConversations finds what went well: episodes that say so or are
// tagged success, and not those that tell of a failure.
func (m memory) successfulConversations(ctx context.Context, who caller.Caller, a successfulConversationsArgs) (searchResult, error) {
	return m.search(ctx, who, searchArgs{Query: a.Topic, filterArgs: filterArgs{Layer: episodic, mark: markSuccess}, Limit: a.Limit})
}
