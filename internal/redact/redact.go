// Package redact hides known forms of secrets in text that leaves the router:
// answers, error texts, log lines, audit rows, approval cards.
//
// Every form has literals that its secrets must contain. One pass of an
// Aho-Corasick automaton over the text finds the literals of all forms, at
// some hundred megabytes a second; only where one is found does the form look
// closer, at a bounded stretch of text. Text without a secret is returned as
// it is, without a copy.
//
// The text may be JSON, also JSON within strings of JSON: what is replaced
// never takes in a quote or half an escape, so that valid JSON stays valid and
// no other member is touched. A replaced number becomes a string.
//
// False alarms are kept low at a price: a secret in a form of its own, such as
// a pass phrase of several words after "password:", is only seen where an
// assignment or a quoted member names it. The package decides nothing and is
// no substitute for keeping secrets out of texts: it is the last net.
package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// minKnown is the shortest value given to New that is looked for; a shorter
// one would be found all over ordinary text.
const minKnown = 8

// Redactor hides secrets. It is safe for concurrent use.
type Redactor struct {
	forms []form
	scan  automaton
}

// New is a redactor of all known forms and of the given values, such as this
// process's own keys, whatever they look like. Values shorter than 8 bytes are
// not looked for.
func New(known ...string) *Redactor {
	r := &Redactor{forms: forms()}
	for _, value := range known {
		if len(value) < minKnown {
			continue
		}
		for _, text := range slices.Compact([]string{value, escaped(value, false), escaped(value, true)}) {
			r.forms = append(r.forms, form{name: "configured", hints: []string{text}, find: whole(text)})
		}
	}
	r.scan = newAutomaton(r.forms)
	return r
}

// escaped is the value as it stands inside a JSON string, of an encoder that
// escapes for HTML or of one that does not.
func escaped(value string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(value); err != nil {
		return value
	}
	return b.String()[1 : b.Len()-len("\"\n")]
}

// String is s with "[redacted:<form>]" in the place of each secret.
func (r *Redactor) String(s string) string {
	if first := search(&r.scan, s); first >= 0 {
		return r.replace(s, first)
	}
	return s
}

// Bytes is the same for bytes. Without a secret it returns b itself, which the
// caller must not change then.
func (r *Redactor) Bytes(b []byte) []byte {
	first := search(&r.scan, b)
	if first < 0 {
		return b
	}
	s := string(b)
	if out := r.replace(s, first); out != s {
		return []byte(out)
	}
	return b
}

// result collects a text with replacements.
type result struct {
	source string
	done   int // source up to here is in out
	out    strings.Builder
}

// add replaces what a form found; it refuses what overlaps the last one.
func (r *result) add(name string, m span) bool {
	if m.from < r.done || m.to <= m.from {
		return false
	}
	r.out.WriteString(r.source[r.done:m.from])
	r.out.WriteString(m.quote + "[redacted:" + name + "]" + m.quote)
	r.done = m.to
	return true
}

func (r *result) text() string {
	if r.done == 0 {
		return r.source
	}
	r.out.WriteString(r.source[r.done:])
	return r.out.String()
}

// replace goes through the text from just before the first literal.
func (r *Redactor) replace(s string, first int) string {
	res := result{source: s}
	next, class := r.scan.next, &r.scan.class
	state := uint32(0)
	for i := max(0, first-r.scan.longest); i < len(s); i++ {
		state = next[state+uint32(class[s[i]])]
		if s[i] == '.' && i >= dotsApart && s[i-dotsApart] == '.' {
			if m, ok := findDiscord(s, i-dotsApart, i); ok && res.add("discord", m) {
				i, state = m.to-1, 0
				continue
			}
		}
		if state&accepting == 0 {
			continue
		}
		state &^= accepting
		for _, h := range r.scan.found[state/r.scan.columns] {
			f := &r.forms[h.form]
			if m, ok := f.match(s, i+1-h.length, i+1); ok && res.add(f.name, m) {
				i, state = max(i, m.to-1), 0
				break
			}
		}
	}
	return res.text()
}
