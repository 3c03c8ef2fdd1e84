package llama

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"pawgate/internal/client/llama/gguf"
	"pawgate/internal/client/llama/hardware"
	"pawgate/internal/client/llama/library"
	"pawgate/internal/client/llama/supervise"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// Server is a server of this host and whether it answers.
type Server struct {
	supervise.Server
	// Answers is told for a ready server: whether it took a request just now.
	Answers *bool `json:"answers,omitzero"`
}

// Loaded are the servers of this host, those that failed included.
func (h *Host) Loaded(context.Context) []Server {
	servers := h.servers.List()
	all := make([]Server, len(servers))
	for i, v := range servers {
		all[i].Server = v
		if v.State == supervise.Ready {
			all[i].Answers = new(h.servers.Answers(v))
		}
	}
	return all
}

// Load is a request to have a model running.
type Load struct {
	Options
	TTL   *time.Duration // idle time; nil: the host's own, 0: for ever
	Force bool           // do not compare memory first
	Wait  time.Duration  // how long to wait until it is ready
}

// Loading is the outcome of a load.
type Loading struct {
	Server supervise.Server
	Need   Need
}

// LoadModel has a llama-server load a model. It waits until the model is
// ready, or Wait has passed and it is still starting. It fails with
// fault.NotFound, fault.Conflict (no room, other options), a fault of the
// failure's own reason, or fault.NotConfigured when the host has no
// llama-server.
func (h *Host) LoadModel(ctx context.Context, parameter, id string, l Load) (Loading, error) {
	entry, err := h.Models.Find(parameter, id)
	if err != nil {
		return Loading{}, err
	}
	header, err := h.Header(entry)
	if err != nil {
		return Loading{}, broken(entry, err)
	}
	path, err := h.Models.Path(entry.Main())
	if err != nil {
		return Loading{}, fmt.Errorf("find model file: %w", err)
	}
	program, err := exec.LookPath(h.program)
	if err != nil {
		return Loading{}, fault.New(fault.NotConfigured, "this host has no llama-server; the operator installs it or sets PAWGATE_LLAMA_SERVER")
	}
	tokens := contextOf(l.ContextSize, header)
	flags, err := l.flags(tokens)
	if err != nil {
		return Loading{}, err
	}
	args := append([]string{"-m", path, "--alias", entry.ID, "--no-webui"}, flags...)
	spec := supervise.Spec{Kind: supervise.Model, Name: entry.ID, Program: program, Args: args, Shown: l.shown(tokens), TTL: h.ttl(l)}
	return h.start(ctx, spec, NeedOf(entry.Size, header.CacheBytesPerToken, tokens), l)
}

// StartLlamafile runs a llamafile's own server. It waits and fails as
// LoadModel does.
func (h *Host) StartLlamafile(ctx context.Context, parameter, name string, l Load) (Loading, error) {
	entry, err := h.Llamafiles.Find(parameter, name)
	if err != nil {
		return Loading{}, err
	}
	path, err := h.Llamafiles.Path(entry.Main())
	if err != nil {
		return Loading{}, fmt.Errorf("find llamafile: %w", err)
	}
	tokens := contextOf(l.ContextSize, gguf.Header{})
	flags, err := l.flags(tokens)
	if err != nil {
		return Loading{}, err
	}
	spec := supervise.Spec{Kind: supervise.Llamafile, Name: entry.ID, Program: path, Args: append([]string{"--server"}, flags...),
		Shown: l.shown(tokens), TTL: h.ttl(l)}
	return h.start(ctx, spec, NeedOf(entry.Size, 0, tokens), l)
}

func (h *Host) ttl(l Load) time.Duration {
	if l.TTL != nil {
		return *l.TTL
	}
	return h.idleTTL
}

// answerMargin is how long before the call's deadline a waiting load answers.
const answerMargin = time.Second

func (h *Host) start(ctx context.Context, spec supervise.Spec, need Need, l Load) (Loading, error) {
	release, err := h.reserve(ctx, spec, need, l)
	if err != nil {
		return Loading{}, err
	}
	wait := l.Wait
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, max(time.Until(end)-answerMargin, 0))
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	stop := tool.Reporting(ctx, reportEvery, h.startProgress(spec))
	v, err := h.servers.Start(waiting, spec)
	stop()
	if err != nil || v.State != supervise.Starting {
		release()
	} else { // it still loads; what it will take stays reserved until it has it
		time.AfterFunc(reserveFor, release)
	}
	if err != nil {
		return Loading{}, err
	}
	switch v.State {
	case supervise.Failed:
		return Loading{}, fault.New(fault.Reason(v.Failure.Reason), "%s did not start: %s", v.Name, v.Failure.Advice).With("log", v.Failure.Log)
	case supervise.Stopped, supervise.Stopping:
		return Loading{}, fault.New(fault.Conflict, "%s was stopped while it was starting", v.Name)
	}
	return Loading{Server: v, Need: need}, nil
}

// reportEvery is how often a start tells how far it is.
const reportEvery = 500 * time.Millisecond

// startProgress gives the steps of a start: 0 prepared, 1 the process runs, 2 it
// listens and loads the model, 3 ready. How long a step takes nobody knows, so
// within one it creeps towards the next, which shows the client that it lives.
func (h *Host) startProgress(spec supervise.Spec) func() tool.Progress {
	began, step, since := time.Now(), 0, time.Now()
	return func() tool.Progress {
		reached, doing := h.step(spec)
		if reached > step {
			step, since = reached, time.Now()
		}
		inside := time.Since(since).Seconds()
		return tool.Progress{Done: float64(step) + 0.9*inside/(inside+typicalLoad), Total: 3,
			Message: fmt.Sprintf("%s %s, for %s", spec.Name, doing, time.Since(began).Round(time.Second))}
	}
}

// typicalLoad is after how many seconds a step shows as half done.
const typicalLoad = 20

func (h *Host) step(spec supervise.Spec) (reached int, doing string) {
	for _, v := range h.servers.List() {
		switch {
		case v.Kind != spec.Kind || v.Name != spec.Name:
		case v.State == supervise.Ready:
			return 3, "is ready"
		case v.Phases.Listening > 0:
			return 2, "loads its weights"
		default:
			return 1, "starts its server"
		}
	}
	return 0, "is prepared"
}

// reserveFor is how long the memory of a model that is still loading counts as
// taken.
const reserveFor = time.Minute

// reserve compares what a model needs with what is free, and keeps it for the
// model while it loads, so that two loads do not count on the same memory.
func (h *Host) reserve(ctx context.Context, spec supervise.Spec, need Need, l Load) (release func(), err error) {
	if l.Force || h.running(spec) {
		return func() {}, nil
	}
	free, how, known := room(h.Hardware.Read(ctx), l.GPULayers == nil || *l.GPULayers > 0)
	name := string(spec.Kind) + "/" + spec.Name
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, again := h.reserved[name]; again {
		return func() {}, nil
	}
	var promised int64
	for _, bytes := range h.reserved {
		promised += bytes
	}
	if known && need.Total > free-promised {
		if promised > 0 {
			how += fmt.Sprintf(", %s of it promised to models that are loading", hardware.Size(promised))
		}
		return nil, fault.New(fault.Reason(supervise.OutOfMemory), "%s does not fit: it needs %s, and %s; "+
			"unload another, take a smaller context_size or quantisation, or set force to try all the same", spec.Name, need.How, how).
			With("need", need).With("free_bytes", free-promised)
	}
	h.reserved[name] = need.Total
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.reserved, name)
	}, nil
}

func (h *Host) running(spec supervise.Spec) bool {
	for _, v := range h.servers.List() {
		if v.Kind == spec.Kind && v.Name == spec.Name && v.State != supervise.Failed {
			return true
		}
	}
	return false
}

// Unload ends the server of a model or llamafile; ok is false when there was
// none.
func (h *Host) Unload(ctx context.Context, kind supervise.Kind, name string) (ok bool, err error) {
	return h.servers.Stop(ctx, kind, name)
}

// Lease is the right to talk to a loaded model; see supervise.Lease.
func (h *Host) Lease(name string) (supervise.Lease, error) { return h.servers.Lease(name) }

func broken(e library.Entry, err error) error {
	if errors.Is(err, gguf.ErrCorrupt) {
		return fault.New(fault.Reason(supervise.CorruptModel), "model %s cannot be loaded: %s; download it again", e.ID, err)
	}
	return fmt.Errorf("read model header: %w", err)
}

// At is the endpoint of a lease. Its connections are the host's own.
func (h *Host) At(l supervise.Lease) Endpoint {
	return Endpoint{URL: l.URL + "/v1", Key: l.Key, Client: h.loopback}
}

// Clean removes the paths of the host from a text of a server.
func Clean(text string) string { return supervise.Clean(text) }

// Ready are the servers that can answer now. Nobody is asked; see Loaded.
func (h *Host) Ready() []supervise.Server {
	return slices.DeleteFunc(h.servers.List(), func(v supervise.Server) bool { return v.State != supervise.Ready })
}
