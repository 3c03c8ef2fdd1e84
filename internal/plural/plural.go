// Package plural counts things in the sentences that people and models read:
// "1 memory", "2 memories". It knows no grammar and never guesses a form; the
// caller gives the word that does not only take an s.
package plural

import "strconv"

// Of is n and the word for that many: Of(2, "file") is "2 files", and
// Of(2, "memory", "memories") is "2 memories".
func Of[N int | int32 | int64](n N, one string, many ...string) string {
	word := one
	switch {
	case n == 1:
	case len(many) > 0:
		word = many[0]
	default:
		word += "s"
	}
	return strconv.FormatInt(int64(n), 10) + " " + word
}
