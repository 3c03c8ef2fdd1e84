package hub

import (
	"cmp"
	"context"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pawgate/internal/fault"
)

// Repo is a model repository at one commit.
type Repo struct {
	ID         string
	Revision   string // the commit, 40 hex digits
	Gated      bool
	Downloads  int64
	Likes      int64
	Parameters int64 // as the hub read them out of a GGUF file; 0 if unknown
	Files      []File
}

// File is a GGUF file of a repository.
type File struct {
	Path   string // within the repository
	Size   int64  // in bytes; 0 if the hub does not say
	SHA256 string // 64 hex digits; empty if the hub does not say
}

// Name is the file's name without its folder.
func (f File) Name() string { return path.Base(f.Path) }

var (
	repoName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)
	revision = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	commit   = regexp.MustCompile(`^[0-9a-f]{40}$`)
	digest   = regexp.MustCompile(`^[0-9a-f]{64}$`)
	segment  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+@=-]{0,199}$`)
	partName = regexp.MustCompile(`^(.+)-(\d{5})-of-(\d{5})\.gguf$`)
)

// CheckRepo refuses what is no name of a repository.
func CheckRepo(parameter, repo string) error {
	if !repoName.MatchString(repo) || strings.Contains(repo, "..") {
		return fault.Invalid(parameter, "%s must be owner/name, as model_search shows it", parameter)
	}
	return nil
}

// CheckRevision refuses what is no branch, tag or commit.
func CheckRevision(parameter, rev string) error {
	if !revision.MatchString(rev) || strings.Contains(rev, "..") {
		return fault.Invalid(parameter, "%s must be a branch, tag or commit of the repository", parameter)
	}
	return nil
}

// CheckPath refuses what is no GGUF file within a repository.
func CheckPath(parameter, file string) error {
	parts := strings.Split(file, "/")
	ok := len(parts) <= 4 && strings.HasSuffix(file, ".gguf") && !strings.Contains(file, "..")
	for _, p := range parts {
		ok = ok && segment.MatchString(p)
	}
	if !ok {
		return fault.Invalid(parameter, "%s must be a file of the repository that ends in .gguf, as model_search shows it", parameter)
	}
	return nil
}

// wireRepo is the hub's answer (Hub API, /api/models/{repo}).
type wireRepo struct {
	ID        string `json:"id"`
	SHA       string `json:"sha"`
	Gated     any    `json:"gated"` // false, "auto" or "manual"
	Private   bool   `json:"private"`
	Downloads int64  `json:"downloads"`
	Likes     int64  `json:"likes"`
	GGUF      struct {
		Total int64 `json:"total"`
	} `json:"gguf"`
	Siblings []struct {
		Name string `json:"rfilename"`
		Size int64  `json:"size"`
		LFS  *struct {
			SHA256 string `json:"sha256"`
			Size   int64  `json:"size"`
		} `json:"lfs"`
	} `json:"siblings"`
}

// Repo reads a repository with the sizes and digests of its files, at a
// branch, tag or commit; empty: the default branch.
func (h *Hub) Repo(ctx context.Context, id, rev string) (Repo, error) {
	if err := CheckRepo("repo", id); err != nil {
		return Repo{}, err
	}
	p := "/api/models/" + id
	if rev != "" {
		if err := CheckRevision("revision", rev); err != nil {
			return Repo{}, err
		}
		p += "/revision/" + rev
	}
	var w wireRepo
	if err := h.get(ctx, "repository "+id, p, url.Values{"blobs": {"true"}}, &w); err != nil {
		return Repo{}, err
	}
	if !commit.MatchString(w.SHA) {
		return Repo{}, fault.New(fault.Unavailable, "the model hub does not say which commit %s is at, so nothing can be pinned", id)
	}
	return w.repo(id), nil
}

// repo keeps the GGUF files whose names are safe and whose digests are
// digests; the rest of an answer is not to be trusted with a path.
func (w wireRepo) repo(id string) Repo {
	gated, _ := w.Gated.(string)
	r := Repo{ID: id, Revision: w.SHA, Gated: gated != "" || w.Private, Downloads: w.Downloads, Likes: w.Likes, Parameters: w.GGUF.Total, Files: []File{}}
	for _, s := range w.Siblings {
		if CheckPath("", s.Name) != nil {
			continue
		}
		f := File{Path: s.Name, Size: s.Size}
		if s.LFS != nil {
			f.Size = cmp.Or(s.LFS.Size, f.Size)
			if digest.MatchString(s.LFS.SHA256) {
				f.SHA256 = s.LFS.SHA256
			}
		}
		r.Files = append(r.Files, f)
	}
	return r
}

// Parts are the files of the model that a file belongs to, in order: itself,
// or all parts of it. It fails with fault.NotFound for a file that is not
// there, and with fault.Conflict when a part is missing.
func (r Repo) Parts(file string) ([]File, error) {
	find := func(p string) (File, bool) {
		i := slices.IndexFunc(r.Files, func(f File) bool { return f.Path == p })
		if i < 0 {
			return File{}, false
		}
		return r.Files[i], true
	}
	f, ok := find(file)
	if !ok {
		return nil, fault.New(fault.NotFound, "%s has no file %s at that revision; it has %s", r.ID, file, r.names())
	}
	m := partName.FindStringSubmatch(file)
	if m == nil {
		return []File{f}, nil
	}
	count, _ := strconv.Atoi(m[3])
	var parts []File
	for n := 1; n <= count; n++ {
		p, ok := find(m[1] + "-" + pad(n) + "-of-" + m[3] + ".gguf")
		if !ok {
			return nil, fault.New(fault.Conflict, "%s lacks part %d of %s; choose another build", r.ID, n, path.Base(m[1]))
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func pad(n int) string {
	s := strconv.Itoa(n)
	return strings.Repeat("0", max(5-len(s), 0)) + s
}

func (r Repo) names() string {
	const most = 20
	var names []string
	for _, f := range r.Files[:min(len(r.Files), most)] {
		names = append(names, f.Path)
	}
	if len(names) == 0 {
		return "no GGUF files"
	}
	return strings.Join(names, ", ")
}

// Search finds repositories with GGUF files, most downloaded first, without
// their files.
func (h *Hub) Search(ctx context.Context, query string, limit int) ([]Repo, error) {
	var list []wireRepo
	q := url.Values{"search": {query}, "filter": {"gguf"}, "sort": {"downloads"}, "direction": {"-1"}, "limit": {strconv.Itoa(limit)}}
	if err := h.get(ctx, "models", "/api/models", q, &list); err != nil {
		return nil, err
	}
	repos := []Repo{}
	for _, w := range list {
		if CheckRepo("", w.ID) == nil {
			repos = append(repos, w.repo(w.ID))
		}
	}
	return repos[:min(len(repos), limit)], nil
}
