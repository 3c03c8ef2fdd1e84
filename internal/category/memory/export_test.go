package memory

import "pawgate/internal/category/memory/sqlitefile"

// IndexOf lets the benchmarks fill the tables in bulk.
func IndexOf(agent, content string) (terms []int64, weights []int16) {
	ix := indexOf(draft{agent: agent, content: content})
	return ix.terms, ix.weights
}

// Digest is the content's digest.
func Digest(content string) []byte { return draft{content: content}.digest() }

// FromDuDuClaw is the line that a row of a DuDuClaw database becomes.
func FromDuDuClaw(row sqlitefile.Row) ([]byte, error) {
	var made []byte
	c := converter{take: func(b []byte) error { made = b; return nil }, done: Converted{Skipped: map[string]int{}}}
	err := c.memory(row)
	return made, err
}
