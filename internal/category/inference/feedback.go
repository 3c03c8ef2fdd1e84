package inference

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/client/llama/supervise"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed feedback_add.sql
var feedbackAddSQL string

// keptFeedback is how many records an agent has at most; older ones go.
const keptFeedback = 2000

type feedbackArgs struct {
	Prompt   string `json:"prompt" doc:"-" maxlen:"100000"`
	Response string `json:"response" doc:"What the local model answered" maxlen:"32000"`
	Reward   int    `json:"reward" doc:"1 good, -1 bad, 0 neither" min:"-1" max:"1"`
}

type feedbackResult struct {
	Stored  bool   `json:"stored"`
	Records int    `json:"records"` // of this agent, with the new one
	Effect  string `json:"effect"`
}

// feedback keeps what an agent thinks of an answer. Later prompts of the same
// agent that resemble this one get the answer's tokens made likelier or less
// likely; see Bias. It fails with fault.NotConfigured when feedback is off.
func (c inference) feedback(ctx context.Context, who caller.Caller, a feedbackArgs) (feedbackResult, error) {
	if !c.settings.Feedback {
		return feedbackResult{}, fault.New(fault.NotConfigured, "feedback is off, so nothing was stored; the operator sets PAWGATE_FEEDBACK to true")
	}
	if strings.TrimSpace(a.Prompt) == "" {
		return feedbackResult{}, fault.Invalid("prompt", "prompt must not be empty")
	}
	if strings.TrimSpace(a.Response) == "" {
		return feedbackResult{}, fault.Invalid("response", "response must not be empty")
	}
	records, err := c.addFeedback(ctx, who, a)
	if err != nil {
		return feedbackResult{}, err
	}
	r := feedbackResult{Stored: a.Reward != 0, Records: records}
	switch a.Reward {
	case 1:
		r.Effect = "prompts like this one will get answers more like it"
	case -1:
		r.Effect = "prompts like this one will get answers less like it"
	default:
		r.Effect = "a reward of 0 changes nothing, so it was not stored"
	}
	return r, nil
}

func (c inference) addFeedback(ctx context.Context, who caller.Caller, a feedbackArgs) (int, error) {
	model := ""
	for _, v := range c.host.Loaded(ctx) {
		if v.State == supervise.Ready {
			model = v.Name
		}
	}
	row, err := postgres.One[struct{ Records int }](ctx, c.db, feedbackAddSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "sketch": Sketch(a.Prompt), "response": a.Response, "reward": a.Reward, "model": model, "now": c.now(), "keep": keptFeedback})
	if err != nil {
		return 0, fmt.Errorf("store feedback: %w", err)
	}
	return row.Records, nil
}
