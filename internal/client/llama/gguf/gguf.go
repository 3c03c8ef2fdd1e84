// Package gguf reads what a GGUF file says of itself: architecture, number of
// parameters, quantisation, context, and what its cache will need (GGUF
// specification, versions 2 and 3).
//
// A file comes from the internet. Every count in it is checked against the
// size of the file before anything is done that many times, nothing is
// allocated by a number from the file, and reading stops at a fixed bound, so
// a small file cannot cost much memory or time. The weights are never read.
package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
)

// ErrCorrupt is every way in which a file is not a GGUF file or not a whole
// one. The wrapped text says which, and names no path.
var ErrCorrupt = errors.New("not a usable GGUF file")

// Bounds on a header. The largest known ones have a vocabulary of 256 000
// tokens, about 1 500 tensors and under 100 keys.
const (
	maxHeader  = 64 << 20 // bytes
	maxKeys    = 1 << 16
	maxTensors = 1 << 17
	maxName    = 1 << 16 // bytes of a key or of a tensor's name
	maxText    = 1 << 16 // bytes of a text that is kept; longer ones are skipped
	maxDims    = 4
	maxDepth   = 4 // arrays in arrays
)

// Header is what a file says of itself. Zero is "not said".
type Header struct {
	Architecture  string
	Name          string // general.name
	Quantisation  string // such as Q4_K_M
	Parameters    int64
	ContextLength int64 // what the model was trained for
	Layers        int64
	// CacheBytesPerToken is what the key-value cache takes for each token of
	// context, at 16 bits a value; 0 when the header does not tell.
	CacheBytesPerToken int64
	WeightBytes        int64 // all tensors of this file
	Parts              int64 // how many files the model is split into; 0 or 1: one
	ChatTemplate       bool
	Embedding          bool // it gives embeddings and no text
}

// Read reads the header of a file of the given size.
func Read(file io.Reader, size int64) (Header, error) {
	r := &reader{in: bufio.NewReaderSize(io.LimitReader(file, min(size, maxHeader)), 64<<10), size: size}
	h, err := r.header()
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it ends within its header")
		}
		return Header{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return h, nil
}

// reader reads little-endian values and knows how much is left.
type reader struct {
	in   *bufio.Reader
	read int64
	size int64 // of the whole file
	buf  [8]byte
}

func (r *reader) left() int64 { return min(r.size, maxHeader) - r.read }

func (r *reader) bytes(n int) ([]byte, error) {
	if _, err := io.ReadFull(r.in, r.buf[:n]); err != nil {
		return nil, err
	}
	r.read += int64(n)
	return r.buf[:n], nil
}

func (r *reader) u32() (uint32, error) {
	b, err := r.bytes(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (r *reader) u64() (uint64, error) {
	b, err := r.bytes(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// count reads how many elements follow, each of at least the given size, and
// refuses a number that the file cannot hold.
func (r *reader) count(what string, least int64, most uint64) (int64, error) {
	n, err := r.u64()
	if err != nil {
		return 0, err
	}
	if n > most || int64(n) > r.left()/least {
		return 0, fmt.Errorf("it claims %d %s, more than it can hold", n, what)
	}
	return int64(n), nil
}

func (r *reader) skip(n int64) error {
	if n < 0 || n > r.left() {
		return io.ErrUnexpectedEOF
	}
	skipped, err := io.CopyN(io.Discard, r.in, n)
	r.read += skipped
	return err
}

// text reads a string of at most the given length.
func (r *reader) text(most uint64) (string, error) {
	n, err := r.count("bytes of text", 1, most)
	if err != nil {
		return "", err
	}
	b := make([]byte, n) // at most maxName or maxText
	if _, err := io.ReadFull(r.in, b); err != nil {
		return "", err
	}
	r.read += n
	return string(b), nil
}

func (r *reader) header() (Header, error) {
	magic, err := r.bytes(4)
	if err != nil || string(magic) != "GGUF" {
		return Header{}, errors.New("it does not begin as one")
	}
	version, err := r.u32()
	switch {
	case err != nil:
		return Header{}, err
	case version&0xffff == 0:
		return Header{}, errors.New("it is of the other byte order")
	case version != 2 && version != 3:
		return Header{}, fmt.Errorf("it is of version %d, and 2 and 3 can be read", version)
	}
	tensors, err := r.count("tensors", 8+4+8+4+8, maxTensors)
	if err != nil {
		return Header{}, err
	}
	keys, err := r.count("keys", 8+4+1, maxKeys)
	if err != nil {
		return Header{}, err
	}
	m, err := r.metadata(keys)
	if err != nil {
		return Header{}, err
	}
	t, err := r.tensors(tensors)
	if err != nil {
		return Header{}, err
	}
	if err := r.checkSize(m, t); err != nil {
		return Header{}, err
	}
	return describe(m, t), nil
}

// checkSize refuses a file that is shorter than its tensors.
func (r *reader) checkSize(m metadata, t tensorSum) error {
	if t.count == 0 {
		return nil
	}
	align := m.number("general.alignment")
	if align <= 0 || align&(align-1) != 0 || align > 1<<20 {
		align = 32
	}
	start := (r.read + align - 1) / align * align
	if end := start + t.end; end < start || end > r.size {
		return errors.New("it is cut off: its tensors reach beyond its end")
	}
	return nil
}

// multiply is a product, or ok false when it does not fit.
func multiply(a, b uint64) (uint64, bool) {
	hi, lo := bits.Mul64(a, b)
	return lo, hi == 0 && lo <= math.MaxInt64
}
