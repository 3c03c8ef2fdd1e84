package operator_test

import (
	"context"
	"crypto/sha256"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/operator"
	"pawgate/internal/postgres/postgrestest"
)

type keyCreated struct {
	Key       string
	KeyID     string `json:"key_id"`
	Scopes    []string
	ExpiresAt *time.Time `json:"expires_at"`
}

type keyShown struct {
	KeyID   string `json:"key_id"`
	AgentID string `json:"agent_id"`
	Name    string
	Hint    string
	State   string
	Scopes  []string
}

type keyList struct{ Keys []keyShown }

func TestKeyCreate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	k := ok[keyCreated](b, "key create", `{"agent_id":"bot","name":"ci","scope":["operator","memory:write","*","operator"],"expires":"90d"}`)
	if !regexp.MustCompile(`^paw_test_[A-Za-z0-9_-]{43}$`).MatchString(k.Key) {
		t.Errorf("key %q", k.Key)
	}
	if diff := cmp.Diff([]string{"*", "memory:write", "operator"}, k.Scopes); diff != "" {
		t.Errorf("scopes (-want +got):\n%s", diff)
	}
	if want := noon.Add(90 * 24 * time.Hour); k.ExpiresAt == nil || !k.ExpiresAt.Equal(want) {
		t.Errorf("expires %v, want %v", k.ExpiresAt, want)
	}
	if other := ok[keyCreated](b, "key create", `{"agent_id":"bot"}`); other.Key == k.Key || other.KeyID == k.KeyID {
		t.Error("two keys are alike")
	} else if diff := cmp.Diff([]string{"*:read"}, other.Scopes); diff != "" {
		t.Errorf("the least scopes (-want +got):\n%s", diff)
	}
	stored(t, b, k)
}

// stored checks AUTH-18: a key is found by the hash of the whole, so there is
// nothing to compare byte by byte; and AUTH-21: no part of the secret but the
// four characters of the hint is written down anywhere.
func stored(t *testing.T, b bench, k keyCreated) {
	t.Helper()
	var id string
	sum := sha256.Sum256([]byte(k.Key))
	if err := b.DB.QueryRow(t.Context(), `select id from api_keys where hash = $1`, sum[:]).Scan(&id); err != nil || id != k.KeyID {
		t.Errorf("AUTH-18: found %q by hash, want %q: %v", id, k.KeyID, err)
	}
	var wrong int
	for _, cut := range []string{k.Key[:len(k.Key)-1] + "!", k.Key[:len(k.Key)/2], "nothing alike"} {
		sum := sha256.Sum256([]byte(cut))
		if err := b.DB.QueryRow(t.Context(), `select count(*) from api_keys where hash = $1`, sum[:]).Scan(&wrong); err != nil || wrong != 0 {
			t.Errorf("AUTH-18: %q finds %d keys: %v", cut, wrong, err)
		}
	}
	var everything string
	err := b.DB.QueryRow(t.Context(), `select (select string_agg(k::text, '') from api_keys k) || (select string_agg(a::text, '') from audit a)`).Scan(&everything)
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimPrefix(k.Key, "paw_test_")
	if strings.Contains(everything, secret[:6]) || strings.Contains(everything, secret[5:11]) {
		t.Error("AUTH-21: part of the key is stored")
	}
}

func TestKeyCreate_refusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	ok[noted](b, "agent create", `{"agent_id":"old"}`)
	ok[noted](b, "agent set", `{"agent_id":"old","state":"archived"}`)
	for _, c := range []struct{ args, reason, want string }{
		{`{"agent_id":"nobody"}`, "not_found", "no agent nobody"},
		{`{"agent_id":"old"}`, "conflict", "archived"},
		{`{"agent_id":"bot","scope":["admin"]}`, "scope", "is no scope"},
		{`{"agent_id":"bot","scope":["memory"]}`, "scope", "is no scope"},
		{`{"agent_id":"bot","scope":["memory:delete"]}`, "scope", "is no scope"},
		{`{"agent_id":"bot","scope":["Memory:read"]}`, "scope", "is no scope"},
		{`{"agent_id":"bot","scope":["memory:read,odoo:read"]}`, "scope", "is no scope"},
		{`{"agent_id":"bot","scope":["memry:read"]}`, "scope", "did you mean memory?"},
		{`{"agent_id":"bot","expires":"soon"}`, "expires", "must be a length of time"},
		{`{"agent_id":"bot","expires":"-3d"}`, "expires", "must be a length of time"},
		{`{"agent_id":"bot","expires":"99999999d"}`, "expires", "must be a length of time"},
		{`{"agent_id":"bot","expires":"2020-01-01"}`, "expires", "in the past"},
	} {
		if got := b.fails("key create", c.args, c.reason); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q lacks %q", c.args, got, c.want)
		}
	}
	if got := ok[keyList](b, "key list", `{"all":true}`); len(got.Keys) != 0 {
		t.Errorf("refused keys were made: %+v", got)
	}
}

func TestKeyRevoke(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	ok[noted](b, "agent create", `{"agent_id":"other"}`)
	k := ok[keyCreated](b, "key create", `{"agent_id":"bot","name":"ci"}`)
	ok[keyCreated](b, "key create", `{"agent_id":"other"}`)
	type revoked struct {
		AgentID string `json:"agent_id"`
		Changed bool
	}
	if diff := cmp.Diff(revoked{"bot", true}, ok[revoked](b, "key revoke", `{"key_id":"`+k.KeyID+`"}`)); diff != "" {
		t.Errorf("revoked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(revoked{"bot", false}, ok[revoked](b, "key revoke", `{"key_id":"`+k.KeyID+`"}`)); diff != "" {
		t.Errorf("revoked again (-want +got):\n%s", diff)
	}
	b.fails("key revoke", `{"key_id":"k_none"}`, "not_found")
	if got := b.fails("key revoke", `{"key_id":"`+k.Key+`"}`, "key_id"); strings.Contains(got, k.Key) {
		t.Errorf("AUTH-21: the error repeats the key: %s", got)
	}
	want := []keyShown{{KeyID: k.KeyID, AgentID: "bot", Name: "ci", Hint: k.Key[:13], State: "revoked", Scopes: []string{"*:read"}}}
	if diff := cmp.Diff(want, ok[keyList](b, "key list", `{"all":true,"agent_id":"bot"}`).Keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if got := ok[keyList](b, "key list", `{}`); len(got.Keys) != 1 || got.Keys[0].AgentID != "other" {
		t.Errorf("live keys: %+v", got)
	}
}

func TestEnsureDefault(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Clone(t)
	const starts = 8
	keys := make([]string, starts)
	var wg sync.WaitGroup
	for i := range starts {
		wg.Go(func() {
			key, err := operator.EnsureDefault(context.Background(), pool, "local")
			if err != nil {
				t.Errorf("start %d: %v", i, err)
			}
			keys[i] = key
		})
	}
	wg.Wait()
	made := strings.Join(keys, "")
	if !regexp.MustCompile(`^paw_local_[A-Za-z0-9_-]{43}$`).MatchString(made) {
		t.Fatalf("%d starts at once gave the keys %q, want one", starts, keys)
	}
	var allowed, scopes []string
	var rows int
	err := pool.QueryRow(t.Context(), `select a.allowed_tools, k.scopes, (select count(*) from audit where method = 'agent.create')
		from agents a join api_keys k on k.agent_id = a.id where a.id = 'default'`).Scan(&allowed, &scopes, &rows)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{[]string{"*"}, []string{"*"}, 1}, []any{allowed, scopes, rows}); diff != "" {
		t.Errorf("allowed tools, scopes, audit rows (-want +got):\n%s", diff)
	}
	if key, err := operator.EnsureDefault(t.Context(), pool, "local"); key != "" || err != nil {
		t.Errorf("a later start gave %q, %v", key, err)
	}
}

// TestKeyIsNotRecorded: a key that was pasted where its id belongs, or as the
// name of a flag, stays out of the trail.
func TestKeyIsNotRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	made := ok[struct{ Key string }](b, "key create", `{"agent_id":"bot"}`)
	b.fails("key revoke", encode(t, map[string]any{"key_id": made.Key}), "key_id")
	_, _ = b.Run(t.Context(), "", "key revoke", []byte(encode(t, map[string]any{made.Key: "x"})))
	ok[noted](b, "agent set", encode(t, map[string]any{"agent_id": "bot", "display_name": "key " + made.Key}))
	if rows := b.text(`select json_agg(a)::text from audit a`); strings.Contains(rows, made.Key[len(made.Key)-30:]) {
		t.Errorf("it is in the trail: %s", rows)
	}
}

// TestKeyCreate_predecessor: W-43: several scopes in one string are refused, not
// dropped in silence; B-39: every category that there is has its scopes.
func TestKeyCreate_predecessor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	for _, wrong := range []string{"memory:read web:read", "memory:read,web:read", "", "admin", "memory", "Memory:read", "memory:delete", "memory:read "} {
		b.fails("key create", encode(t, map[string]any{"agent_id": "bot", "scope": []string{wrong}}), "scope")
	}
	if n := b.text(`select count(*)::text from api_keys`); n != "0" {
		t.Errorf("%s keys were made", n)
	}
	for _, category := range b.Catalog.Categories() {
		for _, action := range []string{"read", "write", "execute", "*"} {
			ok[keyOf](b, "key create", encode(t, map[string]any{"agent_id": "bot", "scope": []string{category + ":" + action}}))
		}
	}
}

type keyOf struct {
	KeyID string `json:"key_id"`
}

// TestAgentID: B-44: what the program takes for an id is what the database
// takes, to the last hyphen.
func TestAgentID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, id := range []string{"a", "a-", "-a", "_a", "a_", "A", "a b", "a.b", "1", "ä", "a\u200b", strings.Repeat("a", 64), strings.Repeat("a", 65), "a/b", "..", "a\n"} {
		_, err := b.DB.Exec(t.Context(), `insert into agents (id) values ($1)`, id)
		database := err == nil
		if database {
			if _, err := b.DB.Exec(t.Context(), `delete from agents where id = $1`, id); err != nil {
				t.Fatal(err)
			}
		}
		_, err = b.Run(t.Context(), "", "agent create", []byte(encode(t, map[string]any{"agent_id": id})))
		if program := err == nil; program != database {
			t.Errorf("%q: the program says %v, the database %v", id, program, database)
		}
	}
}
