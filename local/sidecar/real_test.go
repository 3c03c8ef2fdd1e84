package sidecar_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawgate/internal/client/llama"
	"pawgate/internal/tool"
	"pawgate/local/sidecar"
)

// real is a sidecar with a real llama-server and a real small model. "make real"
// prepares both (see llama-server.sh) and names them in
// PAWGATE_TEST_LLAMA_SERVER and PAWGATE_TEST_MODEL. Loads ask for one thread:
// several wait for each other by spinning, which takes minutes where other work
// wants the processor too.
type real struct {
	running
	t    *testing.T
	data string
}

const realKey = "paw_test_real"

func startReal(t *testing.T) real {
	t.Helper()
	server, model := os.Getenv("PAWGATE_TEST_LLAMA_SERVER"), os.Getenv("PAWGATE_TEST_MODEL")
	if server == "" || model == "" {
		missing := t.Skip
		if os.Getenv("CI") == "true" {
			missing = t.Fatal
		}
		missing("PAWGATE_TEST_LLAMA_SERVER and PAWGATE_TEST_MODEL name no llama-server and no GGUF file; make real prepares them")
	}
	data := t.TempDir()
	if err := os.Mkdir(filepath.Join(data, "models"), 0o755); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(data, "models", "real.gguf")
	if err := os.Link(model, target); err != nil { // a copy where the folders are on two disks
		b, err := os.ReadFile(model)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := real{t: t, data: data, running: start(t, func(c *sidecar.Config) {
		c.Llama = llama.Config{Data: data, Server: server, Restarts: 3}
		c.Inference.Feedback = true
	})}
	sum := sha256.Sum256([]byte(realKey))
	if _, err := r.db.Exec(t.Context(), `insert into agents (id) values ('a')`); err != nil {
		t.Fatal(err)
	}
	if _, err := r.db.Exec(t.Context(), `insert into api_keys (id, agent_id, hint, hash, scopes) values ('k', 'a', '', $1, '{*}')`, sum[:]); err != nil {
		t.Fatal(err)
	}
	return r
}

// tool calls a tool through the sidecar's HTTP, as the router does.
func (r real) tool(category, name, args string) (map[string]any, *tool.Outcome) {
	r.t.Helper()
	c := call(r.t, r.signer, category, name, args)
	c.Deadline = time.Now().Add(3 * time.Minute)
	_, answer := post(r.t, http.DefaultClient, r.url+"/call/"+category, c)
	var out tool.Outcome
	if err := json.Unmarshal([]byte(answer), &out); err != nil {
		r.t.Fatalf("%s: %v in %s", name, err, answer)
	}
	var ok map[string]any
	if out.OK != nil {
		if err := json.Unmarshal(out.OK, &ok); err != nil {
			r.t.Fatal(err)
		}
	}
	return ok, &out
}

func (r real) must(category, name, args string) map[string]any {
	r.t.Helper()
	ok, out := r.tool(category, name, args)
	if ok == nil {
		r.t.Fatalf("%s %s: %+v %+v", name, args, out.Fault, out.Invalid)
	}
	return ok
}

func (r real) api(method, path, body string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+realKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (r real) chat(body string) (int, string) { return r.api("POST", "/v1/chat/completions", body) }

const ask = `"max_tokens":8,"temperature":0,"messages":[{"role":"user","content":"Say hello."}]`

// The whole life of a model on a real server: load, list, chat, stream, kill,
// recover, embeddings, unload.
func TestReal_life(t *testing.T) {
	r := startReal(t)
	list := fmt.Sprint(r.must("model", "model_list", `{}`))
	if !strings.Contains(list, "architecture:") || !strings.Contains(list, "state:unloaded") {
		t.Errorf("list: %s", list)
	}
	loaded := r.must("model", "model_load", `{"model_id":"real","context_size":512,"wait_seconds":170,"args":["--parallel","1","--threads","1"]}`)
	if loaded["state"] != "ready" {
		t.Fatalf("load: %v", loaded)
	}
	t.Logf("phases of the start: %v", loaded["start_phases"])
	if code, text := r.chat(`{` + ask + `}`); code != 200 || !strings.Contains(text, `"content":"`) {
		t.Errorf("chat: %d %s", code, text)
	}
	if code, text := r.chat(`{"stream":true,` + ask + `}`); code != 200 || !strings.HasSuffix(strings.TrimSpace(text), "data: [DONE]") || strings.Count(text, "data: ") < 4 {
		t.Errorf("stream: %d %s", code, text)
	}
	if code, text := r.api("GET", "/v1/models", ""); code != 200 || !strings.Contains(text, `"id":"real"`) {
		t.Errorf("models: %d %s", code, text)
	}
	r.killServer()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if code, text := r.chat(`{` + ask + `}`); code == 200 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("after the kill: %d %s", code, text)
		}
	}
	if status := fmt.Sprint(r.must("inference", "inference_status", `{}`)); !strings.Contains(status, "restarts:1") || !strings.Contains(status, "answers:true") {
		t.Errorf("status: %s", status)
	}
	if out := r.must("model", "model_unload", `{"model_id":"real"}`); out["changed"] != true {
		t.Errorf("unload: %v", out)
	}
	if status := fmt.Sprint(r.must("llamafile", "llamafile_list", `{}`)); !strings.Contains(status, "servers:[]") {
		t.Errorf("after a clean unload: %s", status)
	}
	r.must("llamafile", "llamafile_start", `{"file":"real.gguf","context_size":512,"wait_seconds":170,"args":["--embeddings","--pooling","mean","--threads","1"]}`)
	if code, text := r.api("POST", "/v1/embeddings", `{"input":"hello"}`); code != 200 || !strings.Contains(text, `"embedding":[`) {
		t.Errorf("embeddings: %d %.300s", code, text)
	}
}

// killServer ends the model's process as the system would.
func (r real) killServer() {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.data, "llama", "model-real.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	var record struct{ Process struct{ PID int } }
	if err := json.Unmarshal(b, &record); err != nil || record.Process.PID < 2 {
		r.t.Fatalf("record %s: %v", b, err)
	}
	if err := syscall.Kill(record.Process.PID, syscall.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
}

// What a real server makes of bad requests: an error of the API, no path, and
// a server that lives on.
func TestReal_INF_11_bad_requests(t *testing.T) {
	r := startReal(t)
	r.must("model", "model_load", `{"model_id":"real","context_size":512,"wait_seconds":170,"args":["--threads","1"]}`)
	for name, body := range map[string]string{
		"second_system_message": `{"max_tokens":2,"messages":[{"role":"system","content":"a"},{"role":"user","content":"b"},{"role":"system","content":"c"}]}`,
		"unknown_role":          `{"max_tokens":2,"messages":[{"role":"clown","content":"b"}]}`,
		"no_role":               `{"max_tokens":2,"messages":[{"content":"b"}]}`,
		"content_is_a_number":   `{"max_tokens":2,"messages":[{"role":"user","content":7}]}`,
		"messages_is_a_string":  `{"max_tokens":2,"messages":"b"}`,
		"bad_grammar":           `{"max_tokens":2,"grammar":"root ::= (","messages":[{"role":"user","content":"b"}]}`,
		"longer_than_context":   `{"max_tokens":2,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 2000) + `"}]}`,
		"picture":               `{"max_tokens":2,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]}]}`,
	} {
		code, text := r.chat(body)
		if code >= 500 || strings.Contains(text, r.data) || strings.Contains(text, "root:") {
			t.Errorf("%s: %d %.400s", name, code, text)
		}
		t.Logf("%s: %d %.160s", name, code, text)
	}
	if code, text := r.api("POST", "/v1/embeddings", `{"input":"x"}`); code != 400 {
		t.Errorf("embeddings of a server for text: %d %s", code, text)
	}
	if code, text := r.chat(`{` + ask + `}`); code != 200 {
		t.Errorf("afterwards: %d %s", code, text)
	}
}

// A real server's own failures get their reasons.
func TestReal_failures(t *testing.T) {
	r := startReal(t)
	b, err := os.ReadFile(filepath.Join(r.data, "models", "real.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	// Its header and its size are right; a tensor has another name.
	if err := os.WriteFile(filepath.Join(r.data, "models", "renamed.gguf"), bytes.Replace(b, []byte("token_embd.weight"), []byte("tokem_embd.weight"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{`{"model_id":"renamed","context_size":512,"wait_seconds":100}`, "corrupt_model"},
		{`{"model_id":"real","context_size":1048576,"wait_seconds":100}`, "out_of_memory"},
		{`{"model_id":"real","context_size":1048576,"force":true,"args":["--cache-type-k","f32","--cache-type-v","f32","--flash-attn","off"],"wait_seconds":100}`, "out_of_memory"},
	} {
		_, out := r.tool("model", "model_load", c.args)
		if out.Fault == nil || string(out.Fault.Reason) != c.want {
			t.Errorf("%s: %+v %s", c.args, out.Fault, out.OK)
			continue
		}
		encoded, err := json.Marshal(out.Fault)
		if err != nil || strings.Contains(string(encoded), r.data) {
			t.Errorf("INF-14 %s (%v)", encoded, err)
		}
		t.Logf("%s", encoded)
	}
}

// Feedback changes what a real model says.
func TestReal_feedback(t *testing.T) {
	r := startReal(t)
	r.must("model", "model_load", `{"model_id":"real","context_size":512,"wait_seconds":170,"args":["--threads","1"]}`)
	content := func() string {
		_, text := r.chat(`{` + ask + `}`)
		var answer struct {
			Choices []struct{ Message struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Choices) != 1 {
			t.Fatalf("chat: %s", text)
		}
		return answer.Choices[0].Message.Content
	}
	before := content()
	for range 3 {
		args, err := json.Marshal(map[string]any{"prompt": "Say hello.", "response": before, "reward": -1})
		if err != nil {
			t.Fatal(err)
		}
		r.must("inference", "jitrl_feedback", string(args))
	}
	after := content()
	t.Logf("before %q, after %q", before, after)
	if before == after {
		t.Error("three bad rewards change nothing")
	}
	var n int
	if err := r.db.QueryRow(t.Context(), `select count(*) from inference_feedback where agent_id = 'a' and model = 'real'`).Scan(&n); err != nil || n != 3 {
		t.Errorf("%d records (%v)", n, err)
	}
}
