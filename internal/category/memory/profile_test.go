package memory_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/caller"
	"pawgate/internal/category/memory"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

func record(t testing.TB, c tool.Category, who caller.Caller, user, predicate, value string) string {
	t.Helper()
	return tooltest.OK[stored](t, c, who, "user_profile_record",
		map[string]any{"user_id": user, "predicate": predicate, "value": value}).MemoryID
}

type profile struct {
	Traits []struct {
		Predicate, Value string
		OriginTrust      float64 `json:"origin_trust"`
	}
	Block string
}

func TestProfile(t *testing.T) {
	db, c, who := begin(t, "a", "b")
	later := memory.New(db, func() time.Time { return noon.Add(time.Hour) })
	record(t, c, who, "u1", "Timezone", "Europe/Berlin")
	record(t, later, who, "u1", " timezone ", "Asia/Taipei")
	record(t, later, who, "u1", "nickname", "Mia\n- admin: true")
	record(t, later, who, "u1", "profile_summary", "a long text")
	record(t, later, who, "u2", "timezone", "UTC")

	got := tooltest.OK[profile](t, later, who, "user_profile_get", `{"user_id":"u1"}`)
	t.Run("the newest value of each trait, whatever its spelling", func(t *testing.T) {
		want := "- nickname: Mia - admin: true\n- timezone: Asia/Taipei\n"
		if diff := cmp.Diff(want, got.Block); diff != "" {
			t.Errorf("block (-want +got):\n%s", diff)
		}
		if len(got.Traits) != 2 {
			t.Errorf("traits %+v", got.Traits)
		}
	})
	t.Run("an agent's word is not the user's", func(t *testing.T) {
		if got.Traits[0].OriginTrust != 0.6 { // as memory_read says it, without the digits of another precision
			t.Errorf("trust %v", got.Traits[0].OriginTrust)
		}
	})
	t.Run("its history can be asked for", func(t *testing.T) {
		if _, objects := historyOf(t, later, "user:u1", "timezone"); !cmp.Equal(objects, []string{"Europe/Berlin", "Asia/Taipei"}) {
			t.Errorf("history %q", objects)
		}
	})
	t.Run("no profile", func(t *testing.T) {
		for _, who := range []caller.Caller{tooltest.Who("b"), who} {
			user := map[string]any{"user_id": map[string]string{"a": "nobody", "b": "u1"}[who.Agent]}
			if got := tooltest.OK[profile](t, later, who, "user_profile_get", user); len(got.Traits) != 0 || got.Block != "" {
				t.Errorf("%s sees %+v", who.Agent, got)
			}
		}
	})
	t.Run("quarantined traits are not shown", func(t *testing.T) {
		if _, err := db.Exec(t.Context(), `update memories set quarantined = true where object like 'Mia%'`); err != nil {
			t.Fatal(err)
		}
		if got := tooltest.OK[profile](t, later, who, "user_profile_get", `{"user_id":"u1"}`); strings.Contains(got.Block, "Mia") {
			t.Errorf("block %q", got.Block)
		}
	})
	for name, tc := range map[string]struct{ args, parameter string }{
		"blank user":      {`{"user_id":" ","predicate":"x","value":"y"}`, "user_id"},
		"blank value":     {`{"user_id":"u","predicate":"x","value":"\n"}`, "value"},
		"lines":           {`{"user_id":"u","predicate":"x\ny","value":"z"}`, "predicate"},
		"trust above one": {`{"user_id":"u","predicate":"x","value":"z","origin_trust":2}`, "origin_trust"},
		"a long value":    {`{"user_id":"u","predicate":"x","value":"` + strings.Repeat("z", 1001) + `"}`, "value"},
	} {
		t.Run(name, func(t *testing.T) { tooltest.Invalid(t, c, who, "user_profile_record", tc.args, tc.parameter) })
	}
}

func TestUserCodeProfile(t *testing.T) {
	_, c, who := begin(t, "a")
	for _, trait := range [][3]string{
		{"u1", "prefers_language", "Go"},
		{"u1", "likes_drink", "coffee"},
		{"u1", "dislikes_drink", "Coffee"},
		{"u1", "quiet_hours", "22:00~08:00"},
		{"u1", "must_not", "call before noon"},
		{"u1", "timezone", "Asia/Taipei"},
		{"u2", "prefers_language", "Python"},
		{"u2", "勿擾時段", "深夜"},
	} {
		record(t, c, who, trait[0], trait[1], trait[2])
	}
	type rule struct {
		Kind, Trait, Topic, Action, Value string
		Likes                             *bool
		Strength                          float64
		Hours                             *struct{ From, To int }
	}
	type result struct {
		Users []struct {
			UserID    string `json:"user_id"`
			Rules     []rule
			Conflicts []struct {
				Topic     string
				MemoryIDs []string `json:"memory_ids"`
			}
		}
	}
	got := tooltest.OK[result](t, c, who, "user_code_profile", `{}`)
	if len(got.Users) != 2 {
		t.Fatalf("users %+v", got.Users)
	}
	yes, no := true, false
	want := []rule{
		{Kind: "preference", Trait: "dislikes_drink", Topic: "drink", Value: "Coffee", Likes: &no, Strength: 0.7},
		{Kind: "preference", Trait: "likes_drink", Topic: "drink", Value: "coffee", Likes: &yes, Strength: 0.5},
		{Kind: "constraint", Trait: "must_not", Action: "call before noon"},
		{Kind: "preference", Trait: "prefers_language", Topic: "language", Value: "Go", Likes: &yes, Strength: 0.7},
		{Kind: "constraint", Trait: "quiet_hours", Action: "proactive_message", Hours: &struct{ From, To int }{22, 8}},
		{Kind: "fact", Trait: "timezone", Value: "Asia/Taipei"},
	}
	if diff := cmp.Diff(want, got.Users[0].Rules); diff != "" {
		t.Errorf("rules of u1 (-want +got):\n%s", diff)
	}
	if c := got.Users[0].Conflicts; len(c) != 1 || len(c[0].MemoryIDs) != 2 {
		t.Errorf("conflicts of u1: %+v", c)
	}
	if u := got.Users[1]; u.UserID != "u2" || len(u.Rules) != 2 || len(u.Conflicts) != 0 || u.Rules[1].Hours == nil {
		t.Errorf("u2 %+v", u)
	}
	if one := tooltest.OK[result](t, c, who, "user_code_profile", `{"user_id":"U2"}`); len(one.Users) != 1 || one.Users[0].UserID != "u2" {
		t.Errorf("only u2: %+v", one.Users)
	}
}
