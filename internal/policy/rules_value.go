package policy

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
)

// truth has a third value for what cannot be told; the rule's effect settles
// it.
type truth int

const (
	no truth = iota
	unsure
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// reach finds the values at the end of a path. A list on the way, and with
// spread also one at the end, stands for its elements; what is not there, or
// an empty list, is one value that is not present.
func reach(v any, path []string, spread bool, found func(v any, present bool)) {
	list, isList := v.([]any)
	switch {
	case isList && (spread || len(path) > 0):
		if len(list) == 0 {
			found(nil, false)
		}
		for _, element := range list {
			reach(element, path, spread, found)
		}
	case len(path) == 0:
		found(v, true)
	default:
		members, _ := v.(map[string]any)
		member, ok := members[path[0]]
		if !ok {
			found(nil, false)
			return
		}
		reach(member, path[1:], spread, found)
	}
}

// test is the condition as a function of one value; ok is false when the
// condition is broken.
func (c Condition) test() (test func(v any, present bool) truth, ok bool) {
	value, ok := plain(c.Value)
	if c.Op == Exists {
		want, isBool := value.(bool)
		want = want || c.Value == nil
		return func(_ any, present bool) truth { return truthOf(present == want) }, isBool || c.Value == nil
	}
	if !ok || value == nil {
		return nil, false
	}
	on := func(compare func(v any) truth) func(any, bool) truth {
		return func(v any, present bool) truth {
			if !present || v == nil {
				return no
			}
			return compare(v)
		}
	}
	switch c.Op {
	case Equals:
		return on(func(v any) truth { return equal(v, value) }), true
	case In:
		list, ok := value.([]any)
		return on(func(v any) truth {
			best := no
			for _, element := range list {
				best = max(best, equal(v, element))
			}
			return best
		}), ok
	case Contains, StartsWith, Match:
		text, isText := value.(string)
		find, ok := finder(c.Op, text)
		return on(func(v any) truth { return onText(v, find) }), ok && isText
	case Less, AtMost, Greater, AtLeast:
		compare, ok := order(value)
		return on(func(v any) truth { return compare(v, c.Op) }), ok
	}
	return nil, false
}

// plain brings a value from JSON or TOML to string, bool, json.Number or a
// list of them.
func plain(v any) (any, bool) {
	switch v := v.(type) {
	case nil, string, bool:
		return v, true
	case json.Number:
		_, ok := parseDecimal(string(v))
		return v, ok
	case int:
		return json.Number(strconv.Itoa(v)), true
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), true
	case float64:
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64)), !math.IsNaN(v) && !math.IsInf(v, 0)
	case time.Time:
		return v.Format(time.RFC3339Nano), true
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			var ok bool
			if list[i], ok = plain(element); !ok || list[i] == nil {
				return nil, false
			}
		}
		return list, true
	}
	return nil, false
}

// equal compares scalars. The same value in another notation, such as "2" for
// 2, is unsure: what receives it may take both.
func equal(v, want any) truth {
	switch want := want.(type) {
	case string:
		if text, ok := v.(string); ok {
			return truthOf(norm.NFC.String(text) == norm.NFC.String(want))
		}
	case bool:
		if b, ok := v.(bool); ok {
			return truthOf(b == want)
		}
	case json.Number:
		if n, ok := v.(json.Number); ok {
			a, okA := parseDecimal(string(n))
			b, okB := parseDecimal(string(want))
			if !okA || !okB {
				return unsure
			}
			return truthOf(a.compare(b) == 0)
		}
	}
	text, ok := scalarText(v)
	other, otherOK := scalarText(want)
	if !ok || !otherOK {
		return no // a list or an object is not a scalar
	}
	a, okA := parseDecimal(strings.TrimSpace(text))
	b, okB := parseDecimal(strings.TrimSpace(other))
	if text == other || okA && okB && a.compare(b) == 0 {
		return unsure
	}
	return no
}

func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return norm.NFC.String(v), true
	case json.Number:
		return string(v), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

func finder(op Op, text string) (func(string) bool, bool) {
	text = norm.NFC.String(text)
	switch op {
	case Contains:
		return func(s string) bool { return strings.Contains(s, text) }, text != ""
	case StartsWith:
		return func(s string) bool { return strings.HasPrefix(s, text) }, text != ""
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, false
	}
	return re.MatchString, text != ""
}

func onText(v any, find func(string) bool) truth {
	text, ok := scalarText(v)
	_, isString := v.(string)
	switch {
	case !ok:
		return unsure
	case !find(text):
		return no
	case !isString:
		return unsure
	}
	return yes
}

// order compares with a number, or with a time (RFC 3339).
func order(want any) (func(v any, op Op) truth, bool) {
	if n, ok := want.(json.Number); ok {
		limit, ok := parseDecimal(string(n))
		return func(v any, op Op) truth { return orderNumber(v, op, limit) }, ok
	}
	text, _ := want.(string)
	limit, err := time.Parse(time.RFC3339, text)
	return func(v any, op Op) truth {
		text, _ := v.(string)
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return unsure
		}
		return truthOf(op.accepts(t.Compare(limit)))
	}, err == nil
}

func orderNumber(v any, op Op, limit decimal) truth {
	text, _ := scalarText(v)
	n, ok := parseDecimal(strings.TrimSpace(text))
	if !ok {
		return unsure
	}
	if _, isNumber := v.(json.Number); !isNumber && op.accepts(n.compare(limit)) {
		return unsure
	}
	return truthOf(op.accepts(n.compare(limit)))
}

// accepts takes the result of a comparison, argument against value.
func (o Op) accepts(c int) bool {
	switch o {
	case Less:
		return c < 0
	case AtMost:
		return c <= 0
	case Greater:
		return c > 0
	}
	return c >= 0
}
