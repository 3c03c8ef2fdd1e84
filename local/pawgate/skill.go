package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"pawgate/internal/plural"
	"pawgate/internal/skill"
	"pawgate/internal/skill/scan"
	"pawgate/internal/tool"
)

func skillCommands() []command {
	return []command{
		{name: "skill scan", usage: "[--json] DIR|FILE.zip", about: "Check a skill against the format, and look through all its files for what is dangerous.", run: scanSkill,
			examples: []string{"skill scan ./pdf-forms", "skill scan --json pdf-forms.zip"},
			detail:   "Nothing of it is run, and nothing leaves this machine. Exit status 1: it breaks\nthe format, or the risk is high or critical.\n  --json  Print one JSON object\n"},
	}
}

// errBadSkill is a skill that should not be used.
var errBadSkill = errors.New("this skill is not fit for use")

func scanSkill(_ context.Context, a *app, args []string) error {
	set := flag.NewFlagSet("skill scan", flag.ContinueOnError)
	asJSON := set.Bool("json", false, "")
	var flags, operands []string
	for _, word := range args {
		if strings.HasPrefix(word, "-") {
			flags = append(flags, word)
		} else {
			operands = append(operands, word)
		}
	}
	if err := parseFlags(set, flags); err != nil {
		return err
	}
	if len(operands) != 1 {
		return usagef("skill scan takes one folder or zip archive")
	}
	folder, files, problems, err := readSkill(operands[0])
	if err != nil {
		return err
	}
	verdict := scan.Verdict{Risk: scan.Clean, Findings: []scan.Finding{}}
	if len(problems.Broken()) == 0 {
		_, parsed := skill.Parse(folder, files)
		problems = append(problems, parsed...)
		verdict = scan.Files(files)
	}
	if *asJSON {
		report := struct {
			scan.Verdict
			SHA256   string         `json:"content_sha256"`
			Problems skill.Problems `json:"problems"`
		}{verdict, skill.Hex(skill.Digest(files)), append(skill.Problems{}, problems...)}
		text, err := tool.Marshal(report)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "%s\n", text)
	} else {
		showScan(a, files, problems, verdict)
	}
	if len(problems.Broken()) > 0 || !verdict.Passed {
		return errBadSkill
	}
	return nil
}

func showScan(a *app, files []skill.File, problems skill.Problems, v scan.Verdict) {
	for _, p := range problems {
		kind := map[bool]string{true: "advice", false: "format"}[p.Advice]
		fmt.Fprintf(a.stdout, "%-8s  %s  %s  %s\n", kind, p.Rule, printable(p.Path), printable(p.Message))
	}
	for _, f := range v.Findings {
		fmt.Fprintf(a.stdout, "%-8s  %s  %s:%d  %s\n", f.Severity, f.Rule, printable(f.Path), f.Line, printable(f.Message))
		if f.Evidence != "" {
			fmt.Fprintf(a.stdout, "          %s\n", printable(f.Evidence))
		}
	}
	fmt.Fprintf(a.stdout, "%s, risk %s, content %s\n", plural.Of(len(files), "file"), v.Risk, skill.Hex(skill.Digest(files)))
}

// readSkill reads a folder or an archive, whole or not at all.
func readSkill(name string) (folder string, files []skill.File, problems skill.Problems, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", nil, nil, fmt.Errorf("there is no %s that can be read", name)
	}
	if info.IsDir() {
		absolute, err := filepath.Abs(name)
		if err != nil {
			return "", nil, nil, err
		}
		root, err := os.OpenRoot(name) // nothing that changes meanwhile leads out of it
		if err != nil {
			return "", nil, nil, fmt.Errorf("there is no %s that can be read", name)
		}
		defer root.Close()
		files, problems = skill.ReadDir(root.FS())
		return filepath.Base(absolute), files, problems, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return "", nil, nil, fmt.Errorf("there is no %s that can be read", name)
	}
	defer f.Close()
	folder, files, problems = skill.ReadZip(f, info.Size())
	return folder, files, problems, nil
}
