package memory

// IndexOf lets the benchmarks fill the tables in bulk.
func IndexOf(agent, content string) (terms []int64, weights []int16) {
	ix := indexOf(draft{agent: agent, content: content})
	return ix.terms, ix.weights
}

// Digest is the content's digest.
func Digest(content string) []byte { return draft{content: content}.digest() }
