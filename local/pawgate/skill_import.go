package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"pawgate/internal/operator"
	"pawgate/internal/skill"
)

// importSkills sends skill after skill. One that is refused keeps none of the
// others back.
func importSkills(ctx context.Context, a *app, p parsed, r row) error {
	paths, _ := p.args["paths"].([]string)
	delete(p.args, "paths")
	sources, err := findSkills(paths)
	if err != nil {
		return err
	}
	if p.args["accept_risk"] != nil && len(sources) != 1 {
		return usagef("--accept-risk is for one skill, and here are %d", len(sources))
	}
	run, leave, err := a.runner(ctx, p.stack)
	if err != nil {
		return err
	}
	defer leave()
	result := movedResult{Skills: []moved{}, DryRun: p.args["dry_run"] == true}
	taken := map[string]string{}
	for _, s := range sources {
		m, err := s.send(ctx, run, r, p.args, taken)
		if err != nil {
			return err
		}
		result.Skills = append(result.Skills, m)
		if m.Detail != nil {
			for _, note := range m.Detail.Notes {
				a.progress("%s: %s", printable(m.Path), printable(note))
			}
		}
	}
	return result.finish(a, p)
}

// source is a skill on this machine.
type source struct {
	path     string // as it is named to the user
	folder   string
	files    []skill.File
	problems skill.Problems
}

// send imports one skill. taken has the names that came before, and from where:
// two folders whose names become one are not one skill.
func (s source) send(ctx context.Context, run runner, r row, args map[string]any, taken map[string]string) (moved, error) {
	name := skill.Name(s.folder)
	m := moved{SkillName: name, Path: s.path}
	if name == "" {
		m.SkillName = s.folder
	}
	if other, ok := taken[name]; ok && name != "" {
		m.Outcome, m.Error = refusedOutcome, fmt.Sprintf("%s becomes %s too; rename one of the folders", other, name)
		return m, nil
	}
	taken[name] = s.path
	if broken := s.problems.Broken(); len(broken) > 0 {
		m.Outcome, m.Error, m.Reason = refusedOutcome, broken.Error(), string(broken[0].Rule)
		return m, nil
	}
	archive, err := skill.WriteZip(s.files)
	if err != nil {
		return m, fmt.Errorf("pack %s: %w", s.path, err)
	}
	args["archive"], args["folder"] = base64.StdEncoding.EncodeToString(archive), s.folder
	done, err := ask[operator.SkillImported](ctx, run, r, args)
	if err != nil {
		return m, m.refuse(err)
	}
	m.SkillName, m.Outcome, m.Risk, m.Detail = done.SkillName, done.Outcome, done.Risk, &done
	return m, nil
}

// deepest is how far below a folder skills are looked for, as in DuDuClaw.
const deepest = 8

// findSkills finds the skills that paths name, in order.
func findSkills(paths []string) ([]source, error) {
	var all []source
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("there is no %s that can be read", p)
		}
		var found []source
		switch {
		case info.IsDir():
			found, err = skillsBelow(p)
		case strings.EqualFold(filepath.Ext(p), ".md"):
			found, err = flatSkill(p)
		default:
			found, err = archivedSkill(p)
		}
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s holds no skill: no folder with a SKILL.md", p)
		}
		all = append(all, found...)
	}
	return all, nil
}

// archivedSkill is a zip archive. One without a folder is named by itself.
func archivedSkill(name string) ([]source, error) {
	folder, files, problems, err := readSkill(name)
	if folder == "" {
		folder = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	}
	return []source{{name, folder, files, problems}}, err
}

// flatSkill is a skill of DuDuClaw's older layout: one file, named like it.
func flatSkill(name string) ([]source, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("there is no %s that can be read", name)
	}
	if filepath.Base(name) == skill.Main {
		return nil, usagef("%s is a part of a skill; name its folder", name)
	}
	s := source{path: name, folder: strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), files: []skill.File{{Path: skill.Main, Content: content}}}
	return []source{s}, nil
}

// skillsBelow is a folder that is a skill, or else every skill in it: folders
// with a SKILL.md and, at its top, files NAME.md where no folder has the name.
// Hidden folders hold none. A link to a folder of skills is followed at the top
// alone, where people set them.
func skillsBelow(dir string) ([]source, error) {
	if _, err := os.Stat(filepath.Join(dir, skill.Main)); err == nil {
		folder, files, problems, err := readSkill(dir)
		return []source{{dir, folder, files, problems}}, err
	}
	var all []source
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read", dir)
	}
	var flat []string
	for _, e := range entries {
		below := filepath.Join(dir, e.Name())
		switch info, err := os.Stat(below); {
		case strings.HasPrefix(e.Name(), "."), err != nil:
		case info.IsDir():
			found, err := skillsWithin(below)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		case filepath.Ext(e.Name()) == ".md" && e.Type().IsRegular() && hasHead(below):
			flat = append(flat, below)
		}
	}
	for _, f := range flat {
		found, err := flatSkill(f)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(all, func(s source) bool { return skill.Name(s.folder) == skill.Name(found[0].folder) }) {
			all = append(all, found...)
		}
	}
	return all, nil
}

// hasHead tells a skill from any other page in the folder.
func hasHead(name string) bool {
	content, err := os.ReadFile(name)
	return err == nil && bytes.HasPrefix(bytes.TrimPrefix(content, []byte("\ufeff")), []byte("---"))
}

// skillsWithin walks a folder; below a skill there is no other.
func skillsWithin(dir string) ([]source, error) {
	var all []source
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case name != "." && strings.HasPrefix(d.Name(), "."), strings.Count(name, "/") >= deepest-1:
			return fs.SkipDir
		}
		if _, err := fs.Stat(os.DirFS(dir), path.Join(name, skill.Main)); err != nil {
			return nil
		}
		whole := filepath.Join(dir, filepath.FromSlash(name))
		folder, files, problems, err := readSkill(whole)
		if err != nil {
			return err
		}
		all = append(all, source{whole, folder, files, problems})
		return fs.SkipDir
	})
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read", dir)
	}
	return all, nil
}
