package operator

import (
	"fmt"
	"strconv"
	"time"

	"pawgate/internal/fault"
)

// short keeps a quoted word readable.
func short(text string) string {
	const most = 64
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// didYouMean is a suggestion to append to an error, or nothing.
func didYouMean(word string, among []string) string {
	best, distance := "", max(2, len(word)/4)+1
	for _, candidate := range among {
		if d := editDistance(word, candidate); d < distance {
			best, distance = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// editDistance counts the bytes to insert, delete or replace (Levenshtein).
func editDistance(a, b string) int {
	if len(a) > 128 || len(b) > 128 {
		return max(len(a), len(b)) // no name is that long
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j+1]+1, row[j]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// span reads a length of time: Go's own form, or whole days and weeks ("90d",
// "2w"), which Go has not.
func span(text string) (time.Duration, bool) {
	day := map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	if n := len(text) - 1; n > 0 && day[text[n]] > 0 {
		count, err := strconv.Atoi(text[:n])
		return time.Duration(count) * day[text[n]], err == nil && count > 0 && count <= maxCount
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d > 0
}

// maxCount keeps days and weeks far from the largest time.Duration.
const maxCount = 10_000

// moment reads a time: a span from now (times sign), or RFC 3339, or a date.
func moment(parameter, text string, now time.Time, sign time.Duration) (time.Time, error) {
	if d, ok := span(text); ok {
		return now.Add(sign * d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fault.Invalid(parameter,
		"%s must be a length of time such as 12h or 90d, a date such as 2026-12-31, or a time such as 2026-12-31T10:00:00Z", parameter)
}
