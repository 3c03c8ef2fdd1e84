// Package card tells a person, in a message, that an agent's call waits for an
// approval, and gives the link under which it is decided.
//
// A card is owed from the moment its request is written (a trigger does that, in
// the same transaction), and sent by whoever calls Send: the router at once,
// and a clock for what the router could not send. The package does not know the
// channels, and decides nothing: the link leads to the router.
package card

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed claim.sql
var claimSQL string

//go:embed read.sql
var readSQL string

//go:embed sent.sql
var sentSQL string

const (
	// lease is how long one sender has a card, in seconds; after it another
	// takes it over.
	lease = 60
	// mostAttempts ends what can never be delivered.
	mostAttempts = 5
	// batch is how many cards one Send takes on.
	batch = 20
	// shownArguments is how many characters of the arguments a card holds; its
	// link leads to all that is kept.
	shownArguments = 1200
)

// Message is one card on its way.
type Message struct {
	Agent       string // whose channel it goes through
	Channel     string // such as telegram
	Destination string // a chat, channel or user of it
	Text        string // markdown
	// Key is the same for every attempt to send this text of the card.
	Key string
}

// Sender carries a message to a channel. A fault.OutcomeUnknown says that it may
// have arrived; any other error that it did not.
type Sender interface {
	Send(context.Context, Message) error
}

// Card is a request for approval, as a person sees it.
type Card struct {
	Destination string
	ID          string
	Kind        string // call, or grant: leave to use a tool for some time
	AgentID     string
	Tool        string
	Arguments   string // JSON, secrets hidden when it was written
	Because     string
	State       string
	Reason      string
	DecidedBy   string
	ExpiresAt   time.Time
	BudgetCents *int64
	SpentMicros int64
}

// Cards sends and reads cards.
type Cards struct {
	DB     postgres.DB
	Sender Sender
	Links  Links
}

// Send sends the card of one request, or of all when only is empty, where it is
// due. It gives the number sent, and the errors of those that were not; they are
// due again after a minute.
func (c Cards) Send(ctx context.Context, only string) (int, error) {
	due, err := postgres.All[Card](ctx, c.DB, claimSQL, pgx.StrictNamedArgs{"only": only, "most": mostAttempts, "batch": batch, "lease": lease})
	if err != nil {
		return 0, fmt.Errorf("claim cards: %w", err)
	}
	sent := 0
	var failed []error
	for _, d := range due {
		if err := c.send(ctx, d); err != nil {
			failed = append(failed, fmt.Errorf("send card of approval %s: %w", d.ID, err))
			continue
		}
		sent++
	}
	return sent, errors.Join(failed...)
}

func (c Cards) send(ctx context.Context, d Card) error {
	link, err := c.Links.To(ctx, c.DB, d)
	if err != nil {
		return err
	}
	channel, destination, _ := strings.Cut(d.Destination, ":")
	through, channel, another := strings.Cut(channel, "/")
	if !another {
		through, channel = d.AgentID, through
	}
	text := d.Text(link)
	err = c.Sender.Send(ctx, Message{Agent: through, Channel: channel, Destination: destination, Text: text, Key: key(d.ID, text)})
	if f, ok := fault.Of(err); err != nil && (!ok || f.Reason != fault.OutcomeUnknown) {
		return err
	}
	if _, err := postgres.Exec(context.WithoutCancel(ctx), c.DB, sentSQL, pgx.StrictNamedArgs{"id": d.ID}); err != nil {
		return fmt.Errorf("note card: %w", err)
	}
	return nil
}

// key makes a repetition recognisable. It holds the text too, because that may
// change between two attempts (what the agent has spent), and a channel refuses
// another message under a key that it has seen.
func key(id, text string) string {
	sum := sha256.Sum256([]byte(text))
	return "approval:" + id + ":" + hex.EncodeToString(sum[:8])
}

// Read gives the request that a link is about; pgx.ErrNoRows when it is gone.
func (c Cards) Read(ctx context.Context, l Link) (Card, error) {
	return postgres.One[Card](ctx, c.DB, readSQL, pgx.StrictNamedArgs{"id": l.Approval, "agent": l.Agent})
}

// Line is one line of a card: what it says and its name.
type Line struct{ Name, Value string }

// Lines are what a person decides on.
func (c Card) Lines() []Line {
	asks := "to call " + c.Tool + " once"
	if c.Kind == "grant" {
		asks = "to use " + c.Tool + " for some time"
	}
	lines := []Line{{"Agent", c.AgentID}, {"Asks", asks}, {"Because", visible(c.Because)}}
	if c.Kind == "call" {
		lines = append(lines, Line{"Arguments", visible(c.Arguments)})
	}
	return append(lines, Line{"Cost so far", c.cost()}, Line{"Until", c.ExpiresAt.UTC().Format("2006-01-02 15:04 MST")})
}

// cost is what the agent has spent this month: what one call costs is known
// only afterwards.
func (c Card) cost() string {
	spent := fmt.Sprintf("$%.2f this month", float64(c.SpentMicros)/1e6)
	if c.BudgetCents == nil {
		return spent + ", no budget set"
	}
	return fmt.Sprintf("%s of a budget of $%.2f", spent, float64(*c.BudgetCents)/100)
}

// Text is the card as a message, with the link if there is one. Values stand in
// code, which they cannot leave, and no address among them is one to click on:
// the only link of the card is the router's.
func (c Card) Text(link string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Approval %s is needed\n", c.ID)
	for _, line := range c.Lines() {
		value := inert.Replace(bothEnds(line.Value))
		if line.Name == "Arguments" {
			fmt.Fprintf(&b, "%s:\n```\n%s\n```\n", line.Name, value)
			continue
		}
		fmt.Fprintf(&b, "%s: `%s`\n", line.Name, cmp.Or(value, "-"))
	}
	if link != "" {
		fmt.Fprintf(&b, "Approve or deny: %s\n", link)
	}
	fmt.Fprintf(&b, "Or: pawgate approve %s", c.ID)
	return b.String()
}

// inert takes from a value what a message would make of it.
var inert = strings.NewReplacer("`", `\u{0060}`, "://", ": //")

// bothEnds cuts a long text in the middle, so that padding hides nothing.
func bothEnds(s string) string {
	runes := []rune(s)
	if len(runes) <= shownArguments {
		return s
	}
	half := shownArguments / 2
	return fmt.Sprintf("%s … (%d characters left out) … %s", string(runes[:half]), len(runes)-2*half, string(runes[len(runes)-half:]))
}

// visible writes out what would change how a text looks without being seen:
// direction marks, zero-width and tag characters, line breaks.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\u{%04x}`, r)
	}
	return b.String()
}
