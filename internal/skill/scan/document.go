package scan

import (
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"pawgate/internal/skill"
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
var comment = lazily(`^(?:(?:#+|//+|\*|>|--|;+|rem)\s+)+`)

func read(name, text string) document {
	d := document{path: name, script: isScript(name, text), raw: strings.Split(text, "\n")}
	d.read(text)
	return d
}

// read folds a spelling of the text, line by line as it stands in the file.
func (d *document) read(text string) {
	d.starts, d.number = nil, nil
	var b strings.Builder
	lines := strings.Split(fold(text), "\n")
	head := frontmatter(d.path, lines)
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if i < head {
			line = scalarQuote().ReplaceAllString(line, "$1")
		}
		if line = strings.TrimSpace(comment().ReplaceAllString(line, "")); line == "" {
			continue
		}
		d.starts, d.number = append(d.starts, b.Len()), append(d.number, i+1)
		b.WriteString(line)
		b.WriteByte('\n')
	}
	d.folded = b.String()
}

// scalarQuote begins a text of YAML, which quotes nobody.
var scalarQuote = lazily(`^([\w-]+:\s*|-\s+)["']`)

// frontmatter is the number of lines that the frontmatter of a SKILL.md has.
func frontmatter(name string, lines []string) int {
	if name != skill.Main || strings.TrimSpace(strings.TrimPrefix(lines[0], "\ufeff")) != "---" {
		return 0
	}
	for i, line := range lines[1:] {
		if strings.TrimSpace(line) == "---" {
			return i + 1
		}
	}
	return 0
}

// fold makes one text of those that a model reads alike. It keeps every line
// break, so that a place in it has a line.
func fold(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 || r == '\v' }) {
		return strings.ToLower(text)
	}
	text = strings.Map(func(r rune) rune {
		if r >= 0xE0020 && r <= 0xE007E {
			return r - 0xE0000 // what tag characters spell
		}
		return r
	}, text)
	var b strings.Builder
	b.Grow(len(text))
	plain := false // the character before takes no accents
	for _, r := range norm.NFKD.String(text) {
		switch {
		case r == '\v', r == 0x85, r >= 0x80 && unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp):
			r = ' '
		case r < 0x80:
		case invisible(r):
			continue
		case plain && unicode.Is(unicode.Mn, r):
			continue
		case r == '’' || r == '‘':
			r = '\''
		case r == '“' || r == '”':
			r = '"'
		default:
			r = ascii(r)
		}
		plain = r < 0x80 || unicode.In(r, unicode.Latin, unicode.Cyrillic, unicode.Greek)
		b.WriteRune(r)
	}
	return strings.ToLower(norm.NFC.String(b.String()))
}

// Looks is one text for all names that look alike.
func Looks(name string) string { return fold(name) }

// invisible are characters that show nothing, though some of them are letters
// or marks by their category.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// ascii is the Latin letter that a character looks like, or itself.
func ascii(r rune) rune {
	switch {
	case r >= 0x1F150 && r <= 0x1F169: // circled, white on black
		return 'a' + r - 0x1F150
	case r >= 0x1F170 && r <= 0x1F189: // squared
		return 'a' + r - 0x1F170
	case r >= 0x1F1E6 && r <= 0x1F1FF: // of flags
		return 'a' + r - 0x1F1E6
	}
	if l, ok := lookalikes()[r]; ok {
		return l
	}
	return r
}

// lookalikes are letters in the shape of Latin ones: Cyrillic, Greek, Armenian
// and small capitals. Only the folded text has them replaced, where a word in
// Russian matches no rule.
var lookalikes = lazyPairs(
	"аaеeоoрpсcуyхxіiѕsјjԁdһhԛqԝwӏlѵvАaВbЕeКkМmНhОoРpСcТtХxІiЅsЈjУy"+
		"οoαaνvρpιiκkτtυuχxεeϲcγyΑaΒbΕeΖzΗhΙiΚkΜmΝnΟoΡpΤtΥyΧxϹcϳj"+
		"ոnօoսuցgհh",
	"ᴀaʙbᴄcᴅdᴇeꜰfɢgʜhɪiᴊjᴋkʟlᴍmɴnᴏoᴘpꞯqʀrꜱsᴛtᴜuᴠvᴡwʏyᴢzıiɡgɑa")

func lazyPairs(texts ...string) func() map[rune]rune {
	return sync.OnceValue(func() map[rune]rune {
		m := map[rune]rune{}
		for _, text := range texts {
			runes := []rune(text)
			for i := 0; i+1 < len(runes); i += 2 {
				m[runes[i]] = runes[i+1]
			}
		}
		return m
	})
}

// lazily compiles an expression with the first scan, not when a function starts.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

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
			b.WriteString("‹U+" + strings.ToUpper(code(r)) + "›")
			continue
		}
		b.WriteRune(r)
	}
	return secretText().ReplaceAllStringFunc(b.String(), mask)
}

func code(r rune) string {
	const digits = "0123456789abcdef"
	out := ""
	for ; r > 0; r >>= 4 {
		out = string(digits[r&15]) + out
	}
	return strings.Repeat("0", max(0, 4-len(out))) + out
}

// match applies the rules of the table. All matches are looked at, however many
// come first that are quoted or excused; maxPerRule of a severity are listed.
func (d document) match(table []compiled) []Finding {
	var all []Finding
	for _, r := range table {
		if r.where == scripts && !d.script || r.where == prose && d.script {
			continue
		}
		count := map[Severity]int{}
		for _, w := range d.windows(r.hints) {
			if count[r.severity] >= maxPerRule {
				break
			}
			quotes := quotation{at: w[0]}
			for _, at := range r.pattern.FindAllStringIndex(d.folded[w[0]:w[1]], -1) {
				at[0], at[1] = at[0]+w[0], at[1]+w[0]
				if r.unless != nil && r.unless.MatchString(d.around(at)) {
					continue
				}
				severity := r.severity
				if r.quoted != "" && quotes.inside(d.folded, at[0]) {
					severity = r.quoted
				}
				if count[severity]++; count[severity] <= maxPerRule {
					all = append(all, d.finding(r, severity, at))
				}
			}
		}
	}
	return all
}

func (d document) finding(r compiled, severity Severity, at []int) Finding {
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

// near is how much of its line, in bytes, may excuse a match on either side: a
// "never" at the beginning of a long line is about something else.
const near = 120

// around is a match with what is near it on its lines.
func (d document) around(at []int) string {
	from := max(at[0]-near, strings.LastIndexByte(d.folded[max(0, at[0]-near):at[0]], '\n')+1+max(0, at[0]-near))
	rest := d.folded[at[1]:min(len(d.folded), at[1]+near)]
	if to := strings.IndexByte(rest, '\n'); to >= 0 {
		rest = rest[:to]
	}
	return d.folded[from:at[1]] + rest
}

// quotation knows whether places of a text, asked for in order, stand in
// quotation marks or in a code span within their line: a text that speaks about
// a phrase rather than says it.
type quotation struct {
	at           int
	tick, double bool
	corners      int
}

func (q *quotation) inside(text string, at int) bool {
	for _, r := range text[q.at:at] {
		switch r {
		case '\n':
			*q = quotation{}
		case '`':
			q.tick = !q.tick
		case '"':
			q.double = !q.double
		case '「', '『':
			q.corners++
		case '」', '』':
			q.corners--
		}
	}
	q.at = at
	return q.tick || q.double || q.corners > 0
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
