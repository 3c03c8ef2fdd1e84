package skill

import (
	"fmt"
	"strings"
)

// Rule is the stable token of a rule of the format.
type Rule string

// The rules. Those of the frontmatter are the specification's.
const (
	MainMissing          Rule = "skill_md_missing"
	MainTooLong          Rule = "skill_md_too_long"
	NotText              Rule = "skill_md_not_text"
	HeadMissing          Rule = "frontmatter_missing"
	HeadOpen             Rule = "frontmatter_not_closed"
	HeadTooLong          Rule = "frontmatter_too_long"
	HeadBroken           Rule = "frontmatter_not_yaml"
	HeadNoMapping        Rule = "frontmatter_not_a_mapping"
	FieldTwice           Rule = "field_twice"
	FieldUnknown         Rule = "field_unknown"
	NameMissing          Rule = "name_missing"
	NameType             Rule = "name_not_text"
	NameTooLong          Rule = "name_too_long"
	NameCase             Rule = "name_not_lower_case"
	NameEdge             Rule = "name_hyphen_at_edge"
	NameDouble           Rule = "name_double_hyphen"
	NameCharacters       Rule = "name_characters"
	NameFolder           Rule = "name_not_the_folder"
	DescriptionMissing   Rule = "description_missing"
	DescriptionType      Rule = "description_not_text"
	DescriptionTooLong   Rule = "description_too_long"
	LicenseType          Rule = "license_not_text"
	CompatibilityType    Rule = "compatibility_not_text"
	CompatibilityEmpty   Rule = "compatibility_empty"
	CompatibilityTooLong Rule = "compatibility_too_long"
	MetadataType         Rule = "metadata_not_a_mapping"
	MetadataValue        Rule = "metadata_value_not_text"
	MetadataTooMany      Rule = "metadata_too_many"
	ToolsType            Rule = "allowed_tools_not_text"
	BodyEmpty            Rule = "instructions_missing"
	PathUnsafe           Rule = "path_unsafe"
	PathTooLong          Rule = "path_too_long"
	PathTwice            Rule = "path_twice"
	NotAFile             Rule = "not_a_plain_file"
	NotRead              Rule = "not_read"
	FileTooLarge         Rule = "file_too_large"
	TotalTooLarge        Rule = "skill_too_large"
	TooManyFiles         Rule = "too_many_files"
	ArchiveBroken        Rule = "archive_broken"
)

// Problem is one rule that a skill breaks.
type Problem struct {
	Rule    Rule   `json:"rule"`
	Path    string `json:"path,omitzero"`
	Message string `json:"message"`
	// Advice is a rule of good style: the skill works all the same.
	Advice bool `json:"advice,omitzero"`
}

func problem(rule Rule, path, format string, args ...any) Problem {
	return Problem{Rule: rule, Path: shown(path), Message: fmt.Sprintf(format, args...)}
}

// Problems are all rules that a skill breaks. As an error they are those that
// matter.
type Problems []Problem

// Broken are the problems without the advice.
func (ps Problems) Broken() Problems {
	var broken Problems
	for _, p := range ps {
		if !p.Advice {
			broken = append(broken, p)
		}
	}
	return broken
}

// Has reports whether a rule is among the broken ones.
func (ps Problems) Has(rule Rule) bool {
	for _, p := range ps {
		if p.Rule == rule {
			return true
		}
	}
	return false
}

func (ps Problems) Error() string {
	broken := ps.Broken()
	const most = 5
	texts := []string{}
	for i, p := range broken {
		if i == most {
			texts = append(texts, fmt.Sprintf("and %d more", len(broken)-most))
			break
		}
		text := p.Message
		if p.Path != "" && p.Path != Main {
			text = p.Path + ": " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// shown is a path from outside, short and without what steers a terminal.
func shown(path string) string {
	path = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || hidden(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(path, "?"))
	if len(path) <= MaxPath {
		return path
	}
	return strings.ToValidUTF8(path[:MaxPath], "") + "…"
}
