package channel

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Fate is what is known of a message whose send failed.
type Fate string

// The fates.
const (
	NotSent Fate = "not_sent" // certainly not sent; the same may be tried again, after RetryAfter
	Refused Fate = "refused"  // certainly not sent; the same would be refused again
	Unknown Fate = "unknown"  // it may have been sent, or not
)

// Error is a send that did not succeed. Its text is for the caller of a tool:
// it holds no address and no secret.
type Error struct {
	Platform string
	Code     string // the platform's own code, such as "403" or "channel_not_found"
	Says     string // the platform's own words, shortened, without secrets
	Do       string // what to do next
	Fate     Fate
	// RetryAfter is how long the platform asks to wait; zero: it does not say.
	RetryAfter time.Duration
	// Limited is true when it refuses for the number of messages.
	Limited bool
	// BadMarkup is true when the platform could not read the text's format, so
	// that the plain form may succeed.
	BadMarkup bool
	// BadLogin is true when the account's secret is not accepted.
	BadLogin bool

	cause error
}

func (e *Error) Error() string {
	var b strings.Builder
	switch e.Fate {
	case Unknown:
		fmt.Fprintf(&b, "%s may or may not have taken the message", e.Platform)
	case Refused:
		fmt.Fprintf(&b, "%s refused", e.Platform)
	default:
		fmt.Fprintf(&b, "%s did not take the message", e.Platform)
	}
	if answer := e.Answer(); answer != "" {
		b.WriteString(": " + answer)
	}
	return b.String()
}

// Answer is what the platform said and what to do, without the message's fate.
func (e *Error) Answer() string {
	var b strings.Builder
	b.WriteString(cmp.Or(e.Says, "no words"))
	if e.Code != "" {
		fmt.Fprintf(&b, " (code %s)", e.Code)
	}
	if e.Do != "" {
		b.WriteString("; " + e.Do)
	}
	return b.String()
}

// Unwrap is the cause, for the log.
func (e *Error) Unwrap() error { return e.cause }

// ErrorOf finds the Error in a chain; an error of any other kind is one of
// unknown fate.
func ErrorOf(platform string, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Platform: platform, Fate: Unknown, Says: "the attempt broke off", cause: err}
}

// maxSays bounds a platform's words in an answer, in runes.
const maxSays = 200

// shorten makes a platform's words fit for an answer: one line, no secrets.
func shorten(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= 4 {
			text = strings.ReplaceAll(text, s, "[secret]")
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxSays {
		text = string(runes[:maxSays]) + "…"
	}
	return strings.TrimRight(text, ".")
}
