package router_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pawgate/internal/caller"
	"pawgate/internal/card"
	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/router"
	"pawgate/internal/tool"
)

// inbox is the channel that cards arrive in.
type inbox struct {
	mu    sync.Mutex
	cards []card.Message
}

func (i *inbox) Send(_ context.Context, m card.Message) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.cards = append(i.cards, m)
	return nil
}

// link is the path of the link in the last card.
func (i *inbox) link(t *testing.T) string {
	t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.cards) == 0 {
		t.Fatal("no card came")
	}
	_, rest, _ := strings.Cut(i.cards[len(i.cards)-1].Text, "https://gate.example")
	path, _, _ := strings.Cut(rest, "\n")
	return path
}

func newCardGate(t *testing.T) (*gate, *inbox) {
	t.Helper()
	box := &inbox{}
	g := newGate(t, func(c *router.Config) {
		c.Cards = card.Cards{Sender: box, Links: card.Links{Base: &url.URL{Scheme: "https", Host: "gate.example"}}}
	})
	g.requireApproval()
	g.exec(`update agents set approval_card = 'telegram:42' where id = 'alice'`)
	return g, box
}

// open asks for a page as a browser does.
func (g *gate) open(method, path, form string, edit ...func(*http.Request)) reply {
	g.Helper()
	req := httptest.NewRequestWithContext(g.Context(), method, "https://gate.example"+path, strings.NewReader(form))
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", "https://gate.example")
	}
	for _, e := range edit {
		e(req)
	}
	return g.do(req)
}

// TestCard: a call that needs an approval sends one card, whose link decides
// with a POST alone, once, and leaves a row.
func TestCard(t *testing.T) {
	g, box := newCardGate(t)
	id := g.post(write("a", "")).wantFault(t, "approval_required")["approval_id"].(string)
	g.post(write("a", "")).wantFault(t, "approval_required")
	if len(box.cards) != 1 || !strings.Contains(box.cards[0].Text, id) {
		t.Fatalf("%d cards: %v", len(box.cards), box.cards)
	}
	path := box.link(t)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		r := g.open(method, path, "")
		if r.Status != 200 || method == http.MethodGet && (!strings.Contains(r.Body, `<form method="post">`) || !strings.Contains(r.Body, "probe_write")) {
			t.Errorf("%s: HTTP %d %s", method, r.Status, r.Body)
		}
		for _, name := range []string{"Content-Security-Policy", "Referrer-Policy", "Cache-Control"} {
			if r.Header.Get(name) == "" {
				t.Errorf("no %s", name)
			}
		}
	}
	for _, query := range []string{"?decision=approve", "?decision=deny"} { // what is in the URL is not a form
		g.open(http.MethodGet, path+query, "")
		g.open(http.MethodPost, path+query, "reason=x")
	}
	if n := g.count(`select count(*) from approvals where state = 'pending'`); n != 1 {
		t.Fatal("to look decided something")
	}
	if r := g.open(http.MethodPost, path, "decision=approve"); r.Status != 200 || !strings.Contains(r.Body, "It is approved, decided by card telegram") {
		t.Errorf("HTTP %d %s", r.Status, r.Body)
	}
	if r := g.open(http.MethodPost, path, "decision=deny&reason=late"); !strings.Contains(r.Body, "It is approved") {
		t.Errorf("a second decision: %s", r.Body)
	}
	g.post(write("a", "")).wantOK(t)
	if r := g.open(http.MethodPost, path, "decision=approve"); !strings.Contains(r.Body, "It is used") {
		t.Errorf("after its use: %s", r.Body)
	}
	g.post(write("a", "")).wantFault(t, "approval_required") // one approval, one call
	if n := g.count(`select count(*) from audit where door = 'card' and agent_id = 'alice' and reason = 'approved'`); n != 1 {
		t.Errorf("%d rows tell of the decision", n)
	}
	if g.probe.ran.Load() != 1 {
		t.Errorf("ran %d times", g.probe.ran.Load())
	}
}

func TestCardDenies(t *testing.T) {
	g, box := newCardGate(t)
	g.post(write("a", "")).wantFault(t, "approval_required")
	g.open(http.MethodPost, box.link(t), url.Values{"decision": {"deny"}, "reason": {"<b>no</b>"}}.Encode())
	if f := g.post(write("a", "")).wantFault(t, "denied"); !strings.Contains(f["error"].(string), "<b>no</b>") {
		t.Errorf("fault: %v", f)
	}
	if r := g.open(http.MethodGet, box.link(t), ""); !strings.Contains(r.Body, "&lt;b&gt;no&lt;/b&gt;") || strings.Contains(r.Body, "<b>no</b>") {
		t.Errorf("CVE-2026-44429: text of others is not escaped: %s", r.Body)
	}
}

// TestCardLink: who has no link decides nothing, whoever they say they are.
func TestCardLink(t *testing.T) {
	g, box := newCardGate(t)
	id := g.post(write(`<script>alert(1)</script>`, "")).wantFault(t, "approval_required")["approval_id"].(string)
	path := box.link(t)
	if r := g.open(http.MethodGet, path, ""); strings.Contains(r.Body, "<script>") {
		t.Error("CVE-2026-44429: an argument is markup")
	}
	evil := header("Origin", "https://evil.example")
	for name, c := range map[string]struct {
		method, path string
		edit         []func(*http.Request)
		want         int
	}{
		"cut":              {http.MethodPost, path[:len(path)-3], nil, 404},
		"the id alone":     {http.MethodPost, card.Path + id, []func(*http.Request){as(aliceKey)}, 404},
		"nothing":          {http.MethodPost, card.Path, nil, 404},
		"another origin":   {http.MethodPost, path, []func(*http.Request){evil}, 403},
		"origin null":      {http.MethodPost, path, []func(*http.Request){header("Origin", "null")}, 403},
		"PUT":              {http.MethodPut, path, nil, 405},
		"no decision":      {http.MethodPost, path + "?x=1", []func(*http.Request){func(r *http.Request) { r.Body = http.NoBody }}, 400},
		"an enormous form": {http.MethodPost, path, []func(*http.Request){func(r *http.Request) { r.Body = readCloser(strings.Repeat("a", 1<<20)) }}, 400},
	} {
		if r := g.open(c.method, c.path, "decision=approve", c.edit...); r.Status != c.want {
			t.Errorf("%s: HTTP %d, want %d: %s", name, r.Status, c.want, r.Body)
		}
	}
	g.exec(`update approvals set expires_at = clock_timestamp()`)
	if r := g.open(http.MethodPost, path, "decision=approve"); !strings.Contains(r.Body, "time is over") {
		t.Errorf("AUTH-19: after its time: %s", r.Body)
	}
	if n := g.count(`select count(*) from approvals where state = 'pending'`); n != 1 {
		t.Error("something was decided")
	}
	t.Run("guessing is slowed down", func(t *testing.T) {
		last := 0
		for range 40 {
			last = g.open(http.MethodGet, card.Path+"a.b.c", "").Status
		}
		if last != http.StatusTooManyRequests {
			t.Errorf("HTTP %d", last)
		}
	})
}

func readCloser(s string) *watchedBody { return &watchedBody{Reader: strings.NewReader(s)} }

// TestCardRace: many decide at once and one of them counts.
func TestCardRace(t *testing.T) {
	g, box := newCardGate(t)
	g.post(write("a", "")).wantFault(t, "approval_required")
	path := box.link(t)
	var approved, denied atomic.Int64
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			r := g.open(http.MethodPost, path, []string{"decision=approve", "decision=deny"}[i%2])
			if strings.Contains(r.Body, "It is approved") {
				approved.Add(1)
			}
			if strings.Contains(r.Body, "It is denied") {
				denied.Add(1)
			}
		})
	}
	group.Wait()
	if approved.Load()+denied.Load() != 20 || approved.Load()*denied.Load() != 0 {
		t.Errorf("%d saw it approved and %d denied", approved.Load(), denied.Load())
	}
	if n := g.count(`select count(*) from audit where door = 'card'`); n != 1 {
		t.Errorf("%d decisions recorded", n)
	}
}

// TestNoCards: without a public URL there is no such page.
func TestNoCards(t *testing.T) {
	g := newGate(t)
	if r := g.open(http.MethodGet, card.Path+"x", ""); r.Status != 404 || !strings.Contains(r.Body, "no such path") {
		t.Errorf("HTTP %d %s", r.Status, r.Body)
	}
}

type messageArgs struct {
	Channel string  `json:"channel" doc:"Channel"`
	Chat    tool.ID `json:"chat_id" doc:"Chat"`
	Text    string  `json:"text" doc:"Text"`
	Key     string  `json:"idempotency_key,omitempty" doc:"Key"`
}

// TestCardByTool: without a sender of its own the router sends cards with the
// tool that sends messages, through whose channel the operator said; a card that
// cannot be sent changes no answer.
func TestCardByTool(t *testing.T) {
	var mu sync.Mutex
	var sent []messageArgs
	var through []string
	var broken atomic.Bool
	send := tool.Category{Name: "send", Tools: []tool.Tool{
		tool.Write("send_message", "Send a text.", func(_ context.Context, who caller.Caller, a messageArgs) (nothing, error) {
			if broken.Load() {
				return nothing{}, fault.New("no_channel", "there is no such channel")
			}
			mu.Lock()
			defer mu.Unlock()
			sent, through = append(sent, a), append(through, who.Agent)
			return nothing{}, nil
		}, tool.Rate(tool.ClassSend)),
	}}
	g := newGate(t, func(c *router.Config) {
		probes := (&probe{}).category()
		tools, err := catalog.Of(probes, send)
		if err != nil {
			t.Fatal(err)
		}
		c.Catalog, c.Backends["send"] = tools, router.InProcess{Table: tool.Assemble(send)}
		c.Cards.Links.Base = &url.URL{Scheme: "https", Host: "gate.example"}
	})
	g.requireApproval()
	g.exec(`update agents set approval_card = 'bob/telegram:-42' where id = 'alice'`)
	id := g.post(write("a", "")).wantFault(t, "approval_required")["approval_id"].(string)
	g.post(write("a", "")).wantFault(t, "approval_required")
	if len(sent) != 1 || through[0] != "bob" || sent[0].Channel != "telegram" || sent[0].Chat != "-42" || !strings.HasPrefix(sent[0].Key, "approval:"+id+":") || !strings.Contains(sent[0].Text, card.Path) {
		t.Errorf("sent %+v through %v", sent, through)
	}
	broken.Store(true)
	g.post(write("b", "")).wantFault(t, "approval_required")
	if !strings.Contains(g.log.String(), "card not sent") {
		t.Error("nobody is told that the card was not sent")
	}
	broken.Store(false)
	g.exec(`update approval_cards set claimed_until = '-infinity'`)
	if n, err := g.router.Cards.Send(t.Context(), ""); n != 1 || err != nil {
		t.Errorf("later %d are sent, %v", n, err)
	}
}
