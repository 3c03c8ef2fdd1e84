package skill

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"pawgate/internal/caller"
	"pawgate/internal/client/github"
	"pawgate/internal/fault"
	format "pawgate/internal/skill"
	"pawgate/internal/skill/scan"
	"pawgate/internal/skill/store"
)

type installArgs struct {
	Hub       string `json:"hub" doc:"A hub's name, or github" maxlen:"64"`
	SkillName string `json:"skill_name" doc:"Its folder there" maxlen:"64"`
	Owner     string `json:"owner,omitempty" doc:"owner/repo, with github" maxlen:"140"`
	Scope     string `json:"scope,omitempty" doc:"Default agent: yours" enum:"agent,global"`
	Path      string `json:"path,omitempty" doc:"If several folders have the name" maxlen:"200"`
	Ref       string `json:"ref,omitempty" doc:"Commit, tag or branch" maxlen:"200"`
	Update    bool   `json:"update,omitempty" doc:"Replace an older version"`
	DryRun    bool   `json:"dry_run,omitempty" doc:"-"`
	Accept    string `json:"accept_risk,omitempty" doc:"Operators: content_sha256" maxlen:"64"`
}

func (a installArgs) Validate() error {
	if broken := format.CheckName(a.SkillName); len(broken) > 0 {
		return fault.Invalid("skill_name", "skill_name: %s", broken.Error())
	}
	if (a.Hub == onGitHub) != (a.Owner != "") {
		return fault.Invalid("owner", "owner goes with hub github: the repository, as owner/repo")
	}
	if a.Path != "" && (strings.Contains(a.Path, "..") || path.Clean(a.Path) != a.Path || path.IsAbs(a.Path) || path.Base(a.Path) != a.SkillName) {
		return fault.Invalid("path", "path must be the folder of the skill in the repository, ending in its name, as skill_search shows it")
	}
	if a.Ref != "" {
		return github.CheckRef("ref", a.Ref)
	}
	return nil
}

type installResult struct {
	SkillID       string           `json:"skill_id,omitzero"`
	SkillName     string           `json:"skill_name"`
	Scope         string           `json:"scope"`
	Version       int              `json:"version,omitzero"`
	Outcome       string           `json:"outcome"` // installed, updated, unchanged; with dry_run what would be, or refused
	Repo          string           `json:"repo"`
	Path          string           `json:"path"`
	Commit        string           `json:"commit"`
	ContentSHA256 string           `json:"content_sha256"`
	Risk          string           `json:"risk"`
	Findings      []scan.Finding   `json:"findings,omitempty"`
	Changes       []format.Change  `json:"changes,omitempty"`
	Advice        []format.Problem `json:"advice,omitempty"`
	Detail        string           `json:"detail,omitzero"`
}

// hubInstall fetches a skill at one commit into memory, checks it whole, and
// keeps it or nothing. Whether a person must approve is the gate's to say, by
// rules over these arguments: with ref a commit, what is approved is what is
// installed.
func (k skills) hubInstall(ctx context.Context, who caller.Caller, a installArgs) (installResult, error) {
	scope := cmp.Or(a.Scope, store.Agent)
	if scope == store.Global {
		if err := needOperator(who, "a global skill"); err != nil {
			return installResult{}, err
		}
	}
	if a.Accept != "" {
		if err := needOperator(who, "the risk of a skill that did not pass"); err != nil {
			return installResult{}, err
		}
	}
	h, err := k.hubNamed(a.Hub, a.Owner)
	if err != nil {
		return installResult{}, err
	}
	got, err := k.download(ctx, h, a)
	if err != nil {
		return installResult{}, err
	}
	s, problems := format.Parse(a.SkillName, got.files)
	if broken := problems.Broken(); len(broken) > 0 {
		return installResult{}, fault.New(badSkill, "%s breaks the format of skills: %s", a.SkillName, broken.Error()).With("problems", broken)
	}
	r := installResult{SkillName: s.Name, Scope: scope, Repo: h.repo, Path: got.path, Commit: got.commit, Advice: problems}
	draft := store.Draft{Scope: scope, Skill: s, Lineage: "hub:" + strings.ToLower(h.repo) + "/" + got.path, State: "active", By: who.Agent,
		Source: store.Source{Hub: h.name, Repo: h.repo, Path: got.path, Commit: got.commit}, Update: a.Update, Accept: a.Accept, Now: k.now()}
	if scope == store.Agent {
		draft.Agent = who.Agent
	}
	return k.install(ctx, draft, r, a.DryRun)
}

// badSkill is the reason of a skill that breaks the format.
const badSkill fault.Reason = "bad_skill"

func (k skills) install(ctx context.Context, d store.Draft, r installResult, dry bool) (installResult, error) {
	keep := store.Keep
	if dry {
		d.Update = true
		keep = store.Try
	}
	kept, err := keep(ctx, k.db, d)
	r.ContentSHA256, r.Risk, r.Changes, r.Outcome = kept.Digest, kept.Verdict.Risk, kept.Changes, kept.Outcome
	for _, f := range kept.Verdict.Findings {
		if f.Severity.AtLeast(scan.Low) {
			r.Findings = append(r.Findings, f)
		}
	}
	if f, ok := fault.Of(err); ok && dry {
		r.Outcome, r.Detail = "refused", f.Message
		return r, nil
	}
	if err != nil {
		return installResult{}, err
	}
	if !dry {
		r.SkillID = kept.ID
	}
	r.Version = kept.Version
	return r, nil
}

// downloaded is what was downloaded.
type downloaded struct {
	files  []format.File
	path   string
	commit string
}

// download fetches the files of a skill's folder at one commit.
func (k skills) download(ctx context.Context, h hub, a installArgs) (downloaded, error) {
	var d downloaded
	err := k.open(ctx, h)
	if err != nil {
		return d, err
	}
	if d.commit, err = k.github.Resolve(ctx, h.repo, a.Ref); err != nil {
		return d, err
	}
	entries, err := k.inFolder(ctx, h, a, &d)
	if err != nil {
		return d, err
	}
	if err := bounded(entries, a.SkillName); err != nil {
		return d, err
	}
	d.files = make([]format.File, len(entries))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, e := range entries {
		group.Go(func() error {
			content, err := k.github.Blob(ctx, h.repo, e.SHA, format.MaxFile)
			d.files[i] = format.File{Path: e.Path, Content: content, Executable: e.Mode == "100755"}
			return err
		})
	}
	return d, group.Wait()
}

// inFolder are the files of the skill's folder, with paths from there.
func (k skills) inFolder(ctx context.Context, h hub, a installArgs, d *downloaded) ([]github.Entry, error) {
	all, truncated, err := k.github.Tree(ctx, h.repo, d.commit, true)
	if err != nil {
		return nil, err
	}
	if truncated {
		if a.Path == "" {
			return nil, fault.New(fault.TooLarge, "%s is too large to look for %s in; name its folder with path", h.repo, a.SkillName)
		}
		tree, err := k.github.Subtree(ctx, h.repo, d.commit, a.Path)
		if err != nil {
			return nil, err
		}
		d.path = a.Path
		all, truncated, err = k.github.Tree(ctx, h.repo, tree, true)
		if err == nil && truncated {
			err = fault.New(fault.TooLarge, "%s has too many files", a.SkillName)
		}
		return slices.DeleteFunc(all, func(e github.Entry) bool { return e.Type == "tree" }), err
	}
	if d.path, err = folder(all, h, a); err != nil {
		return nil, err
	}
	var inside []github.Entry
	for _, e := range all {
		if rest, ok := strings.CutPrefix(e.Path, d.path+"/"); ok && e.Type != "tree" {
			e.Path = rest
			inside = append(inside, e)
		}
	}
	return inside, nil
}

// folder finds the one folder with the skill.
func folder(all []github.Entry, h hub, a installArgs) (string, error) {
	var paths, others []string
	for _, e := range all {
		dir, file := path.Split(e.Path)
		if dir = strings.TrimSuffix(dir, "/"); file != format.Main || dir == "" {
			continue
		}
		if dir == a.Path || a.Path == "" && path.Base(dir) == a.SkillName {
			paths = append(paths, dir)
		} else if len(others) < 20 {
			others = append(others, path.Base(dir))
		}
	}
	switch len(paths) {
	case 1:
		return paths[0], nil
	case 0:
		return "", fault.New(fault.NotFound, "%s has no skill %s at that commit; skill_search finds what there is", h.repo, a.SkillName).With("there_are", others)
	}
	return "", fault.New(fault.Conflict, "%s has %d folders called %s; name one with path", h.repo, len(paths), a.SkillName).With("paths", paths)
}

// bounded refuses what would be refused anyway, before it is fetched.
func bounded(entries []github.Entry, name string) error {
	if len(entries) > format.MaxFiles {
		return fault.New(fault.TooLarge, "%s has %d files; at most %d are taken", name, len(entries), format.MaxFiles)
	}
	total := int64(0)
	for _, e := range entries {
		if !e.Plain() {
			return fault.New(badSkill, "%s holds %s, which is a link or another repository; only plain files are taken", name, cut(scan.Plain(e.Path, 200), 200))
		}
		if total += e.Size; e.Size > format.MaxFile || total > format.MaxTotal {
			return fault.New(fault.TooLarge, "%s is larger than %d bytes a file or %d in all", name, format.MaxFile, format.MaxTotal)
		}
	}
	return nil
}
