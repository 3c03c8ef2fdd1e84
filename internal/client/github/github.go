// Package github reads public or permitted repositories over GitHub's REST API:
// which commit a branch is at, what a tree holds, what a blob says
// (docs.github.com/rest/commits, /rest/git/trees, /rest/git/blobs).
//
// It speaks to the configured server alone. A blob is checked against the SHA
// that names it, so what a commit was pinned to is what comes back. Nothing is
// cached and nothing is retried: a limit that was reached is a fault with the
// time after which to try again (403 or 429 with x-ratelimit-remaining 0, or
// retry-after, as GitHub documents both of its limits). The token never leaves
// for another host and stands in no error.
package github

import (
	"cmp"
	"context"
	"crypto/sha1" // git's own name for a blob, checked beside SHA-256 elsewhere
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"pawgate/internal/fault"
	"pawgate/internal/safehttp"
)

// Config is where GitHub is.
type Config struct {
	URL   string `envconfig:"SKILL_GITHUB_URL" desc:"GitHub's REST API, if not its own: such as https://github.example.com/api/v3"`
	Token string `envconfig:"SKILL_GITHUB_TOKEN" desc:"token for GitHub, or a reference to it; without one it allows 60 requests an hour"`
}

// PublicURL is GitHub's own API.
const PublicURL = "https://api.github.com"

// Limits of requests. The waits are for answers that name none: GitHub asks for
// a minute at least.
const (
	timeout     = 15 * time.Second
	maxBytes    = 10 << 20 // GitHub's trees have at most 7 MB
	defaultWait = time.Minute
	maxWait     = 24 * time.Hour
)

// Client asks one server. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	token string
	http  *safehttp.Client
	now   func() time.Time
}

// New is a client; it connects to nothing. It fails on an address that is no
// URL.
func New(cfg Config, now func() time.Time, options ...safehttp.Option) (*Client, error) {
	base := cmp.Or(cfg.URL, PublicURL)
	u, err := safehttp.CheckURL(base)
	if err != nil {
		return nil, fmt.Errorf("read SKILL_GITHUB_URL: it must be a URL such as %s", PublicURL)
	}
	client, err := safehttp.Fixed(base, safehttp.Policy{Timeout: timeout, MaxBytes: maxBytes}, options...)
	if err != nil {
		return nil, fmt.Errorf("read SKILL_GITHUB_URL: it must be a URL such as %s", PublicURL)
	}
	return &Client{base: u, token: cfg.Token, http: client, now: now}, nil
}

var (
	repoName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+$`)
	refName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)
	sha      = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// Bounds of names, in bytes.
const (
	maxRepo = 140
	maxRef  = 200
)

// CheckRepo refuses what is no owner/name.
func CheckRepo(parameter, repo string) error {
	_, name, _ := strings.Cut(repo, "/")
	if len(repo) > maxRepo || !repoName.MatchString(repo) || name == "." || name == ".." {
		return fault.Invalid(parameter, "%s must be a repository on GitHub, as owner/name", parameter)
	}
	return nil
}

// CheckRef refuses what is no branch, tag or commit.
func CheckRef(parameter, ref string) error {
	if len(ref) > maxRef || !refName.MatchString(ref) || strings.Contains(ref, "..") || strings.Contains(ref, "//") || strings.HasSuffix(ref, "/") {
		return fault.Invalid(parameter, "%s must be a branch, tag or commit", parameter)
	}
	// Anybody may open a pull request, and its commits have names here.
	if name := strings.TrimPrefix(ref, "refs/"); strings.HasPrefix(name, "pull/") || name != ref && !strings.HasPrefix(name, "heads/") && !strings.HasPrefix(name, "tags/") {
		return fault.Invalid(parameter, "%s must be a branch, tag or commit of the repository itself, and no pull request", parameter)
	}
	return nil
}

// IsCommit reports whether a ref names a commit for good.
func IsCommit(ref string) bool { return sha.MatchString(ref) }

// abbreviated is what GitHub may take for a commit without asking where it is.
var abbreviated = regexp.MustCompile(`^[0-9a-f]{4,40}$`)

// Resolve is the commit that a ref names, "" the default branch, for good: it
// is of this repository. GitHub keeps a repository and all of its forks
// together and gives a commit of any of them by its number, so whoever forks a
// repository could have its commits taken for the repository's. A number is
// therefore good only for what the default branch has in its history, or what a
// branch is at (docs.github.com/rest/commits: compare two commits, list branches
// for HEAD commit). It fails with fault.NotFound otherwise.
func (c *Client) Resolve(ctx context.Context, repo, ref string) (string, error) {
	commit := ref
	var err error
	if !IsCommit(ref) {
		if commit, err = c.Commit(ctx, repo, ref); err != nil {
			return "", err
		}
	}
	if !abbreviated.MatchString(ref) {
		return commit, nil
	}
	head, err := c.Commit(ctx, repo, "")
	if err != nil || head == commit {
		return commit, err
	}
	var compared struct {
		Status string `json:"status"`
	}
	err = c.ask(ctx, repo, "/compare/"+head+"..."+commit+"?per_page=1", &compared)
	if f, ok := fault.Of(err); err != nil && !(ok && (f.Reason == fault.NotFound || f.Reason == fault.TooLarge)) { // none: no common history
		return "", err
	}
	if compared.Status == "behind" || compared.Status == "identical" {
		return commit, nil
	}
	var tips []struct {
		Name string `json:"name"`
	}
	if err := c.ask(ctx, repo, "/commits/"+commit+"/branches-where-head", &tips); err != nil {
		return "", err
	}
	if len(tips) == 0 {
		return "", fault.New(fault.NotFound, "%s has no commit %s on its default branch or at the tip of another: it may be a fork's, so nothing was taken; name a branch or tag, or leave ref out", repo, commit)
	}
	return commit, nil
}

// Public fails with fault.NotFound for a repository that not everybody sees. It
// asks nothing without a token, for then GitHub shows no other
// (docs.github.com/rest/repos: get a repository).
func (c *Client) Public(ctx context.Context, repo string) error {
	if c.token == "" {
		return nil
	}
	var about struct {
		Private *bool `json:"private"`
	}
	if err := c.ask(ctx, repo, "", &about); err != nil {
		return err
	}
	if about.Private == nil {
		return badAnswer(repo)
	}
	if *about.Private {
		return noSuch(repo)
	}
	return nil
}

func noSuch(repo string) error {
	return fault.New(fault.NotFound, "GitHub has no such repository, branch or commit of %s, or it is private", repo)
}

// ask reads a JSON answer.
func (c *Client) ask(ctx context.Context, repo, path string, into any) error {
	body, err := c.get(ctx, repo, path, "application/vnd.github+json")
	if err != nil {
		return err
	}
	if json.Unmarshal(body, into) != nil {
		return badAnswer(repo)
	}
	return nil
}

// Commit is the commit that a branch, tag or commit is at; "" is the default
// branch.
func (c *Client) Commit(ctx context.Context, repo, ref string) (string, error) {
	body, err := c.get(ctx, repo, "/commits/"+url.PathEscape(cmp.Or(ref, "HEAD")), "application/vnd.github.sha")
	if err != nil {
		return "", err
	}
	commit := strings.TrimSpace(string(body))
	if !sha.MatchString(commit) {
		return "", badAnswer("the commit of " + repo)
	}
	return commit, nil
}

// Entry is one thing in a tree.
type Entry struct {
	Path string `json:"path"`
	// Mode is git's: 100644 a file, 100755 an executable one, 120000 a symbolic
	// link, 160000 another repository, 040000 a folder.
	Mode string `json:"mode"`
	Type string `json:"type"` // blob, tree or commit
	SHA  string `json:"sha"`
	Size int64  `json:"size"`
}

// Plain reports whether it is a file and nothing else.
func (e Entry) Plain() bool { return e.Type == "blob" && (e.Mode == "100644" || e.Mode == "100755") }

// Tree lists everything below a tree or commit. truncated says that GitHub
// listed a part alone, as it does above 100,000 entries or 7 MB.
func (c *Client) Tree(ctx context.Context, repo, tree string, recursive bool) (entries []Entry, truncated bool, err error) {
	path := "/git/trees/" + tree
	if recursive {
		path += "?recursive=1"
	}
	body, err := c.get(ctx, repo, path, "application/vnd.github+json")
	if err != nil {
		return nil, false, err
	}
	var answer struct {
		Tree      []Entry `json:"tree"`
		Truncated bool    `json:"truncated"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Tree == nil {
		return nil, false, badAnswer("the tree of " + repo)
	}
	return answer.Tree, answer.Truncated, nil
}

// Subtree finds the tree of a folder, one step of the path at a time, for
// repositories too large to be listed.
func (c *Client) Subtree(ctx context.Context, repo, tree, folder string) (string, error) {
	for part := range strings.SplitSeq(folder, "/") {
		entries, _, err := c.Tree(ctx, repo, tree, false)
		if err != nil {
			return "", err
		}
		found := ""
		for _, e := range entries {
			if e.Path == part && e.Type == "tree" {
				found = e.SHA
			}
		}
		if !sha.MatchString(found) {
			return "", fault.New(fault.NotFound, "%s has no folder %s at that commit", repo, folder)
		}
		tree = found
	}
	return tree, nil
}

// Blob is the content of a file. It fails with BadContent when it is not what
// the SHA names.
func (c *Client) Blob(ctx context.Context, repo, name string, most int64) ([]byte, error) {
	if !sha.MatchString(name) {
		return nil, badAnswer("a file of " + repo)
	}
	body, err := c.get(ctx, repo, "/git/blobs/"+name, "application/vnd.github+json")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Content  string `json:"content"`
		Encoding string `json:"encoding"`
		Size     int64  `json:"size"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Encoding != "base64" {
		return nil, badAnswer("a file of " + repo)
	}
	content, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(answer.Content, "\n", ""))
	if err != nil {
		return nil, badAnswer("a file of " + repo)
	}
	if int64(len(content)) > most {
		return nil, fault.New(fault.TooLarge, "a file of %s has %d bytes; at most %d are taken", repo, len(content), most)
	}
	sum := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(content)), content...))
	if hex.EncodeToString(sum[:]) != name {
		return nil, fault.New(BadContent, "GitHub gave other bytes than the commit of %s names; nothing was taken", repo)
	}
	return content, nil
}

// The reasons of faults beside those of package fault.
const (
	BadContent fault.Reason = "bad_content"  // the bytes are not those that were named
	BadAnswer  fault.Reason = "bad_response" // the answer is not what GitHub gives
)

func badAnswer(what string) error {
	return fault.New(BadAnswer, "GitHub's answer for %s is not what was expected; the operator checks SKILL_GITHUB_URL", what)
}

func (c *Client) get(ctx context.Context, repo, path, accept string) ([]byte, error) {
	if err := CheckRepo("repo", repo); err != nil {
		return nil, err
	}
	header := http.Header{"Accept": {accept}, "X-Github-Api-Version": {"2022-11-28"}}
	if c.token != "" {
		header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(ctx, safehttp.Request{URL: strings.TrimSuffix(c.base.String(), "/") + "/repos/" + repo + path, Header: header, Whole: true})
	if err != nil {
		return nil, unreached(ctx, err)
	}
	if response.Status == http.StatusOK {
		return response.Body, nil
	}
	return nil, c.refused(repo, response)
}

// unreached words an error of the HTTP client.
func unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f, ok := fault.Of(err); ok && f.Reason == fault.TooLarge {
		return fault.New(fault.TooLarge, "GitHub's answer is larger than %d bytes; name the folder of the skill with path", maxBytes)
	}
	if f, ok := fault.Of(err); ok && f.Reason == safehttp.BlockedRedirect {
		return fault.New(BadAnswer, "GitHub redirects to another host, which is not followed; the operator checks SKILL_GITHUB_URL")
	}
	return fault.Retry(fault.Unavailable, 30*time.Second, "GitHub cannot be reached at the moment; try again later")
}

// refused words a status that is not success.
func (c *Client) refused(repo string, r *safehttp.Response) error {
	switch {
	case r.Status == http.StatusTooManyRequests, r.Status == http.StatusForbidden && c.limited(r):
		wait := c.wait(r.Header)
		advice := ""
		if c.token == "" {
			advice = "; with SKILL_GITHUB_TOKEN the limit is higher"
		}
		return fault.Retry(fault.RateLimited, wait, "GitHub allows no more requests for now, try again in %s%s", wait, advice)
	case r.Status == http.StatusUnauthorized:
		return fault.New(fault.NotConfigured, "GitHub refuses the token; the operator checks SKILL_GITHUB_TOKEN")
	case r.Status == http.StatusForbidden, r.Status == http.StatusUnavailableForLegalReasons:
		return fault.New(fault.Denied, "GitHub refuses access to %s", repo)
	case r.Status == http.StatusNotFound, r.Status == http.StatusConflict, r.Status == http.StatusUnprocessableEntity: // none, empty, no such commit
		return noSuch(repo)
	case r.Status >= 500:
		return fault.Retry(fault.Unavailable, 30*time.Second, "GitHub has a failure of its own (HTTP status %d); try again later", r.Status)
	}
	return badAnswer(repo)
}

// limited tells a limit from a refusal, both of which may be a 403.
func (c *Client) limited(r *safehttp.Response) bool {
	body := strings.ToLower(string(r.Body[:min(len(r.Body), 4096)]))
	return r.Header.Get("X-Ratelimit-Remaining") == "0" || r.Header.Get("Retry-After") != "" || strings.Contains(body, "rate limit")
}

// wait is how long GitHub asks to be left alone: retry-after in seconds, else
// until x-ratelimit-reset when nothing remains, else a minute.
func (c *Client) wait(h http.Header) time.Duration {
	if seconds, err := strconv.Atoi(h.Get("Retry-After")); err == nil && seconds > 0 {
		return min(time.Duration(seconds)*time.Second, maxWait)
	}
	if reset, err := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64); err == nil && h.Get("X-Ratelimit-Remaining") == "0" {
		return min(max(time.Unix(reset, 0).Sub(c.now()).Round(time.Second), time.Second), maxWait)
	}
	return defaultWait
}
