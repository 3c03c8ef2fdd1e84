package memory

import (
	"context"

	"pawgate/internal/caller"
)

type searchByLayerArgs struct {
	Query string `json:"query" doc:"Words; empty: the latest" maxlen:"10000"`
	Layer string `json:"layer" doc:"Happened, holds, or how to" enum:"episodic,semantic,procedural"`
	Limit int    `json:"limit,omitempty" doc:"Or 10" min:"1" max:"100"`
}

// searchByLayer is memory_search within one layer.
func (m memory) searchByLayer(ctx context.Context, who caller.Caller, a searchByLayerArgs) (searchResult, error) {
	return m.search(ctx, who, searchArgs{Query: a.Query, filterArgs: filterArgs{Layer: a.Layer}, Limit: a.Limit})
}
