package memory

import (
	"cmp"
	"context"
	"slices"

	"pawgate/internal/caller"
)

const (
	improveLimit   = 40
	improveSamples = 3
	sampleLength   = 240 // characters
)

type improveArgs struct {
	Topic string `json:"topic" doc:"-" maxlen:"10000"`
	Limit int    `json:"limit,omitempty" doc:"Or 40" min:"1" max:"100"`
}

type improveResult struct {
	Topic    string    `json:"topic"`
	Examined int       `json:"memories_examined"`
	Clusters []cluster `json:"clusters"`
	Proposal string    `json:"proposal"`
}

// cluster is the memories that share a tag; those without one share "".
type cluster struct {
	Tag     string   `json:"tag"`
	Count   int      `json:"count"`
	Samples []sample `json:"samples"`
}

type sample struct {
	ID      string `json:"id"`
	Content string `json:"content"`
}

// improve gathers what the caller remembers of a topic by tag, largest group
// first, as the ground for a rule worth keeping. It changes nothing.
func (m memory) improve(ctx context.Context, who caller.Caller, a improveArgs) (improveResult, error) {
	found, err := m.search(ctx, who, searchArgs{Query: a.Topic, Limit: cmp.Or(a.Limit, improveLimit)})
	if err != nil {
		return improveResult{}, err
	}
	result := improveResult{Topic: a.Topic, Examined: len(found.Memories), Clusters: clusterByTag(found.Memories)}
	switch {
	case result.Examined == 0:
		result.Proposal = "Nothing is remembered of this topic yet."
	default:
		result.Proposal = "Read the largest clusters whole (memory_fetch_batch), then store what holds in general with memory_store: " +
			"layer semantic, derived_from the ids it rests on."
	}
	return result, nil
}

func clusterByTag(memories []found) []cluster {
	byTag := map[string]*cluster{}
	for _, f := range memories {
		tags := f.Tags
		if len(tags) == 0 {
			tags = []string{""}
		}
		for _, tag := range tags {
			c := byTag[tag]
			if c == nil {
				c = &cluster{Tag: tag}
				byTag[tag] = c
			}
			c.Count++
			if len(c.Samples) < improveSamples {
				c.Samples = append(c.Samples, sample{ID: f.ID, Content: shorten(f.Content, sampleLength)})
			}
		}
	}
	clusters := make([]cluster, 0, len(byTag))
	for _, c := range byTag {
		clusters = append(clusters, *c)
	}
	slices.SortFunc(clusters, func(a, b cluster) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Tag, b.Tag)) })
	return clusters
}

// shorten cuts a text to at most n characters, the last of them "…".
func shorten(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:n-1]) + "…"
}
