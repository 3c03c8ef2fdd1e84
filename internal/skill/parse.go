package skill

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"gopkg.in/yaml.v3"
)

// Parse reads a skill from its files. folder is the name of the folder it
// stands in; "" leaves the rule out that both are equal. Every rule that is
// broken is in the problems, not the first alone: one bad field takes no other
// with it.
func Parse(folder string, files []File) (Skill, Problems) {
	ps := checkFiles(files)
	if len(ps) > 0 {
		return Skill{}, ps // nothing of it is looked at further
	}
	s := Skill{Files: slices.Clone(files), Metadata: map[string]string{}}
	slices.SortFunc(s.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	file := s.Find(Main)
	switch {
	case file == nil:
		if slices.ContainsFunc(files, func(f File) bool { return strings.EqualFold(f.Path, Main) }) {
			return Skill{}, Problems{problem(MainMissing, Main, "the file is called SKILL.md, in upper case")}
		}
		return Skill{}, Problems{problem(MainMissing, Main, "the folder has no SKILL.md")}
	case len(file.Content) > MaxMain:
		return Skill{}, Problems{problem(MainTooLong, Main, "SKILL.md has %d bytes; at most %d are taken, so move parts to references/", len(file.Content), MaxMain)}
	case !utf8.Valid(file.Content) || bytes.IndexByte(file.Content, 0) >= 0:
		return Skill{}, Problems{problem(NotText, Main, "SKILL.md is not UTF-8 text")}
	}
	head, body, p := split(string(file.Content))
	if p != nil {
		return Skill{}, Problems{*p}
	}
	s.Body = body
	ps = s.readHead(head)
	ps = append(ps, s.checkName(folder)...)
	ps = append(ps, s.checkRest()...)
	return s, ps
}

// split cuts the frontmatter from the instructions.
func split(text string) (head, body string, p *Problem) {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	fail := func(rule Rule, format string, args ...any) (string, string, *Problem) {
		p := problem(rule, Main, format, args...)
		return "", "", &p
	}
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return fail(HeadMissing, "SKILL.md must begin with a line ---, and YAML between it and the next such line")
	}
	at := 0
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, " \t\n") == "---" {
			if at > maxHead {
				return fail(HeadTooLong, "the frontmatter has %d bytes; at most %d are taken", at, maxHead)
			}
			return rest[:at], strings.TrimSpace(rest[at+len(line):]), nil
		}
		at += len(line)
	}
	return fail(HeadOpen, "the frontmatter is not closed by a line ---")
}

// fields are the keys that the specification knows.
var fields = []string{"name", "description", "license", "compatibility", "metadata", "allowed-tools"}

// readHead reads each field for itself.
func (s *Skill) readHead(head string) Problems {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(head), &doc); err != nil {
		return Problems{problem(HeadBroken, Main, "the frontmatter is not YAML: %s", strings.TrimPrefix(shown(err.Error()), "yaml: "))}
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return Problems{problem(HeadNoMapping, Main, "the frontmatter must be a YAML mapping, such as name: my-skill")}
	}
	var ps Problems
	seen := map[string]bool{}
	pairs := doc.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		key, value := pairs[i].Value, pairs[i+1]
		switch {
		case seen[key]:
			ps = append(ps, problem(FieldTwice, Main, "the field %s stands in the frontmatter twice", shown(key)))
			continue
		case !slices.Contains(fields, key):
			p := problem(FieldUnknown, Main, "the field %s is not one of the specification's (%s); put it under metadata", shown(key), strings.Join(fields, ", "))
			p.Advice = true
			ps = append(ps, p)
			continue
		}
		seen[key] = true
		ps = append(ps, s.readField(key, value)...)
	}
	if !seen["name"] {
		ps = append(ps, problem(NameMissing, Main, "the field name is missing"))
	}
	if !seen["description"] {
		ps = append(ps, problem(DescriptionMissing, Main, "the field description is missing"))
	}
	return ps
}

func (s *Skill) readField(key string, value *yaml.Node) Problems {
	text, isText := scalar(value)
	switch key {
	case "name":
		if !isText {
			return Problems{problem(NameType, Main, "the field name must be a text")}
		}
		s.Name = norm.NFKC.String(strings.TrimSpace(text))
		if s.Name == "" {
			return Problems{problem(NameMissing, Main, "the field name is empty")}
		}
	case "description":
		if !isText {
			return Problems{problem(DescriptionType, Main, "the field description must be a text; quote it when it holds a colon or begins with [ or {")}
		}
		s.Description = strings.TrimSpace(text)
		if s.Description == "" {
			return Problems{problem(DescriptionMissing, Main, "the field description is empty")}
		}
	case "license":
		if !isText {
			return Problems{problem(LicenseType, Main, "the field license must be a text")}
		}
		s.License = strings.TrimSpace(text)
	case "compatibility":
		if !isText {
			return Problems{problem(CompatibilityType, Main, "the field compatibility must be a text")}
		}
		s.Compatibility = strings.TrimSpace(text)
		if s.Compatibility == "" {
			return Problems{problem(CompatibilityEmpty, Main, "the field compatibility must have 1 to %d characters, or be left out", maxCompat)}
		}
	case "metadata":
		return s.readMetadata(value)
	case "allowed-tools":
		return s.readTools(value)
	}
	return nil
}

// scalar is the text of a YAML scalar as it is written: 1.0 stays 1.0.
func scalar(n *yaml.Node) (string, bool) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", false
	}
	if n.Tag == "!!null" {
		return "", true
	}
	return n.Value, true
}

func (s *Skill) readMetadata(n *yaml.Node) Problems {
	if n.Kind != yaml.MappingNode {
		return Problems{problem(MetadataType, Main, "the field metadata must be a mapping from texts to texts")}
	}
	var ps Problems
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, n.Content[i+1]
		text, isText := scalar(value)
		if !isText {
			list, ok := texts(value)
			if key != "tags" || !ok {
				ps = append(ps, problem(MetadataValue, Main, "metadata.%s must be a text", shown(key)))
				continue
			}
			text = strings.Join(list, " ") // written so by many, and plain in meaning
		}
		s.Metadata[key] = text
	}
	if len(s.Metadata) > maxMetadata {
		ps = append(ps, problem(MetadataTooMany, Main, "metadata has %d entries; at most %d are taken", len(s.Metadata), maxMetadata))
		s.Metadata = map[string]string{}
	}
	return ps
}

// readTools takes a text with blanks between, or a list of texts.
func (s *Skill) readTools(n *yaml.Node) Problems {
	if text, ok := scalar(n); ok {
		s.AllowedTools = toolWords(text)
		return nil
	}
	list, ok := texts(n)
	if !ok {
		return Problems{problem(ToolsType, Main, "the field allowed-tools must be a text with blanks between the tools, or a list of texts")}
	}
	s.AllowedTools = list
	return nil
}

func texts(n *yaml.Node) ([]string, bool) {
	if n.Kind != yaml.SequenceNode {
		return nil, false
	}
	var list []string
	for _, item := range n.Content {
		text, ok := scalar(item)
		if !ok {
			return nil, false
		}
		list = append(list, text)
	}
	return list, true
}

// toolWords cuts at blanks and commas outside of parentheses: "Bash(git add:*) Read".
func toolWords(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth <= 0 && (r == ' ' || r == ',' || r == '\n' || r == '\t')
	})
}

// checkName applies the rules of the field name.
func (s *Skill) checkName(folder string) Problems {
	if s.Name == "" {
		return nil // said already
	}
	ps := CheckName(s.Name)
	if folder != "" && norm.NFKC.String(folder) != s.Name {
		ps = append(ps, problem(NameFolder, Main, "the folder is called %q; it must have the skill's name, %q", shown(folder), shown(s.Name)))
	}
	return ps
}

// CheckName applies the specification's rules of a name, without that of the
// folder. Letters of every script are letters, as in its reference validator.
func CheckName(name string) Problems {
	var ps Problems
	if n := utf8.RuneCountInString(name); n > maxName {
		ps = append(ps, problem(NameTooLong, Main, "the name has %d characters; at most %d are allowed", n, maxName))
	}
	if name != strings.ToLower(name) {
		ps = append(ps, problem(NameCase, Main, "the name must be in lower case"))
	}
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") {
		ps = append(ps, problem(NameEdge, Main, "the name must not begin or end with a hyphen"))
	}
	if strings.Contains(name, "--") {
		ps = append(ps, problem(NameDouble, Main, "the name must not have two hyphens in a row"))
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r != '-' && !nameRune(r) }) {
		ps = append(ps, problem(NameCharacters, Main, "the name may have letters, digits and hyphens only"))
	} else if mixedScripts(name) {
		ps = append(ps, problem(NameCharacters, Main, "the name mixes Latin letters with Cyrillic or Greek ones, which look alike"))
	} else if device.MatchString(name) {
		ps = append(ps, problem(NameCharacters, Main, "the name is a device on Windows, so that no folder can have it"))
	}
	return ps
}

// nameRune is a letter, digit or mark that is seen: some that are not are
// letters or marks by their category, so that two names would look like one.
func nameRune(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)) && !hidden(r)
}

func mixedScripts(name string) bool {
	has := func(t *unicode.RangeTable) bool {
		return strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(t, r) })
	}
	return has(unicode.Latin) && (has(unicode.Cyrillic) || has(unicode.Greek)) || has(unicode.Cyrillic) && has(unicode.Greek)
}

// checkRest applies the rules of the other fields and of the instructions.
func (s *Skill) checkRest() Problems {
	var ps Problems
	if n := utf8.RuneCountInString(s.Description); n > maxAbout {
		ps = append(ps, problem(DescriptionTooLong, Main, "the description has %d characters; at most %d are allowed", n, maxAbout))
	}
	if n := utf8.RuneCountInString(s.Compatibility); n > maxCompat {
		ps = append(ps, problem(CompatibilityTooLong, Main, "compatibility has %d characters; at most %d are allowed", n, maxCompat))
	}
	advise := func(rule Rule, format string, args ...any) {
		p := problem(rule, Main, format, args...)
		p.Advice = true
		ps = append(ps, p)
	}
	if s.Body == "" {
		advise(BodyEmpty, "SKILL.md has no instructions below its frontmatter")
	}
	if n := strings.Count(s.Body, "\n") + 1; n > maxLines {
		advise(MainTooLong, "the instructions have %d lines; the specification recommends fewer than %d, with the rest in references/", n, maxLines)
	}
	return ps
}

// Write is the text of a SKILL.md with these fields, which Parse reads back.
func Write(s Skill) ([]byte, error) {
	head := yaml.Node{Kind: yaml.MappingNode}
	add := func(key string, value any) error {
		var k, v yaml.Node
		if err := k.Encode(key); err != nil {
			return err
		}
		if err := v.Encode(value); err != nil {
			return err
		}
		head.Content = append(head.Content, &k, &v)
		return nil
	}
	for _, f := range []struct {
		key   string
		value string
	}{{"name", s.Name}, {"description", s.Description}, {"license", s.License}, {"compatibility", s.Compatibility},
		{"allowed-tools", strings.Join(s.AllowedTools, " ")}} {
		if f.value != "" {
			if err := add(f.key, f.value); err != nil {
				return nil, err
			}
		}
	}
	if len(s.Metadata) > 0 {
		if err := add("metadata", maps.Clone(s.Metadata)); err != nil {
			return nil, err
		}
	}
	text, err := yaml.Marshal(&head)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte("---\n"), text, []byte("---\n\n"), []byte(s.Body), []byte("\n")), nil
}
