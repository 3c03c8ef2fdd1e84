package skill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"gopkg.in/yaml.v3"
)

// Adapt makes a skill of another program fit the format, as far as that takes
// no judgement: Claude Code and DuDuClaw take the name from the folder where
// the frontmatter has none or another, need no description and no frontmatter,
// and allow upper case and underscores. It gives the name that the folder gets,
// the files with SKILL.md changed, and what was changed. What it cannot mend is
// left for Parse to tell.
func Adapt(folder string, files []File) (name string, adapted []File, notes []string) {
	name = Name(folder)
	at := slices.IndexFunc(files, func(f File) bool { return f.Path == Main })
	if name == "" || at < 0 || !text(files[at].Content) {
		return folder, files, nil
	}
	if name != folder {
		notes = append(notes, fmt.Sprintf("the folder %q becomes %q", shown(folder), name))
	}
	content, changed := adaptMain(name, strings.ReplaceAll(string(files[at].Content), "\r\n", "\n"))
	if len(changed) == 0 {
		return name, files, notes
	}
	adapted = slices.Clone(files)
	adapted[at].Content = []byte(content)
	return name, adapted, append(notes, changed...)
}

// Name is what a folder's name becomes within the rules of names; "" when
// nothing of it is left.
func Name(folder string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), r == '_', r == '.', r == '-':
			return '-'
		case nameRune(r):
			return r
		}
		return -1
	}, strings.ToLower(norm.NFKC.String(folder)))
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	if utf8.RuneCountInString(name) > maxName {
		name = string([]rune(name)[:maxName])
	}
	if name = strings.Trim(name, "-"); len(CheckName(name)) > 0 {
		return ""
	}
	return name
}

// nameLine is the field name on a line of its own, as nearly everybody writes it.
var nameLine = regexp.MustCompile(`(?m)^name[ \t]*:[^\n|>]*$`)

// emptyLine is a description that says nothing.
var emptyLine = regexp.MustCompile(`(?m)^description[ \t]*:[ \t]*(?:""|'')?[ \t]*$`)

const noDescription = "SKILL.md had no description; it is its first paragraph"

func adaptMain(name, content string) (string, []string) {
	content = strings.TrimPrefix(content, "\ufeff")
	head, body, problem := split(content)
	if problem != nil {
		if problem.Rule != HeadMissing {
			return "", nil
		}
		about := firstParagraph(content, name)
		return "---\nname: " + name + "\ndescription: " + quoted(about) + "\n---\n\n" + strings.TrimLeft(content, "\n"),
			[]string{"SKILL.md had no frontmatter; it has a name and, from its first paragraph, a description"}
	}
	var fields struct {
		Name        yaml.Node
		Description yaml.Node
	}
	if yaml.Unmarshal([]byte(head), &fields) != nil {
		return "", nil
	}
	fresh := head
	var notes []string
	was, isText := scalar(&fields.Name)
	switch {
	case fields.Name.IsZero():
		fresh = "name: " + name + "\n" + fresh
		notes = append(notes, "SKILL.md had no name")
	case isText && norm.NFKC.String(strings.TrimSpace(was)) != name && len(nameLine.FindAllString(head, -1)) == 1:
		fresh = nameLine.ReplaceAllLiteralString(fresh, "name: "+name)
		notes = append(notes, fmt.Sprintf("the name %q becomes the folder's, %q", shown(was), name))
	}
	about, isText := scalar(&fields.Description)
	switch line := "description: " + quoted(firstParagraph(body, name)); {
	case fields.Description.IsZero():
		fresh += line + "\n"
		notes = append(notes, noDescription)
	case isText && strings.TrimSpace(about) == "" && len(emptyLine.FindAllString(head, -1)) == 1:
		fresh = emptyLine.ReplaceAllLiteralString(fresh, line)
		notes = append(notes, noDescription)
	}
	if len(notes) == 0 {
		return content, nil
	}
	at := strings.IndexByte(content, '\n') + 1
	return content[:at] + fresh + content[at+len(head):], notes
}

// firstParagraph is the first text of instructions that is no heading.
func firstParagraph(body, otherwise string) string {
	for part := range strings.SplitSeq(body, "\n\n") {
		part = strings.Join(strings.Fields(part), " ")
		if part == "" || strings.HasPrefix(part, "#") || strings.HasPrefix(part, "```") {
			continue
		}
		if runes := []rune(part); len(runes) > maxAbout {
			return string(runes[:maxAbout])
		}
		return part
	}
	return otherwise
}

// quoted is a text as YAML takes it whatever it holds: JSON is YAML.
func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""` // no text fails to be encoded
	}
	return strings.TrimSpace(b.String())
}
