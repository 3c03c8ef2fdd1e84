package memory_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pawgate/internal/category/memory"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool/tooltest"
)

// TestSearchFinds stores the notes of a row and asks a query: the wanted ones
// come first, in this order, the unwanted never.
func TestSearchFinds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		notes  []string
		query  string
		want   []string
		absent []string
	}{
		{"MEM-01 Chinese word in a sentence", []string{"今天讨论了部署方案", "今天去了公园"}, "部署", []string{"今天讨论了部署方案"}, []string{"今天去了公园"}},
		{"MEM-02 mixed scripts", []string{"用 Go 写的服务", "部署 到 production", "the deployment went well", "lunch"}, "go 部署 deployment",
			nil, []string{"lunch"}},
		{"MEM-03 blank between words", []string{"我们的记忆系统很好"}, "记忆 系统", []string{"我们的记忆系统很好"}, nil},
		{"MEM-05 percent", []string{"reached 100% today", "reached 1000 today"}, "100%", []string{"reached 100% today"}, []string{"reached 1000 today"}},
		{"MEM-05 underscore", []string{"see case_1 there", "see case-1 there", "see caseX1 there"}, "case_1", []string{"see case_1 there"},
			[]string{"see case-1 there", "see caseX1 there"}},
		{"MEM-10 NFD stored, NFC asked", []string{"カ\u3099ラスの靴"}, "ガラス", []string{"カ\u3099ラスの靴"}, nil},
		{"MEM-10 NFC stored, NFD asked", []string{"ガラスの靴"}, "カ\u3099ラス", []string{"ガラスの靴"}, nil},
		{"MEM-12 emoji alone", []string{"launch 🚀 today", "launch 🛑 today"}, "🚀", []string{"launch 🚀 today"}, []string{"launch 🛑 today"}},
		{"complaint 73 止损", []string{"设置止损在百分之五", "停止所有损失"}, "止损", []string{"设置止损在百分之五"}, []string{"停止所有损失"}},
		{"complaint 73 健康", []string{"健康检查通过了"}, "健康", []string{"健康检查通过了"}, nil},
		{"complaint 74 itgc", []string{"重跑gen-itgc后50条悬空引用清零"}, "itgc", []string{"重跑gen-itgc后50条悬空引用清零"}, nil},
		{"complaint 74 悬空", []string{"重跑gen-itgc后50条悬空引用清零"}, "悬空", []string{"重跑gen-itgc后50条悬空引用清零"}, nil},
		{"single character exactly", []string{"家裡養貓", "家裡養狗"}, "貓", []string{"家裡養貓"}, []string{"家裡養狗"}},
		{"Japanese kana", []string{"サーバーを再起動しました", "ケーキを食べました"}, "サーバー", []string{"サーバーを再起動しました"}, nil},
		{"Japanese half width", []string{"ｻｰﾊﾞｰを止める"}, "サーバー", []string{"ｻｰﾊﾞｰを止める"}, nil},
		{"Korean within a word", []string{"서울에서 만났다", "부산에서 만났다"}, "서울", []string{"서울에서 만났다"}, []string{"부산에서 만났다"}},
		{"Thai", []string{"ประชุมที่กรุงเทพฯ พรุ่งนี้"}, "กรุงเทพ", []string{"ประชุมที่กรุงเทพฯ พรุ่งนี้"}, nil},
		{"traditional finds simplified", []string{"图书馆的开放时间"}, "圖書館", []string{"图书馆的开放时间"}, nil},
		{"simplified finds traditional", []string{"圖書館的開放時間"}, "图书馆", []string{"圖書館的開放時間"}, nil},
		{"English plural", []string{"she bought two houses"}, "house", []string{"she bought two houses"}, nil},
		{"English -ing", []string{"they run every day"}, "running", []string{"they run every day"}, nil},
		{"English irregular", []string{"we went to Paris"}, "going to Paris", []string{"we went to Paris"}, nil},
		{"English possessive", []string{"Caroline's sister"}, "caroline", []string{"Caroline's sister"}, nil},
		{"German plural", []string{"Er hat zwei Häuser gekauft"}, "Haus", []string{"Er hat zwei Häuser gekauft"}, nil},
		{"German without umlaut", []string{"Gespräch über Möbel"}, "mobel", []string{"Gespräch über Möbel"}, nil},
		{"German sharp s", []string{"Treffen in der Hauptstraße"}, "hauptstrasse", []string{"Treffen in der Hauptstraße"}, nil},
		{"French plural", []string{"Elle aime les chevaux et les bateaux"}, "cheval", []string{"Elle aime les chevaux et les bateaux"}, nil},
		{"French elision", []string{"Rendez-vous à l'hôtel"}, "hotel", []string{"Rendez-vous à l'hôtel"}, nil},
		{"Spanish verb", []string{"Los niños estaban corriendo por la playa"}, "correr", []string{"Los niños estaban corriendo por la playa"}, nil},
		{"Spanish accent", []string{"reunión con José"}, "reunion jose", []string{"reunión con José"}, nil},
		{"Russian case", []string{"встреча в Москве"}, "Москва", []string{"встреча в Москве"}, nil},
		{"full width Latin", []string{"ＡＢＣ plan"}, "abc", []string{"ＡＢＣ plan"}, nil},
		{"snake_case whole", []string{"call max_open_conns"}, "max_open_conns", []string{"call max_open_conns"}, nil},
		{"snake_case part", []string{"call max_open_conns"}, "conns", []string{"call max_open_conns"}, nil},
		{"camelCase part", []string{"call getUserName first"}, "user name", []string{"call getUserName first"}, nil},
		{"version", []string{"upgraded to v1.2.3", "upgraded to v1.2.4"}, "v1.2.3", []string{"upgraded to v1.2.3"}, []string{"upgraded to v1.2.4"}},
		{"version prefix", []string{"upgraded to v1.2.3"}, "v1.2", []string{"upgraded to v1.2.3"}, nil},
		{"path", []string{"see /usr/local/etc/app.conf", "see /etc/hosts"}, "local/etc/app.conf", []string{"see /usr/local/etc/app.conf"}, nil},
		{"both words before one", []string{"green tea in the morning", "green apples", "tea time"}, "tea green", []string{"green tea in the morning"}, nil},
		{"all of a run before a part", []string{"部署失败", "部署方案讨论"}, "部署方案", []string{"部署方案讨论", "部署失败"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			db := postgrestest.New(t)
			addAgent(t, db, "a")
			c := open(db)
			for _, note := range tc.notes {
				store(t, c, "a", note)
			}
			got := contents(t, c, "a", tc.query)
			if len(got) < len(tc.want) || !slices.Equal(got[:len(tc.want)], tc.want) {
				t.Errorf("search %q found %q, want first %q", tc.query, got, tc.want)
			}
			for _, absent := range tc.absent {
				if slices.Contains(got, absent) {
					t.Errorf("search %q found %q", tc.query, absent)
				}
			}
			if len(tc.want) == 0 && len(got) != len(tc.notes)-len(tc.absent) {
				t.Errorf("search %q found only %q", tc.query, got)
			}
		})
	}
}

// TestSearchSyntax asks what other products take for operators.
func TestSearchSyntax(t *testing.T) {
	db, c, _ := begin(t, "a")
	store(t, c, "a", "team foo met the abs group")
	for _, query := range []string{
		"team:foo", "a & ", "'abs", "!", "(", "<->", "foo:*", `"team`, "team AND", "NOT", "foo OR", "^foo", "{foo}", `\`, `\foo`, "%", "_", "*",
		"'; drop table memories; --", "$1", "@agent", "foo\u0301", "\u202efoo", "NEAR(team foo)", "-foo", "+foo", "~foo", "foo~1", "[foo", "a\tb\nc",
	} {
		t.Run("MEM-04 "+query, func(t *testing.T) {
			search(t, c, "a", query) // fails on anything but a result
		})
	}
	wantCount(t, db, `select count(*) from memories`, 1)
}

func TestSearchNothingToLookFor(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	addAgent(t, db, "a")
	for i, content := range []string{"oldest", "middle", "newest"} {
		c := memory.New(db, func() time.Time { return noon.Add(time.Duration(i) * time.Hour) })
		store(t, c, "a", content)
	}
	for _, query := range []string{"", "   ", "?!", "。、", "\u200b"} {
		t.Run("MEM-11 "+query, func(t *testing.T) {
			got := tooltest.OK[results](t, open(db), tooltest.Who("a"), "memory_search", map[string]any{"query": query, "limit": 2})
			if got.Order != "latest" || len(got.Memories) != 2 || got.Memories[0].Content != "newest" || got.Memories[1].Content != "middle" {
				t.Errorf("got %+v, want the two latest", got)
			}
		})
	}
	t.Run("MEM-11 only function words still ask", func(t *testing.T) {
		store(t, open(db), "a", "to be or not to be")
		if got := contents(t, open(db), "a", "to be"); len(got) != 1 {
			t.Errorf("got %q", got)
		}
	})
	t.Run("an unanswerable query finds nothing", func(t *testing.T) {
		if got := search(t, open(db), "a", "quantum chromodynamics"); got.Order != "relevance" || len(got.Memories) != 0 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestSearchIsolation_MEM13(t *testing.T) {
	_, c, _ := begin(t, "a", "b")
	secret := store(t, c, "a", "marker-7f3a 密碼 secret", "marker-7f3a")
	for _, query := range []string{"marker-7f3a", "密碼", "secret", ""} {
		if got := search(t, c, "b", query); len(got.Memories) != 0 {
			t.Errorf("MEM-13 search %q shows %+v", query, got.Memories)
		}
	}
	tooltest.Fault(t, c, tooltest.Who("b"), "memory_read", map[string]any{"memory_id": secret}, "not_found")
	batch := tooltest.OK[batch](t, c, tooltest.Who("b"), "memory_fetch_batch", map[string]any{"ids": []string{secret}})
	if len(batch.Memories) != 0 || !slices.Equal(batch.MissingIDs, []string{secret}) {
		t.Errorf("MEM-13 fetch_batch gave %+v", batch)
	}
}

func TestSearchFilter(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	addAgent(t, db, "a")
	at := func(text string) memoryAt {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return memoryAt{memory.New(db, func() time.Time { return when })}
	}
	at("2026-03-31T15:00:00+08:00").store(t, `{"content":"note one","tags":["Work"]}`)
	at("2026-04-01T00:30:00+08:00").store(t, `{"content":"note two","tags":["home"],"layer":"semantic"}`)
	at("2026-04-02T12:00:00+08:00").store(t, `{"content":"note three","tags":["home","ｗｏｒｋ"]}`)
	for name, tc := range map[string]struct {
		filter string
		want   []string
	}{
		"MEM-09 a date covers its day":        {`"until":"2026-03-31","time_zone":"Asia/Taipei"`, []string{"note one"}},
		"MEM-09 the zone decides":             {`"until":"2026-03-31"`, []string{"note two", "note one"}},
		"MEM-09 a time is exact":              {`"until":"2026-03-31T15:00:00+08:00"`, []string{"note one"}},
		"since a date":                        {`"since":"2026-04-01","time_zone":"Asia/Taipei"`, []string{"note three", "note two"}},
		"one day":                             {`"since":"2026-04-01","until":"2026-04-01","time_zone":"Asia/Taipei"`, []string{"note two"}},
		"a tag, whatever its case and width":  {`"tags":["work"]`, []string{"note three", "note one"}},
		"any of the tags":                     {`"tags":["work","home"]`, []string{"note three", "note two", "note one"}},
		"a tag as a whole":                    {`"tags":["wor"]`, nil},
		"layer":                               {`"layer":"semantic"`, []string{"note two"}},
		"layer and tag, nothing in both":      {`"layer":"semantic","tags":["work"]`, nil},
		"an empty interval":                   {`"since":"2026-05-01","until":"2026-04-01"`, nil},
		"a blank filter is none":              {`"tags":[],"layer":"episodic"`, []string{"note three", "note one"}},
		"an explicit null is the same as out": {`"layer":null,"since":null`, []string{"note three", "note two", "note one"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, query := range []string{"note", ""} {
				got := tooltest.OK[results](t, open(db), tooltest.Who("a"), "memory_search", `{"query":"`+query+`",`+tc.filter+`}`)
				var found []string
				for _, m := range got.Memories {
					found = append(found, m.Content)
				}
				slices.Sort(found) // the order is not what this test is about
				slices.Sort(tc.want)
				if !slices.Equal(found, tc.want) {
					t.Errorf("query %q: %q, want %q", query, found, tc.want)
				}
			}
		})
	}
	for name, tc := range map[string]struct{ filter, parameter string }{
		"no date":      {`"since":"yesterday"`, "since"},
		"no such day":  {`"until":"2026-02-30"`, "until"},
		"no such zone": {`"time_zone":"Mars/Olympus"`, "time_zone"},
		"host's zone":  {`"time_zone":"Local"`, "time_zone"},
		"limit 0":      {`"limit":0`, "limit"},
		"limit 101":    {`"limit":101`, "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			tooltest.Invalid(t, open(db), tooltest.Who("a"), "memory_search", `{"query":"note",`+tc.filter+`}`, tc.parameter)
		})
	}
}

func TestSearchHidesWhatDoesNotCount(t *testing.T) {
	db, c, who := begin(t, "a")
	kept := store(t, c, "a", "note that counts")
	for _, state := range []string{"quarantined = true", "invalidated_at = now()"} {
		gone := store(t, c, "a", "note gone by "+state)
		if _, err := db.Exec(t.Context(), `update memories set `+state+` where id = $1`, gone); err != nil {
			t.Fatal(err)
		}
		tooltest.Fault(t, c, who, "memory_read", map[string]any{"memory_id": gone}, "not_found")
		if got := tooltest.OK[batch](t, c, who, "memory_fetch_batch", map[string]any{"ids": []string{gone}}); len(got.Memories) != 0 {
			t.Errorf("fetched %+v", got)
		}
		// Nor does anything follow from it.
		tooltest.Fault(t, c, who, "memory_store", map[string]any{"content": "drawn from what is gone by " + state, "derived_from": []string{gone}}, "not_found")
	}
	for _, query := range []string{"note", ""} {
		if got := search(t, c, "a", query); len(got.Memories) != 1 || got.Memories[0].ID != kept {
			t.Errorf("search %q: %+v", query, got.Memories)
		}
	}
}

func TestSearchExplains(t *testing.T) {
	_, c, who := begin(t, "a")
	tooltest.OK[stored](t, c, who, "memory_store", `{"content":"tea on Monday","importance":2}`)
	tooltest.OK[stored](t, c, who, "memory_store", `{"content":"tea on Tuesday","importance":9}`)
	got := tooltest.OK[results](t, c, who, "memory_search", `{"query":"tea","explain":true}`)
	if len(got.Memories) != 2 || got.Memories[0].Content != "tea on Tuesday" {
		t.Fatalf("of two equal matches the important one is first: %+v", got.Memories)
	}
	for _, m := range got.Memories {
		p := m.Parts
		want := p["relevance"] * (0.90 + 0.04*p["importance"] + 0.03*p["recency"] + 0.03*p["trust"])
		if len(p) != 4 || math.Abs(m.Score-want) > 2e-4 || m.Score <= 0 || m.Score > 1 {
			t.Errorf("score %v of parts %v, want %v", m.Score, p, want)
		}
	}
	if plain := search(t, c, "a", "tea"); plain.Memories[0].Parts != nil {
		t.Error("the parts come without being asked for")
	}
}
