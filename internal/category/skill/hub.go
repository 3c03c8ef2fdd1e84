package skill

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"pawgate/internal/client/github"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	format "pawgate/internal/skill"
)

var (
	//go:embed hub_read.sql
	hubReadSQL string
	//go:embed hub_keep.sql
	hubKeepSQL string
	//go:embed installed.sql
	installedSQL string
)

// onGitHub is the hub that is any repository of GitHub.
const onGitHub = "github"

// hub is a repository with skills.
type hub struct {
	name string // as configured, or github
	repo string // owner/name
}

// key names its index.
func (h hub) key() string {
	if h.name == onGitHub {
		return onGitHub + ":" + strings.ToLower(h.repo)
	}
	return h.name
}

// owner is what skill_hub_install takes as owner.
func (h hub) owner() string {
	if h.name == onGitHub {
		return h.repo
	}
	return ""
}

var hubName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// parseHubs reads SKILL_HUBS.
func (s Settings) parseHubs() ([]hub, error) {
	list := s.Hubs
	if len(list) == 0 {
		list = []string{"anthropic=anthropics/skills"}
	}
	var hubs []hub
	for _, text := range list {
		name, repo, _ := strings.Cut(strings.TrimSpace(text), "=")
		if !hubName.MatchString(name) || slices.Contains([]string{onGitHub, "own", "shared"}, name) || github.CheckRepo("repo", repo) != nil {
			return nil, fmt.Errorf("read SKILL_HUBS: %q must be name=owner/repo, with a name of its own in lower case", text)
		}
		hubs = append(hubs, hub{name, repo})
	}
	return hubs, nil
}

// hubNamed finds a hub by its name; owner is the repository of github.
func (k skills) hubNamed(name, owner string) (hub, error) {
	if k.github == nil {
		return hub{}, fault.New(fault.NotConfigured, "hubs are not configured rightly; the operator checks SKILL_GITHUB_URL and SKILL_HUBS")
	}
	if name == onGitHub {
		return hub{onGitHub, owner}, github.CheckRepo("owner", owner)
	}
	names := []string{}
	for _, h := range k.hubs {
		if h.name == name {
			return h, nil
		}
		names = append(names, h.name)
	}
	return hub{}, fault.Invalid("hub", "there is no hub %q; there are %s and github", cut(name, 64), strings.Join(names, ", "))
}

// open refuses a private repository that a caller names: the operator's token
// may see it, which gives no agent a right to it. Hubs that the operator
// configured may be private.
func (k skills) open(ctx context.Context, h hub) error {
	if h.name != onGitHub {
		return nil
	}
	return k.github.Public(ctx, h.repo)
}

// listing is what a hub has.
type listing struct {
	hub
	Commit    string
	Skills    []offer
	FetchedAt time.Time
	failed    string // why it is old or empty
}

// offer is a skill of a hub.
type offer struct {
	Name        string `json:"name"`
	Path        string `json:"path"` // the folder
	Description string `json:"description"`
	Blob        string `json:"blob"` // of SKILL.md
}

// Limits of looking at hubs: how long a listing is good, how long one search
// waits, how many descriptions of one hub are fetched.
const (
	listingAge  = 24 * time.Hour
	searchTime  = 10 * time.Second
	mostOffers  = 300
	mostFetched = 60
	atOnce      = 4
)

// indexes are the listings of hubs, side by side and within one time.
func (k skills) indexes(ctx context.Context, hubs []hub) []listing {
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	all := make([]listing, len(hubs))
	kept := make([]listing, len(hubs))
	var waiting sync.WaitGroup
	for i, h := range hubs {
		kept[i] = k.kept(ctx, h)
		if all[i] = kept[i]; k.now().Sub(kept[i].FetchedAt) < listingAge {
			continue
		}
		waiting.Go(func() { all[i] = k.fetchListing(ctx, h, kept[i]) })
	}
	waiting.Wait()
	for i := range all {
		if all[i].FetchedAt.After(kept[i].FetchedAt) {
			k.keepListing(context.WithoutCancel(ctx), all[i])
		}
	}
	return all
}

func (k skills) kept(ctx context.Context, h hub) listing {
	row, err := postgres.One[struct {
		Commit    string
		Skills    []offer
		FetchedAt time.Time
	}](ctx, k.db, hubReadSQL, pgx.StrictNamedArgs{"hub": h.key()})
	if err != nil {
		return listing{hub: h} // none yet, or the next statement says what is wrong with the database
	}
	return listing{hub: h, Commit: row.Commit, Skills: row.Skills, FetchedAt: row.FetchedAt}
}

func (k skills) keepListing(ctx context.Context, l listing) {
	encoded, err := json.Marshal(l.Skills)
	if err == nil {
		// A listing that is not kept is fetched again: no harm, and no reason to fail a search.
		_, _ = postgres.Exec(ctx, k.db, hubKeepSQL, pgx.StrictNamedArgs{"hub": l.key(), "commit": l.Commit, "skills": string(encoded), "now": l.FetchedAt})
	}
}

// fetchListing looks at a hub. When it fails, what was known before is given
// with the reason.
func (k skills) fetchListing(ctx context.Context, h hub, before listing) listing {
	fail := func(err error) listing {
		before.failed = reasonOf(err)
		return before
	}
	if err := k.open(ctx, h); err != nil {
		return fail(err)
	}
	commit, err := k.github.Commit(ctx, h.repo, "")
	if err != nil {
		return fail(err)
	}
	now := listing{hub: h, Commit: commit, Skills: []offer{}, FetchedAt: k.now()}
	var entries []github.Entry
	if commit == before.Commit {
		now.Skills = slices.Clone(before.Skills)
	} else if entries, _, err = k.github.Tree(ctx, h.repo, commit, true); err != nil {
		return fail(err)
	}
	for _, e := range entries {
		folder, file := path.Split(e.Path)
		folder = strings.TrimSuffix(folder, "/")
		if file == format.Main && e.Plain() && len(now.Skills) < mostOffers && len(format.CheckName(path.Base(folder))) == 0 {
			now.Skills = append(now.Skills, offer{Name: path.Base(folder), Path: folder, Blob: e.SHA})
		}
	}
	// What could not be described is there by its name, and looked at again
	// soon: GitHub allows few requests, and all of them must not be for nothing.
	if err := k.describe(ctx, &now, before); err != nil {
		now.failed = reasonOf(err)
		now.FetchedAt = now.FetchedAt.Add(soon - listingAge)
	}
	return now
}

// soon is after how long a listing with gaps is looked at again.
const soon = time.Hour

// reasonOf is why a hub was not looked at whole, in words for the caller.
func reasonOf(err error) string {
	if f, ok := fault.Of(err); ok {
		return f.Message
	}
	return "it did not answer in time"
}

// describe fetches the descriptions that are not known, the rest with the next
// listing. What it has when it fails stays.
func (k skills) describe(ctx context.Context, l *listing, before listing) error {
	known := map[string]string{}
	for _, o := range before.Skills {
		known[o.Blob] = o.Description
	}
	var group errgroup.Group // what is under way when one fails is not for nothing
	var stop atomic.Bool
	group.SetLimit(atOnce)
	fetched := 0
	for i := range l.Skills {
		o := &l.Skills[i]
		if o.Description = known[o.Blob]; o.Description != "" || fetched >= mostFetched {
			continue
		}
		fetched++
		group.Go(func() error {
			if stop.Load() {
				return nil
			}
			content, err := k.github.Blob(ctx, l.repo, o.Blob, format.MaxMain)
			if f, ok := fault.Of(err); ok && f.Reason == fault.TooLarge {
				return nil // the skill could not be installed either
			}
			if err != nil {
				stop.Store(true)
				return err
			}
			s, _ := format.Parse("", []format.File{{Path: format.Main, Content: content}})
			o.Description = cmp.Or(s.Description, " ") // not nothing: that is looked for again
			return nil
		})
	}
	return group.Wait()
}

// markInstalled tells which of the skills on hubs the agent has.
func (k skills) markInstalled(ctx context.Context, agent string, list []found) error {
	if !slices.ContainsFunc(list, func(f found) bool { return f.Scope == "hub" }) {
		return nil
	}
	rows, err := postgres.All[struct{ Hub, Repo, Path string }](ctx, k.db, installedSQL, pgx.StrictNamedArgs{"agent": agent})
	if err != nil {
		return fmt.Errorf("list installed skills: %w", err)
	}
	for i, f := range list {
		list[i].Installed = f.Scope == "hub" && slices.ContainsFunc(rows, func(r struct{ Hub, Repo, Path string }) bool {
			return r.Hub == f.Hub && r.Path == f.Path && (f.Owner == "" || strings.EqualFold(r.Repo, f.Owner))
		})
	}
	return nil
}
