package scan

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"pawgate/internal/skill"
)

// characters finds text that is not seen where it is read by a person.
func characters(name, text string) []Finding {
	var all []Finding
	once := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		add := func(rule string, s Severity, message string) {
			if once[rule]++; once[rule] <= maxPerRule {
				all = append(all, Finding{Rule: rule, Severity: s, Path: name, Line: i + 1, Message: message, Evidence: visible(line, maxEvidence)})
			}
		}
		hiddenIn(line, i == 0, add)
		if word := mixed(line); word != "" {
			add("hidden.mixed_script", Medium, fmt.Sprintf("the word %q mixes Latin letters with Cyrillic or Greek ones that look alike", word))
		}
	}
	return all
}

func hiddenIn(line string, first bool, add func(string, Severity, string)) {
	runes := []rune(line)
	tags, selectors, zero := 0, 0, 0
	for i, r := range runes {
		switch {
		case r == 0x1b, r == 0x9b:
			add("hidden.terminal", High, "an escape sequence changes what a terminal shows")
		case r < 0x20 && !unicode.IsSpace(r), r == 0x7f:
			add("hidden.control", Low, "a control character")
		case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			add("hidden.bidi", High, "a character turns the direction of the text, so that it is read otherwise than it looks")
		case r >= 0xE0000 && r <= 0xE007F:
			if !flag(runes, i) {
				tags++
			}
		case r >= 0xE0100 && r <= 0xE01EF, r >= 0xFE00 && r <= 0xFE0E:
			// One after a character chooses its form, as for Japanese names; more say something else.
			if i > 0 && unicode.Is(unicode.Variation_Selector, runes[i-1]) {
				selectors++
			}
		case r == 0xFEFF && first && i == 0:
		case r == 0x200B, r == 0x2060, r == 0xFEFF, r == 0x180E, r == 0x200C, r == 0x200D, r >= 0x2061 && r <= 0x2064:
			zero++
			if i > 0 && i+1 < len(runes) && latin(runes[i-1]) && latin(runes[i+1]) {
				add("hidden.zero_width", High, "a character without width divides a word, so that a search for it finds nothing")
			} else if i > 0 && zeroWidth(runes[i-1]) {
				selectors++
			}
		}
	}
	if tags > 0 {
		add("hidden.tags", Critical, "tag characters hold text that models read and people do not see: "+visible(spelled(runes), 80))
	}
	if selectors >= 3 {
		add("hidden.data", High, "a row of invisible characters holds data")
	}
}

func latin(r rune) bool { return r < 0x250 && unicode.IsLetter(r) }

func zeroWidth(r rune) bool {
	return r >= 0x200B && r <= 0x200D || r >= 0x2060 && r <= 0x2064 || r == 0xFEFF
}

// flag reports whether a tag character belongs to the flag of England,
// Scotland or Wales, the three that Unicode recommends.
func flag(runes []rune, i int) bool {
	start := i
	for start > 0 && runes[start-1] >= 0xE0020 && runes[start-1] <= 0xE007F {
		start--
	}
	if start == 0 || runes[start-1] != 0x1F3F4 {
		return false
	}
	name := ""
	for _, r := range runes[start:] {
		if r == 0xE007F {
			return name == "gbeng" || name == "gbsct" || name == "gbwls"
		}
		if r < 0xE0020 || r > 0xE007E || len(name) > 5 {
			return false
		}
		name += string(r - 0xE0000)
	}
	return false
}

func spelled(runes []rune) string {
	return strings.Map(func(r rune) rune {
		if r >= 0xE0020 && r <= 0xE007E {
			return r - 0xE0000
		}
		return -1
	}, string(runes))
}

// mixed is a word of Latin and lookalike letters; "" when there is none. A
// Greek letter at the edge of a word, as in μm or Δt, is a symbol.
func mixed(line string) string {
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return !unicode.IsLetter(r) }) {
		var hasLatin, hasOther bool
		runes := []rune(word)
		for i, r := range runes {
			switch {
			case unicode.Is(unicode.Latin, r):
				hasLatin = true
			case unicode.Is(unicode.Cyrillic, r):
				hasOther = hasOther || lookalikes[r] != 0
			case unicode.Is(unicode.Greek, r):
				hasOther = hasOther || i > 0 && i < len(runes)-1 && lookalikes[r] != 0
			}
		}
		if hasLatin && hasOther && len(runes) > 2 {
			return word
		}
	}
	return ""
}

// magic are the first bytes of files that nobody can read through.
var magic = []struct {
	bytes    string
	rule     string
	severity Severity
	what     string
}{
	{"\x7fELF", "file.program", High, "a compiled program"}, {"MZ", "file.program", High, "a compiled program"},
	{"\xcf\xfa\xed\xfe", "file.program", High, "a compiled program"}, {"\xce\xfa\xed\xfe", "file.program", High, "a compiled program"},
	{"\xca\xfe\xba\xbe", "file.program", High, "a compiled program"}, {"\x00asm", "file.program", High, "a compiled program"},
	{"PK\x03\x04", "file.archive", High, "an archive"}, {"\x1f\x8b", "file.archive", High, "an archive"}, {"7z\xbc\xaf", "file.archive", High, "an archive"},
	{"Rar!", "file.archive", High, "an archive"}, {"\xfd7zXZ", "file.archive", High, "an archive"}, {"BZh", "file.archive", High, "an archive"},
}

// office are archives by their form that are documents by their use.
var office = map[string]bool{".docx": true, ".xlsx": true, ".pptx": true, ".odt": true, ".ods": true, ".odp": true, ".epub": true}

// media are kinds of files that hold no text to look through.
var media = map[string]bool{".png": true, ".jpg": true, ".jpeg": true, ".gif": true, ".webp": true, ".ico": true, ".pdf": true, ".ttf": true, ".otf": true, ".woff": true,
	".woff2": true, ".mp3": true, ".mp4": true, ".wav": true, ".ogg": true, ".avif": true, ".bmp": true, ".tiff": true}

// binary judges a file that is no text.
func binary(f skill.File) ([]Finding, bool) {
	one := func(rule string, s Severity, message string) ([]Finding, bool) {
		return []Finding{{Rule: rule, Severity: s, Path: f.Path, Message: message}}, true
	}
	if utf8.Valid(f.Content) && bytes.IndexByte(f.Content, 0) < 0 && !strings.HasPrefix(string(f.Content), "PK\x03\x04") {
		return nil, false
	}
	ext := strings.ToLower(path.Ext(f.Path))
	for _, m := range magic {
		if !bytes.HasPrefix(f.Content, []byte(m.bytes)) {
			continue
		}
		if m.rule == "file.archive" && office[ext] {
			return one("file.document", Info, "an office document, which is not looked through")
		}
		return one(m.rule, m.severity, m.what+" cannot be looked through")
	}
	if scriptNames[ext] || ext == ".md" || ext == ".txt" {
		return one("file.not_text", High, "a file that should be text is none, so it cannot be looked through")
	}
	if ext == ".pyc" || ext == ".so" || ext == ".dll" || ext == ".jar" || ext == ".class" {
		return one("file.program", High, "a compiled program cannot be looked through")
	}
	if media[ext] {
		return nil, true
	}
	return one("file.binary", Medium, "a file of an unknown kind cannot be looked through")
}
