package main

import (
	"go/build"
	"go/token"
	"io"
	"regexp"
	"slices"
	"strings"

	"pawgate/internal/category"
)

// request is what to add.
type request struct{ name, category, verb string }

// verbs are the functions of package tool that declare a row.
func verbs() map[string]string {
	return map[string]string{"read": "Read", "write": "Write", "destroy": "Destroy"}
}

var toolName = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// maxName is the longest name that package tool takes: model providers allow
// 64 characters, "mcp__pawgate__" included.
const maxName = 64 - len("mcp__pawgate__")

// check says what is wrong with the request and what would be right.
func (r request) check() error {
	const example = "such as: make tool NAME=weather_today CATEGORY=web VERB=read"
	switch {
	case r.name == "":
		return usagef("NAME is missing, %s", example)
	case !toolName.MatchString(r.name):
		return usagef("NAME %q is not snake_case: small letters and digits, words joined by one _, a letter first, %s", r.name, example)
	case len(r.name) > maxName:
		return usagef("NAME %q has %d characters; at most %d fit into what model providers allow", r.name, len(r.name), maxName)
	}
	if err := r.checkCategory(); err != nil {
		return err
	}
	if _, ok := verbs()[r.verb]; !ok {
		return usagef("VERB %q is none of read (changes nothing), write (adds or changes) and destroy (removes, or cannot be undone)", r.verb)
	}
	for _, c := range category.All(category.Deps{}) {
		for _, t := range c.Tools {
			if t.Name == r.name {
				return usagef("NAME %s is taken by a tool of category %s; choose another", r.name, c.Name)
			}
		}
	}
	return nil
}

func (r request) checkCategory() error {
	var names []string
	for _, row := range category.Rows() {
		names = append(names, row.Name)
	}
	if !slices.Contains(names, r.category) {
		return usagef("CATEGORY %q does not exist; there are %s", r.category, strings.Join(names, ", "))
	}
	return nil
}

// stem is the tool's name without its category, which names its files and its
// handler.
func (r request) stem() string {
	rest, ok := strings.CutPrefix(r.name, r.category+"_")
	if !ok || rest[0] < 'a' {
		return r.name
	}
	return rest
}

// file is the name of the tool's files without the ending. The go command
// reads more into some endings than a tool's author means: page_js.go is for
// GOOS=js alone, load_test.go is a test.
func (r request) file() string {
	stem := r.stem()
	nowhere := build.Context{GOOS: "none", GOARCH: "none", Compiler: "gc", OpenFile: func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("package p\n")), nil
	}}
	everywhere, err := nowhere.MatchFile("", stem+".go")
	if err != nil || !everywhere || strings.HasSuffix(stem, "_test") {
		return stem + "_tool"
	}
	return stem
}

// identifiers are the names to try for the handler, the best first.
func (r request) identifiers() []string {
	names := []string{camel(r.stem()), camel(r.name), camel(r.name) + "Tool"}
	return slices.DeleteFunc(slices.Compact(names), token.IsKeyword)
}

// camel turns weather_today into weatherToday.
func camel(snake string) string {
	words := strings.Split(snake, "_")
	for i, word := range words[1:] {
		words[i+1] = title(word)
	}
	return strings.Join(words, "")
}

// initialisms are written in capitals in Go.
var initialisms = regexp.MustCompile(`^(api|html|http|id|ip|json|pdf|sql|url)$`)

func title(word string) string {
	if initialisms.MatchString(word) {
		return strings.ToUpper(word)
	}
	return strings.ToUpper(word[:1]) + word[1:]
}
