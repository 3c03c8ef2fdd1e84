package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"pawgate/internal/operator"
	"pawgate/internal/skill"
)

// exportSkills writes skill after skill into folders.
func exportSkills(ctx context.Context, a *app, p parsed, r row) error {
	dir, _ := p.args["dir"].(string)
	names, _ := p.args["names"].([]string)
	replace := p.args["replace"] == true
	for _, local := range []string{"dir", "names", "replace"} {
		delete(p.args, local)
	}
	run, leave, err := a.runner(ctx, p.stack)
	if err != nil {
		return err
	}
	defer leave()
	wanted, err := exported(ctx, run, p.args["agent_id"], names)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err // it names the folder
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	result := movedResult{Skills: []moved{}}
	for _, w := range wanted {
		m := moved{SkillName: w.SkillName, Path: filepath.Join(dir, w.SkillName), Risk: w.Risk}
		p.args["skill_name"], p.args["scope"] = w.SkillName, w.Scope
		got, err := ask[operator.SkillExported](ctx, run, r, p.args)
		if err != nil {
			if err := m.refuse(err); err != nil {
				return err
			}
		} else if m.Risk = got.Risk; true {
			if m.Outcome, err = writeSkill(root, got, replace); err != nil {
				m.Outcome, m.Error = refusedOutcome, err.Error()
			}
		}
		result.Skills = append(result.Skills, m)
	}
	return result.finish(a, p)
}

// exported are the skills of an agent that are wanted.
func exported(ctx context.Context, run runner, agent any, names []string) ([]operator.SkillRow, error) {
	var all []operator.SkillRow
	args := map[string]any{"agent_id": agent, "archived": len(names) > 0}
	for {
		page, err := ask[operator.SkillList](ctx, run, row{name: "skill list"}, args)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Skills...)
		if page.NextAfter == "" {
			break
		}
		args["after"] = page.NextAfter
	}
	if len(names) == 0 {
		return all, nil
	}
	var wanted []operator.SkillRow
	for _, name := range names {
		i := slices.IndexFunc(all, func(s operator.SkillRow) bool { return s.SkillName == name })
		if i < 0 {
			return nil, fmt.Errorf("%v has no skill %q; pawgate skill list %v shows those there are", agent, name, agent)
		}
		wanted = append(wanted, all[i])
	}
	return wanted, nil
}

// writeSkill writes a folder, whole or not at all, and never over another one
// unless that is wanted.
func writeSkill(root *os.Root, got operator.SkillExported, replace bool) (outcome string, err error) {
	raw, err := base64.StdEncoding.DecodeString(got.Archive)
	if err != nil {
		return "", errors.New("the archive is not base64")
	}
	_, files, problems := skill.ReadZip(bytes.NewReader(raw), int64(len(raw)))
	if len(problems.Broken()) == 0 {
		_, problems = skill.Parse(got.SkillName, files) // the name and the paths are safe to write to, then
	}
	if broken := problems.Broken(); len(broken) > 0 {
		return "", broken
	}
	if skill.Hex(skill.Digest(files)) != got.ContentSHA256 {
		return "", errors.New("the files are not those that the database has")
	}
	there, err := root.Lstat(got.SkillName)
	exists := err == nil
	if exists && there.IsDir() {
		within, err := fs.Sub(root.FS(), got.SkillName)
		if err != nil {
			return "", err
		}
		if before, problems := skill.ReadDir(within); len(problems.Broken()) == 0 && skill.Digest(before) == skill.Digest(files) {
			return "unchanged", nil
		}
	}
	if exists && !replace {
		return "", errors.New("there is another folder of that name; --replace puts this one in its place")
	}
	return "written", place(root, got.SkillName, files)
}

// place writes the files beside the folder, and changes the two.
func place(root *os.Root, name string, files []skill.File) (err error) {
	fresh, old := "."+name+".new", "."+name+".old"
	if err := errors.Join(root.RemoveAll(fresh), root.RemoveAll(old)); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.RemoveAll(fresh)
		}
	}()
	for _, f := range files {
		at := path.Join(fresh, f.Path)
		if err := root.MkdirAll(path.Dir(at), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if f.Executable {
			mode = 0o755
		}
		if err := root.WriteFile(at, f.Content, mode); err != nil {
			return err
		}
	}
	if err := root.Rename(name, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := root.Rename(fresh, name); err != nil {
		return errors.Join(err, root.Rename(old, name))
	}
	return root.RemoveAll(old)
}
