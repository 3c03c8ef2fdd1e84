package hub

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"pawgate/internal/fault"
)

// Downloads are the downloads of one process into one folder. They go on after
// the call that began them; the next call with the same names finds them.
type Downloads struct {
	hub  *Hub
	root *os.Root

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu   sync.Mutex
	jobs map[key]*Job
}

// key is what a caller names.
type key struct{ repo, revision, file string }

// NewDownloads puts what a hub has into a folder.
func NewDownloads(h *Hub, root *os.Root) *Downloads {
	ctx, cancel := context.WithCancel(context.Background())
	return &Downloads{hub: h, root: root, ctx: ctx, cancel: cancel, jobs: map[key]*Job{}}
}

// Hub is the hub that the downloads come from.
func (d *Downloads) Hub() *Hub { return d.hub }

// Root is the folder that they go to.
func (d *Downloads) Root() *os.Root { return d.root }

// Close ends the downloads; what they fetched is kept for the next attempt.
func (d *Downloads) Close() {
	d.cancel()
	d.all.Wait()
}

// Job is one download: all files of a model.
type Job struct {
	Repo     Repo
	Files    []File
	done     chan struct{}
	cancel   context.CancelFunc
	began    time.Time
	mu       sync.Mutex
	bytes    int64 // of the files before the current one, and of it
	complete int64 // of the files before the current one
	err      error
}

// Progress is how far a download is. Sizes are in bytes.
type Progress struct {
	Done, Total int64
	Finished    bool
	Err         error // of a finished one; nil: every file is there and verified
	Elapsed     time.Duration
}

// Start begins a download, or finds the one that runs or has just ended with
// the same names. The end of ctx ends the look into the repository, not the
// download. It fails as Repo, Parts and Fetch do.
func (d *Downloads) Start(ctx context.Context, repo, revision, file string) (*Job, error) {
	if err := errors.Join(CheckRepo("repo", repo), CheckPath("filename", file)); err != nil {
		return nil, err
	}
	k := key{repo, revision, file}
	if j := d.Find(repo, revision, file); j != nil {
		return j, nil
	}
	r, err := d.hub.Repo(ctx, repo, revision)
	if err != nil {
		return nil, err
	}
	files, err := r.Parts(file)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if j := d.jobs[k]; j != nil { // another call was faster
		return j, nil
	}
	if d.ctx.Err() != nil {
		return nil, fault.New(fault.Unavailable, "the host is shutting down")
	}
	running, cancel := context.WithCancel(d.ctx)
	j := &Job{Repo: r, Files: files, done: make(chan struct{}), cancel: cancel, began: time.Now()}
	d.jobs[k] = j
	d.all.Go(func() { j.run(running, d) })
	return j, nil
}

// Find is the download of these names; nil when there is none.
func (d *Downloads) Find(repo, revision, file string) *Job {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.jobs[key{repo, revision, file}]
}

// Forget drops a download that has ended, so that the next start begins anew.
func (d *Downloads) Forget(j *Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k, other := range d.jobs {
		if other == j && j.Progress().Finished {
			delete(d.jobs, k)
		}
	}
}

func (j *Job) run(ctx context.Context, d *Downloads) {
	defer close(j.done)
	defer j.cancel()
	for _, f := range j.Files {
		err := d.hub.Fetch(ctx, Source{Repo: j.Repo.ID, Revision: j.Repo.Revision, File: f}, d.root, func(bytes int64) {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.bytes = j.complete + bytes
		})
		j.mu.Lock()
		j.err = err
		j.complete += f.Size
		j.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Wait returns when the download has ended or ctx has.
func (j *Job) Wait(ctx context.Context) Progress {
	select {
	case <-j.done:
	case <-ctx.Done():
	}
	return j.Progress()
}

// Cancel ends a download; what was fetched is kept.
func (j *Job) Cancel() {
	j.cancel()
	<-j.done
}

// Progress is how far the download is now.
func (j *Job) Progress() Progress {
	p := Progress{Elapsed: time.Since(j.began)}
	for _, f := range j.Files {
		p.Total += f.Size
	}
	select {
	case <-j.done:
		p.Finished = true
	default:
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	p.Done = j.bytes
	if p.Finished {
		p.Err = j.err
	}
	return p
}
