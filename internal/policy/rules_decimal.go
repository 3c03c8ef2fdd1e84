package policy

import (
	"cmp"
	"strconv"
	"strings"
)

// decimal is a JSON number with all its digits: ±0.d₁d₂… × 10^exponent, with no
// zero at either end of the digits; zero has none. It is never expanded, so
// that 1e999999999 in an argument costs no more than its ten bytes (a big.Rat
// would fill the memory).
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

// parseDecimal reads a JSON number (RFC 8259 §6). It refuses an exponent
// beyond 32 bits, with which nothing here is compared in earnest.
func parseDecimal(text string) (decimal, bool) {
	var d decimal
	text, d.negative = strings.CutPrefix(text, "-")
	mantissa, exponent := text, int64(0)
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		n, err := strconv.ParseInt(text[i+1:], 10, 32)
		if err != nil {
			return decimal{}, false
		}
		mantissa, exponent = text[:i], n
	}
	whole, fraction, point := strings.Cut(mantissa, ".")
	if !allDigits(whole) || point && !allDigits(fraction) || len(whole) > 1 && whole[0] == '0' {
		return decimal{}, false
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	d.exponent = exponent + int64(len(whole)) - int64(len(whole)+len(fraction)-len(digits))
	d.digits = strings.TrimRight(digits, "0")
	if d.digits == "" {
		return decimal{}, true
	}
	return d, true
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// compare is -1, 0 or 1.
func (d decimal) compare(o decimal) int {
	if s := cmp.Compare(d.sign(), o.sign()); s != 0 || d.digits == "" {
		return s
	}
	c := cmp.Or(cmp.Compare(d.exponent, o.exponent), strings.Compare(d.digits, o.digits))
	if d.negative {
		return -c
	}
	return c
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// whole reports whether the number has no fraction.
func (d decimal) whole() bool { return int64(len(d.digits)) <= d.exponent || d.digits == "" }
