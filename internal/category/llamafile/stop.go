package llamafile

import (
	"context"
	"strings"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/client/llama/library"
	"pawgate/internal/client/llama/supervise"
	"pawgate/internal/fault"
)

type stopArgs struct {
	File string `json:"file,omitempty" doc:"Which llamafile or model; left out: every llamafile" maxlen:"220"`
}

type stopResult struct {
	State   string   `json:"state"`   // always stopped
	Stopped []string `json:"stopped"` // what ran until now
}

// stopTimeout bounds the wait for the servers to end; they are killed before.
const stopTimeout = 25 * time.Second

// stop ends servers. That nothing runs is no error; it fails with
// fault.NotFound when the named file neither runs nor exists.
func (c llamafile) stop(ctx context.Context, _ caller.Caller, a stopArgs) (stopResult, error) {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	r := stopResult{State: "stopped", Stopped: []string{}}
	if a.File != "" {
		return c.stopOne(ctx, a.File, r)
	}
	for _, v := range c.host.Loaded(ctx) {
		if v.Kind != supervise.Llamafile {
			continue
		}
		ok, err := c.host.Unload(ctx, v.Kind, v.Name)
		if err != nil {
			return stopResult{}, err
		}
		if ok {
			r.Stopped = append(r.Stopped, v.Name)
		}
	}
	return r, nil
}

func (c llamafile) stopOne(ctx context.Context, file string, r stopResult) (stopResult, error) {
	if err := library.CheckName("file", file); err != nil {
		return stopResult{}, err
	}
	known := false
	for _, kind := range []struct {
		kind  supervise.Kind
		files *library.Library
	}{{supervise.Llamafile, c.host.Llamafiles}, {supervise.Model, c.host.Models}} {
		if kind.kind == supervise.Llamafile && strings.HasSuffix(file, ggufEnding) {
			continue
		}
		name, err := kind.files.Name("file", file)
		if err != nil {
			return stopResult{}, err
		}
		ok, err := c.host.Unload(ctx, kind.kind, name)
		if err != nil {
			return stopResult{}, err
		}
		if ok {
			r.Stopped = append(r.Stopped, name)
		}
		if _, err := kind.files.Find("file", file); err == nil {
			known = true
		}
	}
	if len(r.Stopped) == 0 && !known {
		return stopResult{}, fault.New(fault.NotFound, "no llamafile or model %s on this host; llamafile_list shows those there are", file)
	}
	return r, nil
}
