package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"pawgate/internal/near"
	"pawgate/internal/tool"
)

// operand is an argument that stands on the command line without a flag.
type operand struct {
	word     string // as the help text names it
	argument string // in the schema
	optional bool
	many     bool // takes all that is left
}

// parsed is a command line of an operator's command.
type parsed struct {
	args  map[string]any // the command's JSON arguments
	json  bool
	stack string
}

// parse reads a command line against a schema: what is no operand is a flag.
func parse(schema *tool.Schema, operands []operand, line []string) (parsed, error) {
	p := parsed{args: map[string]any{}}
	set := flagSet(schema, operands, &p)
	words, err := interspersed(set, line)
	if err != nil {
		return p, flagError(set, err)
	}
	if err := p.fill(operands, words); err != nil {
		return p, err
	}
	for _, o := range operands {
		text, given := p.args[o.argument].(string)
		property := schema.Property(o.argument)
		if given && property != nil && slices.Contains(property.Types, "object") && (!json.Valid([]byte(text)) || strings.TrimSpace(text)[0] != '{') {
			return p, usagef("%s must be one JSON object in quotes, such as '{\"query\":\"backup\"}'", o.word)
		}
	}
	for _, property := range flagProperties(schema, operands) {
		if _, given := p.args[property.Name]; !given && slices.Contains(schema.Required, property.Name) {
			return p, usagef("--%s is missing; --help tells more", flagName(property.Name))
		}
	}
	return p, nil
}

// parseFlags reads the line of a command that has flags alone and no schema.
func parseFlags(set *flag.FlagSet, line []string) error {
	set.SetOutput(io.Discard)
	if err := set.Parse(line); err != nil {
		return flagError(set, err)
	}
	if set.NArg() > 0 {
		return wrongArguments(set.Name(), set.Args())
	}
	return nil
}

// flagError tells a wish for help from a mistake, which package flag words
// with one dash and without a way out.
func flagError(set *flag.FlagSet, err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return errHelp
	}
	text := err.Error()
	if name, ok := strings.CutPrefix(text, notDefined); ok {
		name = "--" + strings.TrimLeft(name, "-")
		var known []string
		set.VisitAll(func(f *flag.Flag) { known = append(known, "--"+f.Name) })
		return usagef("unknown flag %s%s; --help tells more", name, near.DidYouMean(name, known))
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return usagef("--%s needs a value; --help tells more", name)
	}
	if m := badValue.FindStringSubmatch(text); m != nil {
		return usagef("--%s cannot be %s: %s", m[2], m[1], cmp.Or(strings.TrimPrefix(m[3], "parse error"), "--help tells more"))
	}
	return usageError{text}
}

// What package flag says.
const notDefined = "flag provided but not defined: -"

var badValue = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([^:]+): (.*)$`)

func flagSet(schema *tool.Schema, operands []operand, p *parsed) *flag.FlagSet {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.BoolVar(&p.json, "json", false, "")
	set.StringVar(&p.stack, "stack", "", "")
	for _, property := range flagProperties(schema, operands) {
		set.Var(&value{schema: property.Schema, name: property.Name, args: p.args}, flagName(property.Name), "")
	}
	return set
}

// flagProperties are the arguments that are given by flag.
func flagProperties(schema *tool.Schema, operands []operand) []tool.Property {
	return slices.DeleteFunc(slices.Clone(schema.Properties), func(p tool.Property) bool {
		return slices.ContainsFunc(operands, func(o operand) bool { return o.argument == p.Name })
	})
}

func flagName(argument string) string { return strings.ReplaceAll(argument, "_", "-") }

// interspersed parses flags wherever they stand, which package flag alone does
// not, and gives the words between them. After "--" everything is a word.
func interspersed(set *flag.FlagSet, line []string) ([]string, error) {
	var words, verbatim []string
	if i := slices.Index(line, "--"); i >= 0 {
		line, verbatim = line[:i], line[i+1:]
	}
	for {
		if err := set.Parse(line); err != nil {
			// What was read is gone from the rest, so the culprit stands before it.
			at := len(line) - set.NArg() - 1
			if strings.HasPrefix(err.Error(), notDefined) && number(line[at]) {
				words, line = append(words, line[at]), line[at+1:]
				continue
			}
			return nil, err
		}
		if set.NArg() == 0 {
			return append(words, verbatim...), nil
		}
		words = append(words, set.Arg(0))
		line = set.Args()[1:]
	}
}

// number reports whether a word that looks like a flag is a negative number,
// such as the id of a group on Telegram: no flag begins with a digit.
func number(word string) bool {
	return len(word) > 1 && word[0] == '-' && '0' <= word[1] && word[1] <= '9'
}

// fill puts the operands among the arguments.
func (p parsed) fill(operands []operand, words []string) error {
	for _, o := range operands {
		switch {
		case len(words) == 0 && o.optional:
			return nil
		case len(words) == 0:
			return usagef("%s is missing; --help tells more", o.word)
		case o.many:
			p.args[o.argument] = words
			return nil
		}
		p.args[o.argument] = words[0]
		words = words[1:]
	}
	if len(words) > 0 {
		return usagef("do not know what to do with %q; --help tells more", words[0])
	}
	return nil
}

// value is a flag that writes one argument, typed as the schema says.
type value struct {
	schema *tool.Schema
	name   string
	args   map[string]any
}

func (v *value) String() string { return "" }

// IsBoolFlag lets --remove stand without a value.
func (v *value) IsBoolFlag() bool {
	return v.schema != nil && slices.Contains(v.schema.Types, "boolean")
}

// Set takes one value of the flag. A list grows with every use, and takes
// several at once between commas.
func (v *value) Set(text string) error {
	switch {
	case v.IsBoolFlag():
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("it is true or false")
		}
		v.args[v.name] = b
	case slices.Contains(v.schema.Types, "array"):
		before, _ := v.args[v.name].([]string)
		v.args[v.name] = append(before, strings.Split(text, ",")...)
	case slices.Contains(v.schema.Types, "integer"):
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("it is a whole number")
		}
		v.args[v.name] = n
	default:
		v.args[v.name] = text
	}
	return nil
}

// asTyped puts the words of the command line into a sentence about an argument:
// --per-minute for per_minute. A name without an underscore may be just a word.
func asTyped(err error, schema *tool.Schema, operands []operand) error {
	if usage := new(usageError); !errors.As(err, usage) {
		return err
	}
	var names []string
	for _, o := range operands {
		names = append(names, o.argument, o.word)
	}
	for _, p := range flagProperties(schema, operands) {
		names = append(names, p.Name, "--"+flagName(p.Name))
	}
	text := err.Error()
	for pair := range slices.Chunk(names, 2) {
		if strings.Contains(pair[0], "_") {
			text = regexp.MustCompile(`\b`+regexp.QuoteMeta(pair[0])+`\b`).ReplaceAllLiteralString(text, pair[1])
		}
	}
	return usageError{text}
}

// usageLine is what follows the name in the help text.
func usageLine(schema *tool.Schema, operands []operand) string {
	var words []string
	for _, o := range operands {
		word := o.word
		if o.many {
			word += "..."
		}
		if o.optional {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	if len(flagProperties(schema, operands)) > 0 {
		words = append(words, "[flags]")
	}
	return strings.Join(append(words, "[--json] [--stack NAME]"), " ")
}

// describe lists operands and flags for the help text.
func describe(schema *tool.Schema, operands []operand) string {
	var out strings.Builder
	t := tabwriter.NewWriter(&out, 0, 4, 2, ' ', 0)
	for _, o := range operands {
		if property := schema.Property(o.argument); property != nil {
			fmt.Fprintf(t, "  %s\t%s\n", o.word, property.Description)
		}
	}
	for _, p := range flagProperties(schema, operands) {
		about := p.Schema.Description
		if len(p.Schema.Enum) > 0 {
			about += " (" + strings.Join(p.Schema.Enum, ", ") + ")"
		}
		fmt.Fprintf(t, "  --%s\t%s\n", flagName(p.Name), about)
	}
	fmt.Fprint(t, "  --json\tPrint the bare result\n  --stack NAME\tRun on this deployment, by its admin function\n")
	t.Flush()
	return out.String()
}
