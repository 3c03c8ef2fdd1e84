package listen_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"pawgate/local/listen"
)

func TestServeLetsRunningCallsFinish(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	arrived, goOn := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-goOn
		_, _ = io.WriteString(w, "whole")
	})
	served := make(chan error, 1)
	go func() { served <- listen.Serve(ctx, listener, nil, handler) }()
	body := make(chan string, 1)
	go func() { body <- get(t, "http://"+listener.Addr().String()) }()
	<-arrived
	stop()
	close(goOn)
	if got := <-body; got != "whole" {
		t.Errorf("the running call got %q", got)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestServeFailsWithItsListener(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	if err := listen.Serve(t.Context(), listener, nil, http.NotFoundHandler()); err == nil {
		t.Error("no error from a closed listener")
	}
}

func get(t *testing.T, url string) string {
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Error(err)
		return ""
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
