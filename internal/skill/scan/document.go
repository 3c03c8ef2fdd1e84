package scan

import (
	"encoding/base64"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// document is a text as the rules see it: folded, with the lines kept.
type document struct {
	path   string
	script bool     // the whole file is code
	folded string   // lower case, no hidden characters, no blank lines, no marks of comments
	starts []int    // where each line of folded begins
	number []int    // and which line of the file it is
	raw    []string // the lines as they stand in the file
}

// comment is what marks a line as a comment or a quotation.
var comment = regexp.MustCompile(`^(?:#+|//+|\*|>|--|;+|rem)\s+`)

func read(name, text string) document {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	d := document{path: name, script: isScript(name, text), raw: strings.Split(text, "\n")}
	var b strings.Builder
	for i, line := range strings.Split(fold(text), "\n") {
		line = strings.TrimSpace(line)
		if line = strings.TrimSpace(comment.ReplaceAllString(line, "")); line == "" {
			continue
		}
		d.starts, d.number = append(d.starts, b.Len()), append(d.number, i+1)
		b.WriteString(line)
		b.WriteByte('\n')
	}
	d.folded = b.String()
	return d
}

// fold makes one text of those that a model reads alike. It keeps every line
// break, so that a place in it has a line.
func fold(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r >= 0xE0020 && r <= 0xE007E:
			return r - 0xE0000 // what tag characters spell
		case r < 0x80:
			return r
		case unicode.In(r, unicode.Cf, unicode.Variation_Selector), r >= 0xE0000 && r <= 0xE007F:
			return -1
		case r == '’' || r == '‘':
			return '\''
		case r == '“' || r == '”':
			return '"'
		case unicode.Is(unicode.Zs, r):
			return ' '
		}
		if ascii, ok := lookalikes[r]; ok {
			return ascii
		}
		return r
	}, text)
	return strings.ToLower(norm.NFKC.String(text))
}

// lookalikes are Cyrillic and Greek letters in the shape of Latin ones. Only
// the folded text has them replaced, where a word in Russian matches no rule.
var lookalikes = map[rune]rune{'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'і': 'i', 'ѕ': 's', 'ј': 'j', 'ո': 'n',
	'А': 'a', 'В': 'b', 'Е': 'e', 'К': 'k', 'М': 'm', 'Н': 'h', 'О': 'o', 'Р': 'p', 'С': 'c', 'Т': 't', 'Х': 'x', 'І': 'i', 'ο': 'o', 'α': 'a', 'ν': 'v'}

// line is the number of the file's line that a place in the folded text is in.
func (d document) line(at int) int {
	if len(d.starts) == 0 {
		return 1
	}
	return d.number[d.row(at)]
}

// row is the index of the folded line that a place is in.
func (d document) row(at int) int { return max(0, sort.SearchInts(d.starts, at+1)-1) }

// excerpt is the line as it stands in the file, hidden characters shown.
func (d document) excerpt(line int) string {
	if line < 1 || line > len(d.raw) {
		return ""
	}
	return visible(d.raw[line-1], maxEvidence)
}

const maxEvidence = 200 // bytes

// visible is a text that hides nothing, cut to n bytes.
func visible(text string, n int) string {
	var b strings.Builder
	for _, r := range strings.TrimSpace(strings.ToValidUTF8(text, "�")) {
		if b.Len() >= n {
			b.WriteString("…")
			break
		}
		if r == '\t' {
			r = ' '
		}
		if unicode.IsControl(r) || r >= 0x80 && (unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) || unicode.Is(unicode.Variation_Selector, r)) {
			b.WriteString("‹U+" + strings.ToUpper(hex(r)) + "›")
			continue
		}
		b.WriteRune(r)
	}
	return secretText().ReplaceAllStringFunc(b.String(), mask)
}

func hex(r rune) string {
	const digits = "0123456789abcdef"
	out := ""
	for ; r > 0; r >>= 4 {
		out = string(digits[r&15]) + out
	}
	return strings.Repeat("0", max(0, 4-len(out))) + out
}

// match applies the rules of the table.
func (d document) match(table []compiled) []Finding {
	var all []Finding
	for _, r := range table {
		if r.where == scripts && !d.script || r.where == prose && d.script {
			continue
		}
		count := 0
		for _, w := range d.windows(r.hints) {
			for _, at := range r.pattern.FindAllStringIndex(d.folded[w[0]:w[1]], maxPerRule) {
				at[0], at[1] = at[0]+w[0], at[1]+w[0]
				if r.unless != nil && r.unless.MatchString(d.around(at)) {
					continue
				}
				if count++; count <= maxPerRule {
					all = append(all, d.finding(r, at))
				}
			}
			if count >= maxPerRule {
				break
			}
		}
	}
	return all
}

func (d document) finding(r compiled, at []int) Finding {
	severity := r.severity
	if r.quoted != "" && d.quoted(at[0]) {
		severity = r.quoted
	}
	hit := d.folded[at[0]:at[1]]
	line := d.line(at[0] + len(hit) - len(strings.TrimLeft(hit, " \t\n")))
	return Finding{Rule: r.id, Severity: severity, Path: d.path, Line: line, Message: r.about, Evidence: d.excerpt(line)}
}

// reach is how many lines around a hint a match may take.
const reach = 3

// windows are the stretches of the text that have one of the hints, with the
// lines around it; without hints the whole.
func (d document) windows(hints []string) [][2]int {
	if len(hints) == 0 {
		return [][2]int{{0, len(d.folded)}}
	}
	var rows []int
	for _, h := range hints {
		for from := 0; from < len(d.folded); {
			i := strings.Index(d.folded[from:], h)
			if i < 0 {
				break
			}
			row := d.row(from + i)
			rows = append(rows, row)
			from = d.end(row)
		}
	}
	slices.Sort(rows)
	var all [][2]int
	for _, row := range slices.Compact(rows) {
		from, to := d.starts[max(0, row-reach)], d.end(min(len(d.starts)-1, row+reach))
		if last := len(all) - 1; last >= 0 && from <= all[last][1] {
			all[last][1] = to
			continue
		}
		all = append(all, [2]int{from, to})
	}
	return all
}

// end is where a folded line ends, its line break included.
func (d document) end(row int) int {
	if row+1 < len(d.starts) {
		return d.starts[row+1]
	}
	return len(d.folded)
}

// around is a match with the rest of its lines.
func (d document) around(at []int) string {
	from := strings.LastIndexByte(d.folded[:at[0]], '\n') + 1
	to := strings.IndexByte(d.folded[at[1]:], '\n')
	if to < 0 {
		return d.folded[from:]
	}
	return d.folded[from : at[1]+to]
}

// quoted reports whether a place stands in quotation marks or in a code span,
// within its line: a text that speaks about a phrase rather than says it.
func (d document) quoted(at int) bool {
	from := strings.LastIndexByte(d.folded[:at], '\n') + 1
	before := d.folded[from:at]
	for _, mark := range []string{"`", `"`} {
		if strings.Count(before, mark)%2 == 1 {
			return true
		}
	}
	return strings.Count(before, "「") > strings.Count(before, "」") || strings.Count(before, "『") > strings.Count(before, "』")
}

// blob is base64 long enough to say something.
var blob = regexp.MustCompile(`[A-Za-z0-9+/]{40,}={0,2}`)

const maxBlobs = 50

// encoded looks into base64 that is text, once.
func (d document) encoded() []Finding {
	var all []Finding
	for i, line := range d.raw {
		for _, b := range blob.FindAllString(line, maxBlobs) {
			decoded, err := base64.StdEncoding.DecodeString(b + strings.Repeat("=", (4-len(b)%4)%4))
			if err != nil || !utf8.Valid(decoded) || strings.ContainsFunc(string(decoded), func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
				continue
			}
			for _, f := range read(d.path, string(decoded)).match(rules()) {
				if f.Severity.AtLeast(Medium) {
					f.Line, f.Message = i+1, "in base64: "+f.Message
					f.Severity = High
					all = append(all, f)
				}
			}
		}
	}
	return all
}

// scriptNames are the ends of names of files that are code.
var scriptNames = map[string]bool{".sh": true, ".bash": true, ".zsh": true, ".fish": true, ".py": true, ".js": true, ".mjs": true, ".cjs": true, ".ts": true, ".rb": true,
	".pl": true, ".php": true, ".ps1": true, ".psm1": true, ".bat": true, ".cmd": true, ".go": true, ".rs": true, ".lua": true, ".r": true, ".swift": true, ".java": true,
	".applescript": true, ".scpt": true, ".vbs": true, ".awk": true, ".c": true, ".cpp": true, ".cs": true, ".kt": true, ".tsx": true, ".jsx": true}

func isScript(name, text string) bool {
	return scriptNames[strings.ToLower(path.Ext(name))] || strings.HasPrefix(text, "#!") || path.Base(name) == "Makefile" || path.Base(name) == "Dockerfile"
}

// Plain is a text without what is not seen, on one line and cut to n bytes: for
// showing what strangers wrote.
func Plain(text string, n int) string {
	return strings.Join(strings.Fields(visible(strings.ReplaceAll(text, "\n", " "), n)), " ")
}
