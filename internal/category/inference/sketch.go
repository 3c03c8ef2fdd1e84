package inference

import (
	"hash/fnv"
	"slices"
	"strings"
	"unicode/utf8"
)

// sketchSize is how many hashes stand for a prompt.
const sketchSize = 128

// gram is the length of the pieces that a prompt is cut into, in characters.
const gram = 3

// Sketch is a prompt as the least hashes (FNV-1a, 64 bits) of its 3-grams, in
// order. Prompts that share many pieces share many hashes.
func Sketch(prompt string) []int64 {
	text := []rune(strings.ToLower(strings.Join(strings.Fields(prompt), " ")))
	var hashes []int64
	for i := 0; i == 0 || i+gram <= len(text); i++ {
		h := fnv.New64a()
		var buf [utf8.UTFMax]byte
		for _, c := range text[i:min(i+gram, len(text))] {
			_, _ = h.Write(buf[:utf8.EncodeRune(buf[:], c)])
		}
		hashes = append(hashes, int64(h.Sum64()))
	}
	slices.Sort(hashes)
	hashes = slices.Compact(hashes)
	return hashes[:min(len(hashes), sketchSize)]
}

// Similarity estimates the share of pieces that two prompts have in common
// (Jaccard index, from bottom-k sketches): 0 nothing, 1 everything.
func Similarity(a, b []int64) float64 {
	union, shared := 0, 0
	for i, j := 0, 0; union < sketchSize && (i < len(a) || j < len(b)); union++ {
		switch {
		case j == len(b) || i < len(a) && a[i] < b[j]:
			i++
		case i == len(a) || b[j] < a[i]:
			j++
		default:
			i, j, shared = i+1, j+1, shared+1
		}
	}
	if union == 0 {
		return 0
	}
	return float64(shared) / float64(union)
}
