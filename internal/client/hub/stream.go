package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"pawgate/internal/fault"
)

// all fetches until the file is whole, over breaks.
func (f *fetch) all(ctx context.Context) error {
	for try := 0; f.have < f.src.Size; {
		before := f.have
		err := f.stream(ctx)
		var again *broken
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, syscall.ENOSPC):
			_ = f.root.Remove(f.partPath())
			return fault.New(InsufficientStorage, "the host's disk is full; what was downloaded of %s was removed", f.src.Name())
		case !errors.As(err, &again):
			return err
		}
		if try++; f.have > before {
			try = 1
		}
		if try > tries {
			return again.Fault
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.h.limits.backoff(try - 1)):
		}
	}
	return nil
}

var errStalled = errors.New("no bytes for too long")

// stream makes one request and writes what it brings.
func (f *fetch) stream(ctx context.Context) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	watch := time.AfterFunc(f.h.limits.stall, func() { giveUp(errStalled) })
	defer watch.Stop()
	header := http.Header{"Accept-Encoding": {"identity"}}
	if f.have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", f.have))
	}
	resp, err := f.h.request(ctx, "/"+f.src.Repo+"/resolve/"+f.src.Revision+"/"+f.src.Path, nil, header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := f.begin(resp); err != nil {
		return err
	}
	return f.copy(resp.Body, watch)
}

// begin checks that the answer goes on where the file ends; a server that
// sends the whole again makes the file begin again.
func (f *fetch) begin(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK:
		if f.have > 0 {
			return f.restart()
		}
		return nil
	case http.StatusRequestedRangeNotSatisfiable:
		return errors.Join(f.restart(), &broken{fault.New(fault.Unavailable, "the model hub refuses to go on with %s", f.src.Name()), nil})
	case http.StatusPartialContent:
		want := fmt.Sprintf("bytes %d-%d/%d", f.have, f.src.Size-1, f.src.Size)
		if got := resp.Header.Get("Content-Range"); !strings.EqualFold(got, want) {
			return errors.Join(f.restart(), &broken{fault.New(fault.Unavailable, "the model hub sends another part of %s than asked for", f.src.Name()), nil})
		}
		return nil
	}
	return refused(resp, f.src.Repo)
}

// chunk is how much is read at a time, in bytes.
const chunk = 1 << 20

func (f *fetch) copy(body io.Reader, watch *time.Timer) error {
	buf := make([]byte, chunk)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			watch.Reset(f.h.limits.stall)
			if f.have+int64(n) > f.src.Size {
				_ = f.restart()
				return fault.New(ChecksumMismatch, "the model hub sends more of %s than it said there is; try again later", f.src.Name())
			}
			if _, err := f.part.Write(buf[:n]); err != nil {
				return fmt.Errorf("write download: %w", err)
			}
			f.sum.Write(buf[:n])
			f.have += int64(n)
			f.progress(f.have)
		}
		switch {
		case errors.Is(err, io.EOF) && f.have == f.src.Size:
			return nil
		case err != nil: // also an end that came too early
			return unreachable(err)
		}
	}
}
