package skill

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// device names mean a device on Windows, with any extension.
var device = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\.|$)`)

// checkPath refuses a path that is not plainly inside the skill's folder on
// every system: absolute, with a drive or backslash, with "..", "." or empty
// parts, device names, parts that Windows would shorten, hidden characters.
func checkPath(path string) (Problem, bool) {
	unsafe := func(why string) (Problem, bool) {
		return problem(PathUnsafe, path, "the path %q %s", shown(path), why), false
	}
	switch {
	case path == "":
		return unsafe("is empty")
	case !utf8.ValidString(path):
		return unsafe("is not UTF-8")
	case len(path) > MaxPath:
		return problem(PathTooLong, path, "the path has %d bytes; at most %d are taken", len(path), MaxPath), false
	case strings.ContainsAny(path, "\\:*?\"<>|"):
		return unsafe(`has one of \ : * ? " < > |, which mean something else on some systems`)
	case strings.HasPrefix(path, "/"):
		return unsafe("is absolute")
	case strings.ContainsFunc(path, func(r rune) bool { return unicode.IsControl(r) || hidden(r) }):
		return unsafe("has an invisible character")
	}
	parts := strings.Split(path, "/")
	if len(parts) > MaxDepth {
		return problem(PathTooLong, path, "the path is %d levels deep; at most %d are taken", len(parts), MaxDepth), false
	}
	for _, part := range parts {
		switch {
		case part == "":
			return unsafe("has an empty part")
		case part == "." || part == "..":
			return unsafe("leads out of the skill's folder")
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") || strings.HasPrefix(part, " "):
			return unsafe("has a part that begins or ends in a blank, or ends in a dot")
		case device.MatchString(part):
			return unsafe("names a device on Windows")
		case strings.EqualFold(part, ".git"):
			return unsafe("is inside .git")
		}
	}
	return Problem{}, true
}

// hidden are characters that change a text without being seen.
func hidden(r rune) bool {
	return r >= 0x80 && unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// checkFiles applies the bounds and the rules of paths. Two paths that are one
// file on a system that ignores case or composition are refused, and so is a
// file where another path needs a folder.
func checkFiles(files []File) Problems {
	var ps Problems
	if len(files) > MaxFiles {
		ps = append(ps, problem(TooManyFiles, "", "the skill has %d files; at most %d are taken", len(files), MaxFiles))
	}
	total := 0
	seen := map[string]bool{}
	for _, f := range files {
		if p, ok := checkPath(f.Path); !ok {
			ps = append(ps, p)
			continue
		}
		total += len(f.Content)
		if len(f.Content) > MaxFile {
			ps = append(ps, problem(FileTooLarge, f.Path, "the file has %d bytes; at most %d are taken", len(f.Content), MaxFile))
		}
		key := strings.ToLower(norm.NFKC.String(f.Path))
		if seen[key] {
			ps = append(ps, problem(PathTwice, f.Path, "the path occurs twice, or differs from another only in case"))
		}
		seen[key] = true
	}
	for key := range seen {
		for i := range len(key) {
			if key[i] == '/' && seen[key[:i]] {
				ps = append(ps, problem(PathTwice, key, "%q is a file and a folder", shown(key[:i])))
			}
		}
	}
	if total > MaxTotal {
		ps = append(ps, problem(TotalTooLarge, "", "the skill has %d bytes; at most %d are taken", total, MaxTotal))
	}
	slices.SortFunc(ps, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return ps
}
