package scan

import (
	"fmt"
	"strings"
	"unicode"
)

// characters finds text that is not seen where it is read by a person.
func characters(name, text string) []Finding {
	var all []Finding
	once := map[string]int{}
	selectors := 0 // of the whole file: a few on each line hold as much
	for i, line := range strings.Split(text, "\n") {
		add := func(rule string, s Severity, message string) {
			if once[rule]++; once[rule] <= maxPerRule {
				all = append(all, Finding{Rule: rule, Severity: s, Path: name, Line: i + 1, Message: message, Evidence: visible(line, maxEvidence)})
			}
		}
		hiddenIn(line, i == 0, &selectors, add)
		if word := mixed(line); word != "" {
			add("hidden.mixed_script", Medium, fmt.Sprintf("the word %q mixes Latin letters with Cyrillic or Greek ones that look alike", word))
		}
	}
	return all
}

// Invisible characters that follow another are data from so many on, in a line
// and in a file. Fewer come with what is copied from pages.
const (
	mostInLine = 3
	mostInFile = 12
)

func hiddenIn(line string, first bool, total *int, add func(string, Severity, string)) {
	runes := []rune(line)
	tags, before := 0, *total
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
				*total++
			}
		case r == 0xFEFF && first && i == 0:
		case zeroWidth(r):
			if i > 0 && i+1 < len(runes) && latin(runes[i-1]) && latin(runes[i+1]) {
				add("hidden.zero_width", High, "a character without width divides a word, so that a search for it finds nothing")
			} else if i > 0 && zeroWidth(runes[i-1]) {
				*total++
			}
		}
	}
	if tags > 0 {
		add("hidden.tags", Critical, "tag characters hold text that models read and people do not see: "+visible(spelled(runes), 80))
	}
	if here := *total - before; here >= mostInLine || here > 0 && *total >= mostInFile {
		add("hidden.data", High, "a row of invisible characters holds data")
	}
}

func latin(r rune) bool { return r < 0x250 && unicode.IsLetter(r) }

func zeroWidth(r rune) bool {
	return r >= 0x200B && r <= 0x200D || r >= 0x2060 && r <= 0x2064 || r == 0xFEFF || r == 0x180E || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// maxFlag is the most tag characters that a flag has.
const maxFlag = 6

// flag reports whether a tag character belongs to the flag of England,
// Scotland or Wales, the three that Unicode recommends.
func flag(runes []rune, i int) bool {
	start := i
	for start > 0 && start > i-maxFlag && runes[start-1] >= 0xE0020 && runes[start-1] <= 0xE007F {
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
				hasOther = hasOther || lookalikes()[r] != 0
			case unicode.Is(unicode.Greek, r):
				hasOther = hasOther || i > 0 && i < len(runes)-1 && lookalikes()[r] != 0
			}
		}
		if hasLatin && hasOther && len(runes) > 2 {
			return word
		}
	}
	return ""
}
