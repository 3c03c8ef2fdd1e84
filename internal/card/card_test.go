package card_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawgate/internal/card"
	"pawgate/internal/fault"
	"pawgate/internal/postgres/postgrestest"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// TestText: the card says what a person decides on, and nothing in it hides or
// imitates anything.
func TestText(t *testing.T) {
	budget := int64(500)
	c := card.Card{ID: "abc", Kind: "call", AgentID: "coder", Tool: "odoo_execute", Because: "rule 2", ExpiresAt: noon,
		BudgetCents: &budget, SpentMicros: 1_230_000,
		Arguments: `{"a":"` + "\u202e\u200b\U000e0041\n" + `","b":"` + strings.Repeat("x", 5000) + `rm -rf"}`}
	got := c.Text("https://gate.example/approvals/t")
	for _, part := range []string{"Approval abc is needed", "Agent: `coder`", "to call odoo_execute once", "Because: `rule 2`", `\u{202e}\u{200b}\u{e0041}\u{000a}`,
		"rm -rf", "characters left out", "Cost so far: `$1.23 this month of a budget of $5.00`", "Until: `2026-12-01 12:00 UTC`",
		"https://gate.example/approvals/t", "pawgate approve abc"} {
		if !strings.Contains(got, part) {
			t.Errorf("the card lacks %q:\n%s", part, got)
		}
	}
	if len(got) > 2000 {
		t.Errorf("%d bytes are too many for a message", len(got))
	}
	spoof := card.Card{Kind: "call", ID: "s", Tool: "t", Arguments: "{\"a\":\"```\\n[Approve](https://evil.example/x)`\"}", ExpiresAt: noon}.Text("https://gate.example/approvals/t")
	if strings.Count(spoof, "://") != 1 || strings.Count(spoof, "```") != 2 {
		t.Errorf("an argument is more than text:\n%s", spoof)
	}
	grant := card.Card{ID: "g", Kind: "grant", Tool: "web_fetch", ExpiresAt: noon}.Text("")
	if strings.Contains(grant, "Arguments:") || strings.Contains(grant, "http") || !strings.Contains(grant, "to use web_fetch for some time") {
		t.Errorf("grant:\n%s", grant)
	}
}

func TestParseBase(t *testing.T) {
	for raw, ok := range map[string]bool{
		"": true, "https://gate.example": true, "https://gate.example/stage/": true, "http://localhost:8080": true, "http://127.0.0.1": true,
		"http://gate.example": false, "gate.example": false, "https://u:p@gate.example": false, "https://gate.example?x=1": false, "javascript:alert(1)": false,
	} {
		if _, err := card.ParseBase(raw); (err == nil) != ok {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// outbox is a channel that tests look into.
type outbox struct {
	mu   sync.Mutex
	sent []card.Message
	err  error
}

func (o *outbox) Send(_ context.Context, m card.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil || errors.Is(o.err, errMaybe) {
		o.sent = append(o.sent, m)
	}
	return o.err
}

var errMaybe error = fault.New(fault.OutcomeUnknown, "it may have arrived")

func setup(t *testing.T) (*pgxpool.Pool, card.Cards, *outbox) {
	t.Helper()
	t.Parallel()
	db, box := postgrestest.Clone(t), &outbox{}
	exec(t, db, `insert into agents (id, approval_card) values ('coder', 'telegram:-100:7'), ('quiet', '')`)
	base := &url.URL{Scheme: "https", Host: "gate.example"}
	return db, card.Cards{DB: db, Sender: box, Links: card.Links{Base: base, Now: time.Now}}, box
}

func exec(t *testing.T, db *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(context.Background(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func ask(t *testing.T, db *pgxpool.Pool, id, agent string) {
	t.Helper()
	exec(t, db, `insert into approvals (id, agent_id, credential_id, tool, definition, arguments_hash, arguments, expires_at)
		values ($1, $2, 'k', 'send_message', '', '', '{"to": "x"}', now() + interval '15 minutes')`, id, agent)
}

// TestSend: one card for one request, to where the operator said, whoever and
// however many send.
func TestSend(t *testing.T) {
	db, cards, box := setup(t)
	ask(t, db, "a1", "coder")
	ask(t, db, "q1", "quiet")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if _, err := cards.Send(t.Context(), ""); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if len(box.sent) != 1 {
		t.Fatalf("%d cards", len(box.sent))
	}
	m := box.sent[0]
	if m.Agent != "coder" || m.Channel != "telegram" || m.Destination != "-100:7" || !strings.HasPrefix(m.Key, "approval:a1:") || !strings.Contains(m.Text, "https://gate.example/approvals/ey") {
		t.Errorf("sent %+v", m)
	}
	exec(t, db, `update approval_cards set claimed_until = '-infinity'`)
	if n, err := cards.Send(t.Context(), ""); n != 0 || err != nil {
		t.Errorf("a second card: %d, %v", n, err)
	}
}

// TestSendThroughAnother: a card can go through the channel of an agent that the
// one who asks cannot write with.
func TestSendThroughAnother(t *testing.T) {
	db, cards, box := setup(t)
	exec(t, db, `update agents set approval_card = 'ops/slack:C1' where id = 'coder'`)
	ask(t, db, "a1", "coder")
	if _, err := cards.Send(t.Context(), ""); err != nil || len(box.sent) != 1 || box.sent[0].Agent != "ops" || box.sent[0].Channel != "slack" || box.sent[0].Destination != "C1" {
		t.Errorf("%+v, %v", box.sent, err)
	}
}

// TestSendFails: what did not arrive is due again, for a while; what may have
// arrived is not sent twice; what was decided needs no card any more.
func TestSendFails(t *testing.T) {
	db, cards, box := setup(t)
	ask(t, db, "a1", "coder")
	box.err = errors.New("no route")
	again := func() (int, error) {
		exec(t, db, `update approval_cards set claimed_until = '-infinity'`)
		return cards.Send(t.Context(), "a1")
	}
	if n, err := again(); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
	box.err = errMaybe
	if n, err := again(); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, _ := again(); n != 0 || len(box.sent) != 1 {
		t.Errorf("%d cards sent", len(box.sent))
	}
	ask(t, db, "a2", "coder")
	exec(t, db, `update approvals set state = 'denied' where id = 'a2'`)
	ask(t, db, "a3", "coder")
	exec(t, db, `update approvals set expires_at = now() where id = 'a3'`)
	if n, err := cards.Send(t.Context(), ""); n != 0 || err != nil {
		t.Errorf("%d cards of what is over, %v", n, err)
	}
	ask(t, db, "a4", "coder")
	box.err = errors.New("no route")
	for range 10 {
		exec(t, db, `update approval_cards set claimed_until = '-infinity'`)
		_, _ = cards.Send(t.Context(), "a4")
	}
	var attempts int
	if err := db.QueryRow(t.Context(), `select attempts from approval_cards where approval_id = 'a4'`).Scan(&attempts); err != nil || attempts != 5 {
		t.Errorf("%d attempts, %v", attempts, err)
	}
}

// TestSendChanged: a card whose text is another at the next attempt, because the
// agent has spent money meanwhile, is no longer the same message to a channel
// that holds a key to its text, and the same text keeps its key.
func TestSendChanged(t *testing.T) {
	db, cards, box := setup(t)
	ask(t, db, "a1", "coder")
	again := func() card.Message {
		exec(t, db, `update approval_cards set claimed_until = '-infinity', sent_at = null`)
		if _, err := cards.Send(t.Context(), "a1"); err != nil {
			t.Fatal(err)
		}
		return box.sent[len(box.sent)-1]
	}
	first, same := again(), again()
	exec(t, db, `update agents set budget_cents = 700 where id = 'coder'`)
	other := again()
	if first != same || other.Text == first.Text || other.Key == first.Key {
		t.Errorf("keys %s, %s and, of another text, %s", first.Key, same.Key, other.Key)
	}
}

// TestLinks: a token is good for its request and its time, and nothing else that
// the gate signs is one.
func TestLinks(t *testing.T) {
	db, cards, _ := setup(t)
	links := cards.Links
	now := time.Now()
	links.Now = func() time.Time { return now }
	address, err := links.To(t.Context(), db, card.Card{ID: "a1", AgentID: "coder", ExpiresAt: now.Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimPrefix(address, "https://gate.example"+card.Path)
	if l, err := links.Check(t.Context(), db, token); err != nil || l != (card.Link{Approval: "a1", Agent: "coder"}) {
		t.Fatalf("%+v, %v", l, err)
	}
	var key []byte
	if err := db.QueryRow(t.Context(), `select key from gate_secret`).Scan(&key); err != nil {
		t.Fatal(err)
	}
	sign := func(method jwt.SigningMethod, key any, audience ...string) string {
		s, err := jwt.NewWithClaims(method, jwt.RegisteredClaims{ID: "a1", Subject: "coder", Audience: audience, ExpiresAt: jwt.NewNumericDate(now.Add(time.Hour))}).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	parts := strings.Split(token, ".")
	for name, bad := range map[string]string{
		"empty": "", "noise": "a.b.c", "long": strings.Repeat("x", 5000) + "..", "cut": token[:len(token)-2], "other claims": parts[0] + "." + parts[0] + "." + parts[2],
		"the key of states":   sign(jwt.SigningMethodHS256, key, "approval-card"),
		"a state of a client": sign(jwt.SigningMethodHS256, key),
		"alg none":            sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "approval-card"),
		"HS512":               sign(jwt.SigningMethodHS512, key, "approval-card"),
	} {
		if _, err := links.Check(t.Context(), db, bad); !errors.Is(err, card.ErrLink) {
			t.Errorf("%s: %v", name, err)
		}
	}
	now = now.Add(2 * time.Minute)
	if _, err := links.Check(t.Context(), db, token); !errors.Is(err, card.ErrLink) {
		t.Errorf("after its time: %v", err)
	}
}
