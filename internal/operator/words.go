package operator

import (
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
