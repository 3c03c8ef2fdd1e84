package model

import (
	"cmp"
	"context"
	"slices"

	"pawgate/internal/caller"
	"pawgate/internal/client/llama"
)

type recommendArgs struct{}

type recommendResult struct {
	Room        *room       `json:"room_for_model"` // null when the host's memory is unknown
	Recommended []candidate `json:"recommended"`    // largest that fits first
	TooLarge    []candidate `json:"too_large"`      // smallest first
	Hint        string      `json:"hint,omitzero"`
}

// candidate is a model that is known to be good for its size.
type candidate struct {
	Repo       string     `json:"repo"`
	Filename   string     `json:"filename"`
	Parameters int64      `json:"parameters"`
	SizeBytes  int64      `json:"size_bytes"` // about; model_download asks the hub
	Good       string     `json:"good_for"`
	Need       llama.Need `json:"memory_at_4096_tokens"`
	OnHost     bool       `json:"on_host"`
}

// curated is the list of recommendations: one or two models for every size of
// host, in builds of their makers or of publishers that are known to be sound.
// Sizes are those of the files, as of November 2026.
func curated() []candidate {
	const million, billion = 1_000_000, 1_000_000_000
	return []candidate{
		{Repo: "Qwen/Qwen3-0.6B-GGUF", Filename: "Qwen3-0.6B-Q8_0.gguf", Parameters: 600 * million, SizeBytes: 639_446_688, Good: "classifying and short answers on any host"},
		{Repo: "Qwen/Qwen3-1.7B-GGUF", Filename: "Qwen3-1.7B-Q8_0.gguf", Parameters: 1_700 * million, SizeBytes: 1_834_426_016, Good: "summaries, extraction, simple tool calls"},
		{Repo: "bartowski/Llama-3.2-3B-Instruct-GGUF", Filename: "Llama-3.2-3B-Instruct-Q4_K_M.gguf", Parameters: 3_200 * million, SizeBytes: 2_019_377_696, Good: "conversation in English and European languages"},
		{Repo: "ggml-org/gemma-3-4b-it-GGUF", Filename: "gemma-3-4b-it-Q4_K_M.gguf", Parameters: 3_900 * million, SizeBytes: 2_489_758_112, Good: "conversation and translation in many languages"},
		{Repo: "unsloth/gemma-4-E4B-it-GGUF", Filename: "gemma-4-E4B-it-Q4_K_M.gguf", Parameters: 7_500 * million, SizeBytes: 4_977_171_584, Good: "conversation and tool calls in many languages"},
		{Repo: "Qwen/Qwen3-8B-GGUF", Filename: "Qwen3-8B-Q4_K_M.gguf", Parameters: 8_200 * million, SizeBytes: 5_027_783_488, Good: "tool calls, code, Chinese and Japanese"},
		{Repo: "Qwen/Qwen3-14B-GGUF", Filename: "Qwen3-14B-Q4_K_M.gguf", Parameters: 14_800 * million, SizeBytes: 9_001_752_960, Good: "tool calls and code with more care"},
		{Repo: "lmstudio-community/gpt-oss-20b-GGUF", Filename: "gpt-oss-20b-MXFP4.gguf", Parameters: 20_900 * million, SizeBytes: 12_109_566_624, Good: "reasoning and tool calls, fast for its size"},
		{Repo: "unsloth/gemma-4-26B-A4B-it-GGUF", Filename: "gemma-4-26B-A4B-it-UD-Q4_K_M.gguf", Parameters: 26 * billion, SizeBytes: 16_900_000_000, Good: "everything, fast for its size"},
		{Repo: "Qwen/Qwen3-32B-GGUF", Filename: "Qwen3-32B-Q4_K_M.gguf", Parameters: 32_800 * million, SizeBytes: 19_762_150_048, Good: "the most careful answers of this list"},
	}
}

// recommend compares the curated models with the room that the host has, and
// shows the arithmetic.
func (m model) recommend(ctx context.Context, _ caller.Caller, _ recommendArgs) (recommendResult, error) {
	entries, err := m.host.Models.List()
	if err != nil {
		return recommendResult{}, err
	}
	here := map[string]bool{}
	for _, e := range entries {
		for _, file := range e.Files {
			here[file] = true
		}
	}
	r := recommendResult{Room: m.room(ctx), Recommended: []candidate{}, TooLarge: []candidate{}}
	for _, c := range curated() {
		c.Need = llama.GuessNeed(c.SizeBytes, c.Parameters, listContext)
		c.OnHost = here[c.Filename]
		if r.Room != nil && c.Need.Total <= r.Room.Bytes {
			r.Recommended = append(r.Recommended, c)
		} else {
			r.TooLarge = append(r.TooLarge, c)
		}
	}
	bySize := func(a, b candidate) int { return cmp.Compare(a.Need.Total, b.Need.Total) }
	slices.SortFunc(r.TooLarge, bySize)
	slices.SortFunc(r.Recommended, func(a, b candidate) int { return bySize(b, a) })
	switch {
	case r.Room == nil:
		r.Hint = "how much memory this host has is unknown, so nothing can be said to fit; hardware_info tells why"
	case len(r.Recommended) == 0:
		r.Hint = "none of these fits; unload what is loaded, or add memory"
	}
	return r, nil
}
