package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/client/hub"
	"pawgate/internal/client/llama/hardware"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

type downloadArgs struct {
	Repo     string `json:"repo" doc:"owner/name, as model_search shows it" maxlen:"200"`
	Filename string `json:"filename" doc:"A .gguf file of it" maxlen:"400"`
	Revision string `json:"revision,omitempty" doc:"Branch, tag or commit" maxlen:"100"`
	Wait     *int   `json:"wait_seconds,omitempty" doc:"Default 20; repeat to see progress" min:"0" max:"300"`
	Cancel   bool   `json:"cancel,omitempty" doc:"End it; what it has is kept"`
}

type downloadResult struct {
	State      string   `json:"state"` // downloading, downloaded or cancelled
	Repo       string   `json:"repo"`
	Revision   string   `json:"revision"` // the commit that it is pinned to
	Files      []string `json:"files"`    // on this host
	ModelID    string   `json:"model_id,omitzero"`
	DoneBytes  int64    `json:"done_bytes"`
	TotalBytes int64    `json:"total_bytes"`
	Percent    float64  `json:"percent"`
	Hint       string   `json:"hint,omitzero"`
}

const (
	defaultWait  = 20 * time.Second
	answerMargin = time.Second // before the call's deadline an answer still leaves
	reportEvery  = 500 * time.Millisecond
)

// download gets a model from the hub, with every part of it. It returns when
// the model is there and verified, or after a while with the progress, and the
// download goes on. Faults: see hub.Downloads.Start and hub.Hub.Fetch. A call
// that its client cancels ends the download.
func (m model) download(ctx context.Context, _ caller.Caller, a downloadArgs) (downloadResult, error) {
	if a.Cancel {
		return m.cancelDownload(a)
	}
	job, err := m.downloads.Start(ctx, a.Repo, a.Revision, a.Filename)
	if err != nil {
		return downloadResult{}, err
	}
	wait := defaultWait
	if a.Wait != nil {
		wait = time.Duration(*a.Wait) * time.Second
	}
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, max(time.Until(end)-answerMargin, 0))
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	stop := tool.Reporting(ctx, reportEvery, func() tool.Progress { return spoken(job.Progress()) })
	p := job.Wait(waiting)
	stop()
	if !p.Finished && errors.Is(ctx.Err(), context.Canceled) {
		job.Cancel()
		m.downloads.Forget(job)
		return downloadResult{}, ctx.Err()
	}
	if !p.Finished {
		r := show(job, p, "downloading")
		r.Hint = fmt.Sprintf("it goes on, %s a second so far; call again with the same arguments for the progress, or with cancel to end it", hardware.Size(rate(p)))
		return r, nil
	}
	m.downloads.Forget(job)
	if errors.Is(p.Err, context.Canceled) {
		return downloadResult{}, fault.New(fault.Cancelled, "the download was cancelled; what it has is kept, and the next one goes on from there")
	}
	if p.Err != nil {
		return downloadResult{}, p.Err
	}
	r := show(job, p, "downloaded")
	if r.ModelID, err = m.host.Models.Name("filename", job.Files[0].Name()); err != nil {
		return downloadResult{}, err
	}
	return r, nil
}

func (m model) cancelDownload(a downloadArgs) (downloadResult, error) {
	if err := errors.Join(hub.CheckRepo("repo", a.Repo), hub.CheckPath("filename", a.Filename)); err != nil {
		return downloadResult{}, err
	}
	job := m.downloads.Find(a.Repo, a.Revision, a.Filename)
	if job == nil {
		return downloadResult{}, fault.New(fault.NotFound, "no download of %s from %s runs here", a.Filename, a.Repo)
	}
	job.Cancel()
	m.downloads.Forget(job)
	return show(job, job.Progress(), "cancelled"), nil
}

func show(job *hub.Job, p hub.Progress, state string) downloadResult {
	r := downloadResult{State: state, Repo: job.Repo.ID, Revision: job.Repo.Revision, DoneBytes: p.Done, TotalBytes: p.Total}
	for _, f := range job.Files {
		r.Files = append(r.Files, f.Name())
	}
	if p.Total > 0 {
		r.Percent = float64(p.Done*1000/p.Total) / 10
	}
	return r
}

// spoken is a download's progress in bytes, for whoever listens to the call.
func spoken(p hub.Progress) tool.Progress {
	return tool.Progress{Done: float64(p.Done), Total: float64(p.Total),
		Message: fmt.Sprintf("%s of %s, %s a second", hardware.Size(p.Done), hardware.Size(p.Total), hardware.Size(rate(p)))}
}

// rate is bytes per second.
func rate(p hub.Progress) int64 {
	return int64(float64(p.Done) / max(p.Elapsed.Seconds(), 0.001))
}
