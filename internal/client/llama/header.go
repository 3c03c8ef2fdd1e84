package llama

import (
	"fmt"
	"time"

	"pawgate/internal/client/llama/gguf"
	"pawgate/internal/client/llama/library"
)

// headerKey tells whether a file is still the one that was read.
type headerKey struct {
	file     string
	size     int64
	modified time.Time
}

// headerResult is what reading it gave: a damaged file stays damaged.
type headerResult struct {
	header gguf.Header
	err    error
}

// maxHeaders bounds the memory of headers that were read; beyond it all are
// read again.
const maxHeaders = 512

// Header is what a model says of itself: its first file, and of the others
// what adds up. A header is read once per version of a file, because the
// largest take some milliseconds. It fails with gguf.ErrCorrupt.
func (h *Host) Header(e library.Entry) (gguf.Header, error) {
	first, err := h.header(e.Main())
	if err != nil {
		return gguf.Header{}, err
	}
	for _, file := range e.Files[1:] {
		part, err := h.header(file)
		if err != nil {
			return gguf.Header{}, fmt.Errorf("part %s: %w", file, err)
		}
		first.Parameters += part.Parameters
		first.WeightBytes += part.WeightBytes
	}
	return first, nil
}

func (h *Host) header(name string) (gguf.Header, error) {
	file, err := h.Models.Root().Open(name)
	if err != nil {
		return gguf.Header{}, fmt.Errorf("open model: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return gguf.Header{}, fmt.Errorf("look at model: %w", err)
	}
	key := headerKey{name, info.Size(), info.ModTime()}
	h.mu.Lock()
	known, ok := h.headers[key]
	h.mu.Unlock()
	if ok {
		return known.header, known.err
	}
	known.header, known.err = gguf.Read(file, info.Size())
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.headers) >= maxHeaders {
		clear(h.headers)
	}
	h.headers[key] = known
	return known.header, known.err
}
