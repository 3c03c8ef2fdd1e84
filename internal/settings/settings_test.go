package settings

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type nested struct {
	URL string `envconfig:"TEST_URL" desc:"Where"`
}

type sample struct {
	nested
	Inner     nested2
	Name      string            `envconfig:"TEST_NAME" default:"paw" desc:"What"`
	Functions map[string]string `ignored:"true" prefix:"TEST_FUNCTION_" desc:"Which"`
}

type nested2 struct {
	Key string `envconfig:"TEST_KEY" desc:"Secret"`
}

// TestReferences: every kind of reference, and the error of each names the
// setting and nothing of a value.
func TestReferences(t *testing.T) {
	aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=id/") {
			t.Errorf("not signed: %s", r.Header.Get("Authorization"))
		}
		var in struct{ SecretId, Name string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		switch {
		case in.SecretId == "db":
			_ = json.NewEncoder(w).Encode(map[string]string{"SecretString": `{"url":"postgres://secret","port":5432}`})
		case in.Name == "/paw/key":
			_ = json.NewEncoder(w).Encode(map[string]any{"Parameter": map[string]string{"Value": "ssm-secret"}})
		default:
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws#ResourceNotFoundException", "message": "arn:aws:123456789012"})
		}
	}))
	defer aws.Close()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("file-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": aws.URL, "AWS_ENDPOINT_URL_SSM": aws.URL, "AWS_REGION": "eu-west-1",
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "TEST_OTHER": "env-secret",
	} {
		t.Setenv(name, value)
	}
	for _, c := range []struct{ value, want, refused string }{
		{"plain", "plain", ""},
		{"https://host/path", "https://host/path", ""},
		{"postgres://u:p@h/db", "postgres://u:p@h/db", ""},
		{"env://TEST_OTHER", "env-secret", ""},
		{"file://" + file, "file-secret", ""},
		{"secretsmanager://db#url", "postgres://secret", ""},
		{"secretsmanager://db#port", "5432", ""},
		{"secretsmanager://db", `{"url":"postgres://secret","port":5432}`, ""},
		{"ssm:///paw/key", "ssm-secret", ""},
		{"env://TEST_MISSING", "", "H70 TEST_KEY: the environment has no TEST_MISSING"},
		{"file:///nowhere/at/all", "", "TEST_KEY: the file"},
		{"secretsmanager://none#x", "", "ResourceNotFoundException"},
		{"secretsmanager://db#missing", "", "no member missing"},
		{"ssm://none", "", "ResourceNotFoundException"},
		{"secret://local/123456789012", "", "it looks like a reference, but there are only env://NAME"}, // B-41, W-27
		{"ENV://TEST_OTHER", "", "it looks like a reference"},
		{"secretmanager://db#url", "", "it looks like a reference"},
		{"pass word://x", "pass word://x", ""},
	} {
		t.Run(c.value, func(t *testing.T) {
			t.Setenv("TEST_KEY", c.value)
			var s sample
			err := Load(t.Context(), &s)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(c.refused, "H70 ")) || !strings.Contains(err.Error(), "TEST_KEY") {
					t.Fatalf("error %v, want %q", err, c.refused)
				}
				if strings.Contains(err.Error(), "123456789012") || strings.Contains(err.Error(), "nowhere") {
					t.Errorf("the error tells too much: %v", err)
				}
				return
			}
			if err != nil || s.Inner.Key != c.want {
				t.Errorf("got %q, %v", s.Inner.Key, err)
			}
		})
	}
}

func TestPrefix(t *testing.T) {
	t.Setenv("TEST_FUNCTION_MEMORY", "paw-memory:live")
	t.Setenv("TEST_FUNCTION_EMPTY", "")
	var s sample
	if err := Load(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"memory": "paw-memory:live"}, s.Functions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	want := []Setting{
		{Name: "TEST_URL", About: "Where"}, {Name: "TEST_KEY", About: "Secret"},
		{Name: "TEST_NAME", Default: "paw", About: "What"}, {Name: "TEST_FUNCTION_…", About: "Which"},
	}
	if diff := cmp.Diff(want, List(sample{}, nested{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A value of a wrong type names its setting and what belongs there, and is not
// quoted: it may be a secret that went into the wrong place.
func TestWrongType(t *testing.T) {
	for name, want := range map[string]string{
		"X_NUMBER": "X_NUMBER must be a whole number", "X_SHARE": "X_SHARE must be a number", "X_ON": "X_ON must be true or false",
		"X_WAIT": "X_WAIT must be a length of time such as 30s or 5m", "X_LEVEL": "X_LEVEL must be DEBUG, INFO, WARN or ERROR",
		"X_PORTS": "X_PORTS must be whole numbers separated by commas",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "hunter2")
			var cfg struct {
				Number int           `envconfig:"X_NUMBER"`
				Share  float64       `envconfig:"X_SHARE"`
				On     bool          `envconfig:"X_ON"`
				Wait   time.Duration `envconfig:"X_WAIT"`
				Level  slog.Level    `envconfig:"X_LEVEL"`
				Ports  []int         `envconfig:"X_PORTS"`
			}
			if err := Load(t.Context(), &cfg); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
