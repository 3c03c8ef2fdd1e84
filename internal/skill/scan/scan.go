// Package scan looks through a skill, its instructions and every bundled file,
// for what should make a person stop: hidden text, orders to ignore the user,
// secrets, data on its way out, code fetched and run.
//
// It is a table of rules with a severity each (rules.go) and a few checks of
// characters and files. A finding has its file, line and the text that led to
// it, so that a person can judge; a rule looks for whole constructions and not
// for single words, so that prose about a danger, or a program that runs
// another, is not taken for an attack. Text is read as a model reads it: width,
// case, accents, zero-width and tag characters make no difference, line breaks
// are blanks, the marks of Markdown and HTML and the quotes within a command are
// left out, and what base64 and the like hide is looked at too. What is no text
// is judged by its bytes, and what can be read among them is read.
//
// A clean verdict is no proof: who writes a skill can say in plain words what
// no rule knows. Version changes with the rules, so that a stored verdict of
// older rules is made anew before the skill is used.
package scan

import (
	"cmp"
	"slices"
	"strings"

	"pawgate/internal/skill"
)

// Version of the rules.
const Version = 2

// Severity says how much a finding weighs.
type Severity string

// The severities, least first. Info is no danger: what a skill is able to do.
const (
	Info     Severity = "info"
	Low      Severity = "low"
	Medium   Severity = "medium"
	High     Severity = "high"
	Critical Severity = "critical"
)

var order = []Severity{"", Info, Low, Medium, High, Critical}

// AtLeast compares severities.
func (s Severity) AtLeast(other Severity) bool {
	return slices.Index(order, s) >= slices.Index(order, other)
}

// Finding is one thing found.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Path     string   `json:"path"`
	Line     int      `json:"line,omitzero"` // 1 is the first; 0 is the file itself
	Message  string   `json:"message"`
	// Evidence is the text that was found, hidden characters made visible and
	// secrets cut.
	Evidence string `json:"evidence,omitzero"`
}

// Verdict is what is thought of one version of a skill.
type Verdict struct {
	// Risk is the worst severity found; clean when there is none above info.
	Risk     string    `json:"risk"`
	Passed   bool      `json:"passed"` // below high
	Findings []Finding `json:"findings"`
	Omitted  int       `json:"omitted,omitzero"` // findings beyond the most that are listed
	Scanner  int       `json:"scanner_version"`
}

// maxFindings are listed of one skill, and maxPerRule of one rule in a file.
const (
	maxFindings = 100
	maxPerRule  = 5
)

// Clean is the risk of a skill without findings.
const Clean = "clean"

// Files looks through the files of a skill.
func Files(files []skill.File) Verdict {
	var all []Finding
	for _, f := range files {
		all = append(all, file(f)...)
	}
	all = append(all, together(files, all)...)
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(order, b.Severity), slices.Index(order, a.Severity)),
			strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), strings.Compare(a.Rule, b.Rule))
	})
	v := Verdict{Risk: Clean, Passed: true, Findings: []Finding{}, Scanner: Version}
	if len(all) > 0 && all[0].Severity.AtLeast(Low) {
		v.Risk, v.Passed = string(all[0].Severity), !all[0].Severity.AtLeast(High)
	}
	v.Omitted = max(0, len(all)-maxFindings)
	v.Findings = append(v.Findings, all[:len(all)-v.Omitted]...)
	return v
}

// file looks through one file: as a text, or as what can be read among its
// bytes.
func file(f skill.File) []Finding {
	text := string(f.Content)
	var found []Finding
	if isText(f.Content) {
		found = characters(f.Path, text)
	} else {
		found, text = kind(f), readable(f.Content)
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	found = append(found, named(f.Path)...)
	d := read(f.Path, text)
	d.script = d.script || f.Executable
	found = append(found, look(d, text, 0)...)
	return append(found, d.secrets()...)
}

// named looks through a path, which a model reads before anything in the file.
func named(path string) []Finding {
	words := strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_./", r) {
			return ' '
		}
		return r
	}, path)
	found := read(path, words).match(rules())
	for i := range found {
		found[i].Line, found[i].Message, found[i].Evidence = 0, "in the path: "+found[i].Message, visible(path, maxEvidence)
	}
	return found
}

// together is what two harmless halves make when one skill has both.
func together(files []skill.File, found []Finding) []Finding {
	reads := slices.IndexFunc(found, func(f Finding) bool { return f.Rule == "exfil.secret_file" })
	if reads < 0 {
		return nil
	}
	for _, f := range found {
		if f.Rule == "code.sends" {
			return []Finding{{Rule: "exfil.secret_file_sent", Severity: Critical, Path: found[reads].Path, Line: found[reads].Line,
				Message: "the skill reads files that hold credentials, and sends data out (" + f.Path + ")", Evidence: found[reads].Evidence}}
		}
	}
	return nil
}
