package llama

import (
	"fmt"

	"pawgate/internal/client/llama/gguf"
	"pawgate/internal/client/llama/hardware"
)

// Need is how much memory a loaded model takes, in bytes.
type Need struct {
	Weights  int64  `json:"weights_bytes"`
	Cache    int64  `json:"cache_bytes"` // of the context
	Overhead int64  `json:"overhead_bytes"`
	Total    int64  `json:"total_bytes"`
	How      string `json:"how"` // the arithmetic, for people
}

// The buffers that a server computes in grow with the model, and exist for the
// smallest one.
const (
	overheadShare = 0.05
	overheadLeast = 128 << 20
)

// NeedOf works out the memory of a model from its size, the cache that one
// token takes (0 if unknown), and the context in tokens.
func NeedOf(size, cachePerToken int64, context int) Need {
	n := Need{Weights: size, Cache: cachePerToken * int64(context)}
	n.Overhead = max(int64(float64(size)*overheadShare), overheadLeast)
	n.Total = n.Weights + n.Cache + n.Overhead
	n.How = fmt.Sprintf("%s weights + %s cache (%d tokens × %s) + %s buffers = %s", hardware.Size(n.Weights),
		hardware.Size(n.Cache), context, hardware.Size(cachePerToken), hardware.Size(n.Overhead), hardware.Size(n.Total))
	return n
}

// guessedCache are the bytes that a token of context takes in models of a
// size, for a model whose file is not here to be read. Each is at the upper
// end of what models of that size have.
func guessedCache(parameters int64) int64 {
	const billion = 1e9
	for _, step := range []struct{ upTo, kib int64 }{
		{1 * billion, 24}, {3 * billion, 48}, {5 * billion, 72}, {10 * billion, 144},
		{20 * billion, 192}, {40 * billion, 256}, {80 * billion, 320},
	} {
		if parameters <= step.upTo {
			return step.kib << 10
		}
	}
	return 512 << 10
}

// GuessNeed is NeedOf for a model that is known by its size and parameters.
func GuessNeed(size, parameters int64, context int) Need {
	return NeedOf(size, guessedCache(parameters), context)
}

// contextOf is the context that a load gets: what was asked, or the default,
// but no more than the model was made for where only the default asks.
func contextOf(asked int, h gguf.Header) int {
	if asked > 0 {
		return asked
	}
	if h.ContextLength > 0 {
		return int(min(h.ContextLength, defaultContext))
	}
	return defaultContext
}

// room is what is free for one more model: the memory of the GPUs and of the
// host, where both are known to be used.
func room(i hardware.Info, useGPU bool) (bytes int64, how string, ok bool) {
	ram := i.Memory.Usable()
	var vram int64
	gpus := 0
	for _, g := range i.GPUs {
		if g.Free != nil && !g.Unified && useGPU {
			vram += *g.Free
			gpus++
		}
	}
	switch {
	case ram == nil && gpus == 0:
		return 0, "", false
	case gpus == 0:
		return *ram, hardware.Size(*ram) + " of memory is free", true
	case ram == nil:
		return vram, fmt.Sprintf("%s on %d GPU(s) is free", hardware.Size(vram), gpus), true
	}
	return vram + *ram, fmt.Sprintf("%s on %d GPU(s) and %s of memory are free", hardware.Size(vram), gpus, hardware.Size(*ram)), true
}
