package inference

import (
	"context"
	"fmt"
	"math"

	"pawgate/internal/caller"
)

type routeArgs struct {
	Prompt string `json:"prompt" doc:"What would be asked" maxlen:"200000"`
	System string `json:"system_prompt,omitempty" doc:"Its system prompt" maxlen:"200000"`
}

type routeResult struct {
	Tier       Tier      `json:"tier"`
	Confidence float64   `json:"confidence"` // that a local model answers well, 0 to 1
	Model      string    `json:"model,omitzero"`
	Answers    string    `json:"answers"` // who would answer under the mode in force: local, remote or nobody
	Why        string    `json:"why"`
	Reasons    []Reason  `json:"reasons"` // every rule that moved the confidence, in order
	Tokens     tokens    `json:"tokens"`
	Thresholds threshold `json:"thresholds"`
	Mode       Mode      `json:"mode"`
	Enabled    bool      `json:"router_enabled"`
}

type tokens struct {
	Prompt int `json:"prompt"` // estimated
	System int `json:"system_prompt"`
}

type threshold struct {
	Fast   float64 `json:"local_fast"`
	Strong float64 `json:"local_strong"`
}

// route tells which tier a prompt belongs to and why, and who would answer it.
// It asks no model.
func (c inference) route(ctx context.Context, _ caller.Caller, a routeArgs) (routeResult, error) {
	mode, err := ReadMode(ctx, c.db)
	if err != nil {
		return routeResult{}, err
	}
	d := c.settings.Router.Decide(a.Prompt, a.System)
	r := routeResult{Tier: d.Tier, Confidence: math.Round(d.Confidence*100) / 100, Model: d.Model, Reasons: d.Reasons, Mode: mode.Mode,
		Enabled: c.settings.Router.Enabled, Tokens: tokens{Prompt: EstimateTokens(a.Prompt)},
		Thresholds: threshold{c.settings.Router.FastThreshold, c.settings.Router.StrongThreshold}}
	if a.System != "" {
		r.Tokens.System = EstimateTokens(a.System)
	}
	loaded := c.ready(ctx)
	r.Answers, r.Why = whoAnswers(mode.Mode, loaded, c.remote.URL != "")
	switch {
	case mode.Mode == Auto && d.Tier == Cloud && c.remote.URL != "":
		r.Answers, r.Why = "remote", "the prompt belongs to the tier cloud_api"
	case mode.Mode == Local && d.Tier == Cloud && r.Answers == "local":
		r.Why = "the prompt belongs to the tier cloud_api, but the mode keeps it on the host"
	}
	switch {
	case r.Answers == "remote":
		r.Model = c.settings.RemoteModel
	case r.Model == "" && len(loaded) > 0 && d.Tier != Cloud:
		r.Model = loaded[0]
	case r.Model != "" && r.Answers == "local" && !contains(loaded, r.Model):
		r.Why = fmt.Sprintf("%s; %s, which the router names, is not", r.Why, r.Model)
	}
	return r, nil
}

func contains(list []string, name string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}
