package inference_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/category/inference"
	"pawgate/internal/fault"
	"pawgate/internal/tool/tooltest"
)

type modeAnswer struct {
	Mode    string
	SetBy   string `json:"set_by"`
	Changed bool
	Answers string
	Loaded  []string
	Remote  bool `json:"remote_configured"`
}

func TestInferenceMode(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{RemoteURL: "https://api.example.com/v1"})
	who := tooltest.Who("a")
	for _, c := range []struct {
		args string
		want modeAnswer
	}{
		{`{}`, modeAnswer{Mode: "auto", Answers: "remote"}},
		{`{"mode":"off"}`, modeAnswer{Mode: "off", SetBy: "a (test)", Changed: true, Answers: "nobody"}},
		{`{}`, modeAnswer{Mode: "off", SetBy: "a (test)", Answers: "nobody"}},
		{`{"mode":"off"}`, modeAnswer{Mode: "off", SetBy: "a (test)", Answers: "nobody"}},
		{`{"mode":"local"}`, modeAnswer{Mode: "local", SetBy: "a (test)", Changed: true, Answers: "nobody"}},
		{`{"mode":"remote"}`, modeAnswer{Mode: "remote", SetBy: "a (test)", Changed: true, Answers: "remote"}},
		{`{"mode":"auto"}`, modeAnswer{Mode: "auto", SetBy: "a (test)", Changed: true, Answers: "remote"}},
	} {
		c.want.Remote, c.want.Loaded = true, []string{}
		got := tooltest.OK[modeAnswer](t, b.cat, who, "inference_mode", c.args)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.args, diff)
		}
	}
	tooltest.Invalid(t, b.cat, who, "inference_mode", `{"mode":"direct"}`, "mode")
}

// The mode is a row: another process, and the status, see it.
func TestInferenceMode_is_kept(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{})
	tooltest.OK[modeAnswer](t, b.cat, tooltest.Who("a"), "inference_mode", `{"mode":"local"}`)
	if got := tooltest.OK[status](t, b.cat, tooltest.Who("b"), "inference_status", `{}`); got.Mode.Mode != "local" || got.Mode.SetBy != "a (test)" {
		t.Errorf("status: %+v", got.Mode)
	}
	tooltest.Fault(t, b.cat, tooltest.Who("a"), "inference_mode", `{"mode":"remote"}`, fault.NotConfigured)
	if got := tooltest.OK[modeAnswer](t, b.cat, tooltest.Who("a"), "inference_mode", `{}`); got.Mode != "local" {
		t.Errorf("a refused change changed it: %+v", got)
	}
}
