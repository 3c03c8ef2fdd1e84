package search

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxWait bounds what a server may ask for.
const maxWait = 31 * 24 * time.Hour

// RetryAfter reads how long a server asks to wait: the Retry-After header in
// seconds or as a date (RFC 9110 §10.2.3); zero when it does not say.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds > 0 {
		return min(time.Duration(min(seconds, maxWait.Seconds())*float64(time.Second)), maxWait)
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return min(at.Sub(now).Round(time.Second), maxWait)
	}
	return 0
}

// windows reads a header with one number of seconds or requests for each
// window of a limit, shortest window first: "1, 1419704".
func windows(h http.Header, name string) []int {
	var list []int
	for field := range strings.SplitSeq(h.Get(name), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil {
			return nil
		}
		list = append(list, n)
	}
	return list
}
