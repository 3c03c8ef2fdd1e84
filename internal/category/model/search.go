package model

import (
	"cmp"
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"pawgate/internal/caller"
	"pawgate/internal/client/llama"
	"pawgate/internal/client/llama/hardware"
)

type searchArgs struct {
	Query string `json:"query" doc:"Words of the model's name" maxlen:"200"`
	Limit int    `json:"limit,omitempty" doc:"Repositories; 5 if left out" min:"1" max:"10"`
}

type searchResult struct {
	Repositories []repository `json:"repositories"`
	Room         *room        `json:"room_for_model"`
	// Unread are repositories that were found but could not be read.
	Unread []string `json:"unread,omitzero"`
	Hint   string   `json:"hint,omitzero"`
}

type room = hardware.Budget

type repository struct {
	Repo       string  `json:"repo"`
	Downloads  int64   `json:"downloads"`
	Likes      int64   `json:"likes"`
	Gated      bool    `json:"gated"`   // needs the hub's permission
	Trusted    bool    `json:"trusted"` // a well-known publisher
	Parameters int64   `json:"parameters,omitzero"`
	Best       string  `json:"best_filename,omitzero"` // fits this host and keeps most quality
	Files      []build `json:"files"`
}

// build is one file, or the parts of one, of a repository.
type build struct {
	Filename     string `json:"filename"` // what model_download takes
	Quantisation string `json:"quantization,omitzero"`
	SizeBytes    int64  `json:"size_bytes"`
	Parts        int    `json:"parts"`
	MemoryBytes  int64  `json:"memory_bytes"` // at 4096 tokens of context
	Fits         *bool  `json:"fits"`         // null when the host's memory is unknown
}

const (
	defaultSearch = 5
	lookups       = 4 // repositories that are read at a time
)

// search finds GGUF models on the hub, most downloaded first. It fails with
// fault.Unavailable, fault.RateLimited or hub.Gated; nothing found is an empty
// list.
func (m model) search(ctx context.Context, _ caller.Caller, a searchArgs) (searchResult, error) {
	found, err := m.downloads.Hub().Search(ctx, strings.TrimSpace(a.Query), cmp.Or(a.Limit, defaultSearch))
	if err != nil {
		return searchResult{}, err
	}
	r := searchResult{Repositories: make([]repository, len(found)), Room: m.room(ctx)}
	var all sync.WaitGroup
	slots := make(chan struct{}, lookups)
	errs := make([]error, len(found))
	for i, repo := range found {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r.Repositories[i], errs[i] = m.look(ctx, repo.ID, r.Room)
		})
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return searchResult{}, err
	}
	for i, err := range errs {
		if err != nil {
			r.Unread = append(r.Unread, found[i].ID)
		}
	}
	r.Repositories = slices.DeleteFunc(r.Repositories, func(x repository) bool { return len(x.Files) == 0 })
	if len(r.Repositories) == 0 {
		r.Hint = "nothing found; try fewer words, such as the model's family"
	}
	return r, nil
}

func (m model) room(ctx context.Context) *room {
	if b, ok := m.host.Hardware.Read(ctx).Budget(); ok {
		return &b
	}
	return nil
}

func (m model) look(ctx context.Context, id string, room *room) (repository, error) {
	repo, err := m.downloads.Hub().Repo(ctx, id, "")
	if err != nil {
		return repository{}, err
	}
	r := repository{Repo: id, Downloads: repo.Downloads, Likes: repo.Likes, Gated: repo.Gated,
		Trusted: slices.Contains(publishers(), path.Dir(id)), Parameters: repo.Parameters}
	for _, f := range repo.Files {
		parts, err := repo.Parts(f.Path)
		if err != nil || parts[0].Path != f.Path || accessory.MatchString(f.Name()) {
			continue // a part of another line, an incomplete model, or no model
		}
		b := build{Filename: f.Path, Parts: len(parts), Quantisation: quantisationOf(f.Name())}
		for _, p := range parts {
			b.SizeBytes += p.Size
		}
		b.MemoryBytes = llama.GuessNeed(b.SizeBytes, cmp.Or(repo.Parameters, guessParameters(b)), listContext).Total
		if room != nil && b.SizeBytes > 0 {
			b.Fits = new(b.MemoryBytes <= room.Bytes)
		}
		r.Files = append(r.Files, b)
	}
	slices.SortFunc(r.Files, func(a, b build) int { return cmp.Compare(a.SizeBytes, b.SizeBytes) })
	r.Best = best(r.Files)
	return r, nil
}

// publishers are owners whose builds are known to be sound.
func publishers() []string {
	return []string{"Qwen", "google", "meta-llama", "microsoft", "mistralai", "deepseek-ai", "openai", "ggml-org", "bartowski",
		"unsloth", "lmstudio-community", "mradermacher", "mlx-community", "TheBloke", "MiniMaxAI"}
}

// accessory are files beside a model: projectors for pictures, and the
// statistics that a quantisation was made with.
var accessory = regexp.MustCompile(`(?i)^mmproj|imatrix`)

var quantisation = regexp.MustCompile(`(?i)(?:^|[-._])((?:UD-)?I?Q\d(?:_\d|_[KS](?:_[A-Z]{1,2})?|_[A-Z]{1,3})?(?:_XL)?|BF16|FP?16|FP?32|MXFP4(?:_MOE)?|TQ\d_\d)(?:[-._]|$)`)

func quantisationOf(file string) string {
	if m := quantisation.FindStringSubmatch(file); m != nil {
		return strings.ToUpper(m[1])
	}
	return ""
}

// guessParameters takes about 4.8 bits a parameter, which is Q4_K_M; of
// anything larger it guesses too many, which is the safe side.
func guessParameters(b build) int64 { return int64(float64(b.SizeBytes) * 8 / 4.8) }

// preferred are the quantisations by how much quality they keep for their
// size.
var preferred = []string{"Q4_K_M", "Q4_K_S", "Q5_K_M", "Q4_0", "MXFP4", "Q8_0"}

// best is the file to take: of a preferred quantisation, else the largest that
// fits. Nothing that does not fit is best.
func best(files []build) string {
	fitting := slices.DeleteFunc(slices.Clone(files), func(b build) bool { return b.Fits == nil || !*b.Fits })
	for _, q := range preferred {
		for _, b := range fitting {
			if strings.TrimPrefix(b.Quantisation, "UD-") == q {
				return b.Filename
			}
		}
	}
	if len(fitting) > 0 {
		return fitting[len(fitting)-1].Filename
	}
	return ""
}
