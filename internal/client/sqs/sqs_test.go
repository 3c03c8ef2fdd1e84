package sqs_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/client/sqs"
)

func TestSend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, answer string
		code         int
		refused      []string
		problem      string
	}{
		{"all accepted", `{"Successful":[{"Id":"0"},{"Id":"1"}]}`, 200, nil, ""},
		{"one refused", `{"Successful":[{"Id":"0"}],"Failed":[{"Id":"1","SenderFault":false,"Code":"InternalError"}]}`, 200, []string{"b"}, ""},
		{"an id that was not sent", `{"Failed":[{"Id":"7"}]}`, 200, nil, ""},
		{"no right to", `{"__type":"com.amazonaws.sqs#AccessDeniedException","message":"account 123456789012"}`, 403, nil, "AccessDeniedException"},
		{"no JSON", `<html>`, 200, nil, "could not be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got struct {
				QueueURL string `json:"QueueUrl"`
				Entries  []struct{ ID, MessageBody string }
			}
			var header http.Header
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				header = req.Header
				_ = json.NewDecoder(req.Body).Decode(&got)
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(c.answer))
			}))
			defer server.Close()
			q, ok := sqs.New(sqs.Config{QueueURL: "https://sqs/1/work", Region: "eu-central-1", AccessKeyID: "id", SecretKey: "key", SessionToken: "session", Endpoint: server.URL})
			if !ok {
				t.Fatal("no queue")
			}
			refused, err := q.Send(t.Context(), []string{"a", "b"})
			if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), "123456789012")) {
				t.Fatalf("error %v, want %q", err, c.problem)
			}
			if diff := cmp.Diff(c.refused, refused); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
			if got.QueueURL != "https://sqs/1/work" || len(got.Entries) != 2 || got.Entries[1].MessageBody != "b" || got.Entries[0].ID == got.Entries[1].ID {
				t.Errorf("sent %+v", got)
			}
			if header.Get("X-Amz-Target") != "AmazonSQS.SendMessageBatch" || !strings.Contains(header.Get("Authorization"), "/eu-central-1/sqs/aws4_request") || header.Get("X-Amz-Security-Token") != "session" {
				t.Errorf("headers %v", header)
			}
		})
	}
	if _, ok := sqs.New(sqs.Config{}); ok {
		t.Error("a queue without a URL")
	}
	q, _ := sqs.New(sqs.Config{QueueURL: "x", Endpoint: "http://127.0.0.1:1"})
	if _, err := q.Send(t.Context(), []string{"a"}); err == nil || strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("an endpoint that is away: %v", err)
	}
	if _, err := q.Send(t.Context(), make([]string, 11)); err == nil {
		t.Error("eleven messages at once")
	}
}

// TestSendFollowsNobody: a signed request is for one place.
func TestSendFollowsNobody(t *testing.T) {
	t.Parallel()
	followed := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	q, _ := sqs.New(sqs.Config{QueueURL: "x", Endpoint: server.URL})
	if _, err := q.Send(t.Context(), []string{"a"}); err == nil || followed {
		t.Errorf("%v, followed %v", err, followed)
	}
}
