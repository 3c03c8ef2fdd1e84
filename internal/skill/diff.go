package skill

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Change is one file that differs between two versions.
type Change struct {
	Path string `json:"path"`
	// Kind is added, removed, changed, or mode: only the execute bit differs.
	Kind string `json:"kind"`
	// Diff has the lines that went (-) and came (+), with a little around them;
	// empty for what is no text.
	Diff      string `json:"diff,omitzero"`
	Truncated bool   `json:"truncated,omitzero"`
}

// Bounds of a diff.
const (
	maxDiff    = 8 << 10  // bytes of one file's
	maxDiffs   = 64 << 10 // bytes of all files'
	maxCompare = 3000     // lines of each side, equal beginnings and ends left out
	around     = 2        // lines shown before and after
)

// Diff compares two versions of a skill, in the order of the paths.
func Diff(before, after []File) []Change {
	old, fresh := byPath(before), byPath(after)
	changes := []Change{}
	paths := []string{}
	for p := range old {
		paths = append(paths, p)
	}
	for p := range fresh {
		if _, both := old[p]; !both {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	left := maxDiffs
	for _, p := range paths {
		a, was := old[p]
		b, is := fresh[p]
		c := Change{Path: p}
		switch {
		case !was:
			c.Kind = "added"
		case !is:
			c.Kind = "removed"
		case !bytes.Equal(a.Content, b.Content):
			c.Kind = "changed"
		case a.Executable != b.Executable:
			c.Kind = "mode"
		default:
			continue
		}
		if text(a.Content) && text(b.Content) {
			if left > 0 {
				c.Diff, c.Truncated = lines(string(a.Content), string(b.Content), min(maxDiff, left))
			} else {
				c.Truncated = true // which files differ is told of all of them
			}
			left -= len(c.Diff)
		}
		changes = append(changes, c)
	}
	return changes
}

func byPath(files []File) map[string]File {
	m := make(map[string]File, len(files))
	for _, f := range files {
		m[f.Path] = f
	}
	return m
}

func text(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// lines is the difference of two texts, line by line, in so many bytes at most.
func lines(a, b string, most int) (diff string, truncated bool) {
	x, y := splitLines(a), splitLines(b)
	head := 0
	for head < len(x) && head < len(y) && x[head] == y[head] {
		head++
	}
	tail := 0
	for tail < len(x)-head && tail < len(y)-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	out := hunk{most: most}
	for _, line := range x[max(0, head-around):head] {
		out.add(' ', line)
	}
	out.compare(x[head:len(x)-tail], y[head:len(y)-tail])
	for _, line := range x[len(x)-tail : min(len(x), len(x)-tail+around)] {
		out.add(' ', line)
	}
	return out.text.String(), out.full
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

type hunk struct {
	text strings.Builder
	most int // bytes
	full bool
	same []string // equal lines not written yet
}

func (h *hunk) add(sign byte, line string) {
	if h.full || h.text.Len()+len(line) > h.most {
		h.full = true
		return
	}
	fmt.Fprintf(&h.text, "%c%s\n", sign, line)
}

// compare writes the shortest way from x to y, by the lengths of the longest
// common subsequences of all their ends.
func (h *hunk) compare(x, y []string) {
	if len(x) > maxCompare || len(y) > maxCompare {
		for _, line := range x {
			h.add('-', line)
		}
		for _, line := range y {
			h.add('+', line)
		}
		return
	}
	width := len(y) + 1
	best := make([]uint16, (len(x)+1)*width)
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				best[i*width+j] = best[(i+1)*width+j+1] + 1
			} else {
				best[i*width+j] = max(best[(i+1)*width+j], best[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			h.same = append(h.same, x[i])
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && best[(i+1)*width+j] >= best[i*width+j+1]:
			h.flush()
			h.add('-', x[i])
			i++
		default:
			h.flush()
			h.add('+', y[j])
			j++
		}
	}
	h.same = nil
}

// flush writes equal lines between two changes, the middle of a long stretch
// left out.
func (h *hunk) flush() {
	same := h.same
	h.same = nil
	if len(same) > 2*around {
		for _, line := range same[:around] {
			h.add(' ', line)
		}
		h.add('@', fmt.Sprintf(" %d equal lines", len(same)-2*around))
		same = same[len(same)-around:]
	}
	for _, line := range same {
		h.add(' ', line)
	}
}
