package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestForms: the example of every row is found as that form, alone, in a
// sentence, in JSON, and in JSON within JSON; and the rest of the text stays.
func TestForms(t *testing.T) {
	t.Parallel()
	r := New()
	for i, f := range forms() {
		t.Run(fmt.Sprintf("%02d_%s", i, f.name), func(t *testing.T) {
			t.Parallel()
			mark := "[redacted:" + f.name + "]"
			if f.example == "" || len(f.hints) == 0 && f.name != "discord" || (f.pattern == "") == (f.find == nil) {
				t.Fatal("a row needs hints, an example, and either a pattern or a function")
			}
			plain := r.String(f.example)
			if !strings.Contains(plain, mark) {
				t.Fatalf("String(%q) = %q", f.example, plain)
			}
			if again := r.String(plain); again != plain {
				t.Errorf("twice: %q, then %q", plain, again)
			}
			for _, around := range []string{"%s", "see %s now", "以下是%s。", "\n%s\n", "(%s)", "a=1&x=%s"} {
				text := fmt.Sprintf(around, f.example)
				if got := r.String(text); !strings.Contains(got, mark) {
					t.Errorf("String(%q) = %q", text, got)
				}
				level1 := encode(t, map[string]any{"a": text, "n": 1})
				checkJSON(t, r, level1, mark)
				checkJSON(t, r, encode(t, map[string]any{"content": []any{map[string]any{"text": level1}}}), mark)
			}
		})
	}
}

func encode(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func checkJSON(t *testing.T, r *Redactor, text, mark string) {
	t.Helper()
	got := r.Bytes([]byte(text))
	if !strings.Contains(string(got), mark) {
		t.Errorf("Bytes(%s) = %s", text, got)
	}
	if !json.Valid(got) {
		t.Errorf("broken JSON: Bytes(%s) = %s", text, got)
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	key := "ghp_" + strings.Repeat("aB3", 12)
	tests := []struct{ name, text, want string }{
		{"nothing", "a b c", "a b c"},
		{"empty", "", ""},
		{"two", key + " and " + key, "[redacted:github] and [redacted:github]"},
		{"end", "x " + key, "x [redacted:github]"},
		{"inside a word", "x" + key, "x" + key},
		{"after an escaped newline", `{"a":"x\n` + key + `"}`, `{"a":"x\n[redacted:github]"}`},
		{"after an escaped ampersand", `"a=1\u0026` + key + `"`, `"a=1\u0026[redacted:github]"`},
		{"after an encoded space", "q=a%20" + key, "q=a%20[redacted:github]"},

		{"dsn", "host=db user=app password=s dbname=x", "host=db user=app password=[redacted:password] dbname=x"},
		{"ado", "Server=db;Password=p@ss!;Database=x", "Server=db;Password=[redacted:password];Database=x"},
		{"environment", "PGPASSWORD=hunter2 psql", "PGPASSWORD=[redacted:password] psql"},
		{"quoted with spaces", `password="correct horse battery" x`, `password="[redacted:password]" x`},
		{"quoted with an escape", `{"password":"a\"b\\","x":1}`, `{"password":"[redacted:password]","x":1}`},
		{"json in json", `{"t":"{\"password\":\"a\\\"b\",\"x\":1}"}`, `{"t":"{\"password\":\"[redacted:password]\",\"x\":1}"}`},
		{"number", `{"password":12345678,"x":1}`, `{"password":"[redacted:password]","x":1}`},
		{"number in json in json", `{"t":"{\"password\":12345678}"}`, `{"t":"{\"password\":\"[redacted:password]\"}"}`},
		{"yaml", "password: hunter2\nuser: x", "password: [redacted:password]\nuser: x"},
		{"spaces and capitals", "Password = hunter2;", "Password = [redacted:password];"},
		{"xml", "<password>hunter</password>", "<password>[redacted:password]</password>"},
		{"python", "{'password': 'hunter', 'x': 1}", "{'password': '[redacted:password]', 'x': 1}"},
		{"chinese", "密碼：hunter2。", "密碼：[redacted:password]。"},
		{"B-49 lower-case bearer", "authorization: bearer 0123456789abcdef", "authorization: bearer [redacted:authorization]"},
		{"B-49 x-api-key", "X-API-Key: 0123-4567-89ab", "X-API-Key: [redacted:api_key]"},
		{"B-49 next to CJK", "金鑰" + key + "請保密", "金鑰[redacted:github]請保密"},
		{"B-49 passphrase, all words", `passphrase="a b c d"`, `passphrase="[redacted:password]"`},
		{"W-14 refresh token of the predecessor", "ddc_" + "refresh_prod_" + strings.Repeat("0a", 32), "[redacted:duduclaw_key]"},
		{"W-14 both halves of an oauth token", "ddc_" + "oauth_" + strings.Repeat("0a", 32) + ".", "[redacted:duduclaw_key]."},

		{"flag", "tool --password hunter --token=0123456789abcdef --api-key 0123456789", "tool --password [redacted:password] --token=[redacted:token] --api-key [redacted:api_key]"},
		{"after an escaped newline, by name", `{"a":"x\npassword=hunter\ntoken=0123456789abcdef"}`, `{"a":"x\npassword=[redacted:password]\ntoken=[redacted:token]"}`},
		{"header with parameters", `Authorization: AWS4-HMAC-SHA256 Credential=x, Signature=y` + "\nHost: h", "Authorization: AWS4-HMAC-SHA256 [redacted:authorization]\nHost: h"},
		{"header in JSON", `{"headers":{"Authorization":"Basic YWxpY2U6eA==","Cookie":"sid=Ab1Cd2Ef3; t=1","Accept":"*/*"}}`, `{"headers":{"Authorization":"Basic [redacted:authorization]","Cookie":"[redacted:cookie]","Accept":"*/*"}}`},
		{"header without a scheme", `{"authorization":"0123456789abcdef"}`, `{"authorization":"[redacted:authorization]"}`},
		{"B-74 token in a URL", "GET https://api.telegram.org/bot123456789:" + "AA" + strings.Repeat("x", 33) + "/getMe: 401", "GET https://api.telegram.org/bot[redacted:telegram]/getMe: 401"},
		{"user without a password", "ssh://git@host:22/x", "ssh://git@host:22/x"},
		{"port and mention", "https://example.com:8080/@user", "https://example.com:8080/@user"},
		{"password with @", "redis://:p@ss@host:6379", "redis://:[redacted:url_password]@host:6379"},
		{"escaped slashes", `"postgres:\/\/u:secret@h\/db"`, `"postgres:\/\/u:[redacted:url_password]@h\/db"`},

		{"placeholder", "password=$PASSWORD token=<your token> secret=*** https://u:<password>@h", "password=$PASSWORD token=<your token> secret=*** https://u:<password>@h"},
		{"reference", `"token":"env://SLACK_TOKEN_1","secret":"secretsmanager://pawgate/slack#token1"`, `"token":"env://SLACK_TOKEN_1","secret":"secretsmanager://pawgate/slack#token1"`},
		{"program text", "password=password, passwd=args.password; password = getpass(); password: string", "password=password, passwd=args.password; password = getpass(); password: string"},
		{"schema", `{"password":{"type":"string"},"secret":true,"token":null}`, `{"password":{"type":"string"},"secret":true,"token":null}`},
		{"end of a string of JSON", `["password:","abc"]`, `["password:","abc"]`},
		{"end of a string of JSON in JSON", `"[\"password:\",\"abc\"]"`, `"[\"password:\",\"abc\"]"`},
		{"a backslash before the end", `["password=\\","abc"]`, `["password=\\","abc"]`},
		{"single quote never closed", `{"a":"password='abc","b":"it's"}`, `{"a":"password='[redacted:password]","b":"it's"}`},
		{"pages", `{"next_page_token":"CAUQAA0123456789","nextPageToken":"CAUQAA0123456789"}`, `{"next_page_token":"CAUQAA0123456789","nextPageToken":"CAUQAA0123456789"}`},
		{"tokens of a model", `{"max_tokens":4096,"total_tokens":123456789012,"token":"hello","tokens":"0123456789abcdef"}`, `{"max_tokens":4096,"total_tokens":123456789012,"token":"hello","tokens":"0123456789abcdef"}`},

		{"pem cut off", "-----BEGIN " + "PRIVATE KEY-----\n" + strings.Repeat("MIIE", 20), "-----BEGIN PRIVATE KEY-----[redacted:private_key]"},
		{"pem in json", `{"k":"-----BEGIN ` + `EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----\n"}`, `{"k":"-----BEGIN EC PRIVATE KEY-----[redacted:private_key]-----END EC PRIVATE KEY-----\n"}`},
		{"pem over two strings", `["-----BEGIN ` + `PRIVATE KEY-----","-----END PRIVATE KEY-----"]`, `["-----BEGIN PRIVATE KEY-----","-----END PRIVATE KEY-----"]`},
		{"certificate", "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----"},
	}
	r := New()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, r.String(tt.text)); diff != "" {
				t.Errorf("String (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, string(r.Bytes([]byte(tt.text)))); diff != "" {
				t.Errorf("Bytes (-want +got)\n%s", diff)
			}
		})
	}
}

// TestString_false: what looks a little like a secret and is none stays as it
// is.
func TestString_false(t *testing.T) {
	t.Parallel()
	random := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, 1<<20)
	if _, err := random.Read(noise); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{
		"english":  `Enter your password: it must have eight characters. The bearer of this letter has authorization: please let him pass. A token of thanks; the token: a word or part of one. Basic information is free. The secret: patience. Cookies are stored; cookie: a small file. Don't share an API key. Password required. Reset password? One time Basic authentication and Bearer authentication are schemes.`,
		"chinese":  `請輸入密碼：至少八個字元。權杖（token）是一種憑證，授權（authorization）後方可使用。忘記密碼？請聯絡管理員：admin@example.com。网站密码：请勿泄露。`,
		"japanese": `パスワード：英数字8文字以上。トークン（token）は安全に保管してください。APIキーを入力します。`,
		"german":   `Das Passwort: mindestens acht Zeichen. Ein Token: ein Wort. Geheimnis und secret: nichts.`,
		"uuid":     `6ba7b810-9dad-11d1-80b4-00c04fd430c8 and 0190b5a2-7c3e-7c3e-8f3a-3f2b1c0d9e8f`,
		"git":      `commit 9e0d5c1f2b3a4d5e6f708192a3b4c5d6e7f80912 (HEAD -> main), short 9e0d5c1, sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855`,
		"time":     `2026-12-01T10:00:00Z 12:34:56 1719878400:ok 10.0.0.5:5432 [::1]:8080 00:1A:2B:3C:4D:5E`,
		"links":    `https://example.com/a?page=2&sort=asc#top http://localhost:8080/mcp mailto:a@b.example git@github.com:owner/repo.git https://github.com/owner/repo/blob/main/pkg/token.go`,
		"css":      `<div class="sk-loading-spinner sk-folding-cube-container-with-a-long-name btn-primary">`,
		"code":     `func Token(ctx context.Context) (token string, err error) { return s.tokens[key], nil } // secret := os.Getenv("X")`,
		"go":       `MyPackageNameIsVeryLongX.method.anotherVeryLongIdentifierNameHere com.example.application.configuration`,
		"schema":   encode(t, map[string]any{"type": "object", "properties": map[string]any{"password": map[string]any{"type": "string", "description": "The password: at least 8"}, "token": map[string]any{"type": "string"}}, "required": []string{"password", "token"}}),
		"model":    `{"usage":{"prompt_tokens":1200,"completion_tokens":300},"finish_reason":"stop","token":"the","logprob":-0.1}`,
		"base64":   "data:image/png;base64," + base64.StdEncoding.EncodeToString(noise),
		"url64":    base64.RawURLEncoding.EncodeToString(noise[:1<<16]),
		"hex":      hex.EncodeToString(noise[:1<<16]),
		"pwd":      "PWD=/home/me OLDPWD=/tmp",
		"pretty":   "{\n  \"token_type\": \"bearer\",\n  \"expires_in\": 3600\n}",
		"env":      "PASSWORD= TOKEN= SECRET=\nNEXT=1",
		"markdown": "| password | string | required |\n| --- | --- | --- |\n| `token` | string | the access token |",
	}
	r := New()
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, form := range []string{text, encode(t, text)} {
				if got := r.String(form); got != form {
					i := strings.Index(got, "[redacted")
					t.Errorf("replaced: …%s…", got[max(0, i-60):min(len(got), i+60)])
				}
			}
		})
	}
}

func TestNew_known(t *testing.T) {
	t.Parallel()
	odd := "pa\"ss\\wörd<&"
	r := New("short", odd, "plain-old-value")
	for _, text := range []string{"x " + odd + " y", encode(t, odd), strings.NewReplacer(`\u003c`, "<", `\u0026`, "&").Replace(encode(t, odd)), "plain-old-value"} {
		if got := r.String(text); !strings.Contains(got, "[redacted:configured]") || strings.Contains(got, "rd<") {
			t.Errorf("String(%s) = %s", text, got)
		}
	}
	for _, text := range []string{"short", "Plain-Old-Value"} {
		if got := r.String(text); got != text {
			t.Errorf("String(%s) = %s", text, got)
		}
	}
}

// TestBytes_clean: no copy, no allocation without a secret.
func TestBytes_clean(t *testing.T) {
	r := New()
	clean := []byte(`{"memories":[{"id":"m1","text":"a note on nothing"}]}`)
	if got := r.Bytes(clean); &got[0] != &clean[0] {
		t.Error("a clean text was copied")
	}
	if n := testing.AllocsPerRun(100, func() { r.Bytes(clean) }); n != 0 {
		t.Errorf("%v allocations for a clean text", n)
	}
}

// TestString_slow: texts made to hurt take time in proportion to their length.
func TestString_slow(t *testing.T) {
	t.Parallel()
	r := New()
	const size = 256 << 10
	var everything strings.Builder
	for _, f := range forms() {
		for _, h := range f.hints {
			everything.WriteString(h)
		}
	}
	for _, piece := range []string{"eyJ", "eyJhbGciOi", ".eyJ", "://a:", "://", "password=", "password='", `password="$`, `password\":\"$`, ":A", ".", "1", "1:A", "1//0",
		"-----BEGIN PRIVATE KEY-----", "PRIVATE KEY", "sk-", "sk-ant-", "AKIA", "authorization:", "bearer ", "cookie:", `\`, `\"`, `"`, "token", "token:", "xoxb-", "ghp_", "SG.",
		"hooks.slack.com/", "a.", "dB04t89/1O/w1cDnyilFU=", everything.String()} {
		text := strings.Repeat(piece, size/len(piece))
		started := time.Now()
		r.String(text)
		if took := time.Since(started); took > 3*time.Second {
			t.Errorf("%q × %d took %v", piece[:min(len(piece), 40)], size/len(piece), took)
		}
	}
}

// TestPatterns: a row's expression agrees with its hints, and its example is
// found in a single place.
func TestPatterns(t *testing.T) {
	t.Parallel()
	r := New()
	for _, f := range forms() {
		if n := strings.Count(r.String(f.example), "[redacted:"); n != 1 {
			t.Errorf("%s: %d places in its example: %s", f.name, n, r.String(f.example))
		}
		f.prepare()
		if f.compiled != nil && f.compiled() == nil {
			t.Errorf("%s: no expression", f.name)
		}
	}
}

// FuzzJSON: valid JSON stays valid, with the same shape and the same members,
// also after a second pass.
func FuzzJSON(f *testing.F) {
	for _, form := range forms() {
		f.Add(form.example, `{"password":"`, uint8(1))
	}
	f.Add(`password="`, `\","token":"`, uint8(2))
	f.Add(`password='`, `'"secret": 12345`, uint8(0))
	f.Add(`"password":1234567`, `secret=\\`, uint8(2))
	r := New()
	f.Fuzz(func(t *testing.T, a, b string, depth uint8) {
		var v any = map[string]any{"password": a, "x": []any{b, 12345678, a + b}, a: b}
		for range depth%3 + 1 {
			v = map[string]any{"v": encode(t, v), "token": a, b: 1}
		}
		text := encode(t, v)
		got := r.Bytes([]byte(text))
		if !json.Valid(got) {
			t.Fatalf("broken\n%s\n%s", text, got)
		}
		if again := r.String(string(got)); !json.Valid([]byte(again)) {
			t.Fatalf("broken by a second pass\n%s\n%s", got, again)
		}
		var before, after any
		if json.Unmarshal([]byte(text), &before) != nil || json.Unmarshal(got, &after) != nil {
			t.Fatal("not read back")
		}
		if shape(before) != shape(after) && r.String(a) == a && r.String(b) == b { // two names may have become one

			t.Fatalf("the shape changed\n%s\n%s", text, got)
		}
	})
}

// shape counts members and elements, without the texts.
func shape(v any) string {
	switch v := v.(type) {
	case map[string]any:
		n := 0
		for _, member := range v {
			n += len(shape(member))
		}
		return strings.Repeat(".", n+1)
	case []any:
		n := 0
		for _, element := range v {
			n += len(shape(element))
		}
		return strings.Repeat(".", n+1)
	}
	return "."
}

func BenchmarkBytes(b *testing.B) {
	prose := []byte(strings.Repeat("The quick brown fox jumps over the lazy dog. 敏捷的棕色狐狸跳過懶狗。 ", 2000))
	result := []byte(encode(b, map[string]any{"memories": strings.Split(string(prose), ". ")}))
	words := []byte(strings.Repeat("max_tokens: 4096, the password must be long; see https://example.com/a. ", 2000))
	dirty := []byte(strings.Repeat("lorem ipsum dolor sit amet ", 1000) + "ghp_" + strings.Repeat("aB3", 12))
	r := New()
	for _, c := range []struct {
		name string
		text []byte
	}{{"prose", prose}, {"json", result}, {"near misses", words}, {"one secret", dirty}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				r.Bytes(c.text)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New()
	}
}

// TestJSON_random: the same as FuzzJSON over texts made of what matters here.
func TestJSON_random(t *testing.T) {
	t.Parallel()
	pieces := []string{`"`, `'`, "`", `\`, `\"`, `\\`, `\n`, "\n", " ", ":", "=", ",", "{", "}", "[", "]", "<", ">", "/", "@", "：", ".", "12345678", "hunter2", "password", `"password":`, `\"secret\":`,
		"token", "api_key", "://u:", "Authorization: ", "Bearer ", "Basic ", "cookie: a=", "x=", "-----BEGIN " + "PRIVATE KEY-----", "-----END PRIVATE KEY-----", "é", "密碼", "\u2028", "&"}
	for _, f := range forms() {
		pieces = append(pieces, f.example)
	}
	random := rand.New(rand.NewPCG(7, 7))
	text := func() string {
		var b strings.Builder
		for range random.IntN(12) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		return b.String()
	}
	r := New()
	for range 30000 {
		v := any([]any{text(), map[string]any{"password": text(), "n": 12345678, text(): text()}})
		for range random.IntN(4) {
			v = map[string]any{"text": encode(t, v), "secret": 123456}
		}
		source := encode(t, v)
		got := r.String(source)
		if !json.Valid([]byte(got)) {
			t.Fatalf("broken\n%s\n%s", source, got)
		}
		if again := r.String(got); !json.Valid([]byte(again)) {
			t.Fatalf("broken by a second pass\n%s\n%s\n%s", source, got, again)
		}
	}
}
