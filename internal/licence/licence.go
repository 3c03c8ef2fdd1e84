// Package licence makes and checks the signed statement of what an
// installation has paid for.
//
// A licence is a JWT (RFC 7519) signed with Ed25519 (EdDSA, RFC 8037). Whoever
// sells pawgate, the operator of the key, signs it; the installation checks it
// with the public key alone, without a network. It says customer, edition,
// expiry and how many agents there may be.
//
// Without a licence the edition is community. A licence that has expired is
// good for GracePeriod longer, which is announced (Notice); after that the
// edition is community again. Nothing is deleted and no agent is stopped: tools
// of a larger edition answer that their edition is missing. A text that is no
// genuine licence is an error, never a smaller licence, so that a mistake in
// configuration is seen at start.
//
// The package reads no clock, no file and no environment by itself.
package licence

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"pawgate/internal/plural"
	"pawgate/internal/tool"
)

// GracePeriod is how long a licence is good after its expiry: 14 days.
const GracePeriod = 14 * 24 * time.Hour

// noticePeriod is how long before its expiry a licence is spoken of: 30 days.
const noticePeriod = 30 * 24 * time.Hour

// Licence is what was paid for. The zero Licence is the community edition: no
// customer, no expiry, no limit of agents.
type Licence struct {
	ID       string       `json:"id,omitempty"`
	Customer string       `json:"customer,omitempty"`
	Edition  tool.Edition `json:"edition,omitempty"` // see EditionAt for what it is worth now
	// Agents is how many agents there may be; 0 means any number.
	Agents int       `json:"agents,omitempty"`
	Issued time.Time `json:"issued,omitzero"`
	// NotBefore is when it begins; zero means when it was issued.
	NotBefore time.Time `json:"not_before,omitzero"`
	Expires   time.Time `json:"expires,omitzero"`
}

// State is where a licence is in its life.
type State string

// The states.
const (
	None    State = "none"    // there is no licence: community
	Pending State = "pending" // it begins later: community until then
	Valid   State = "valid"
	Grace   State = "grace"   // expired, but good for a few days more
	Expired State = "expired" // community
)

// State is the state at a time, and the days that are left of it, a day begun
// counting as one: until it begins (pending), until it expires (valid), until
// the grace ends (grace), otherwise 0.
func (l Licence) State(now time.Time) (State, int) {
	switch {
	case l.Expires.IsZero():
		return None, 0
	case now.Before(l.NotBefore):
		return Pending, days(l.NotBefore.Sub(now))
	case now.Before(l.Expires):
		return Valid, days(l.Expires.Sub(now))
	case now.Before(l.Expires.Add(GracePeriod)):
		return Grace, days(l.Expires.Add(GracePeriod).Sub(now))
	}
	return Expired, 0
}

func days(d time.Duration) int { return int(math.Ceil(d.Hours() / 24)) }

// inForce reports whether the licence counts at a time.
func (l Licence) inForce(now time.Time) bool {
	state, _ := l.State(now)
	return state == Valid || state == Grace
}

// EditionAt is the edition that the installation has at a time.
func (l Licence) EditionAt(now time.Time) tool.Edition {
	if !l.inForce(now) {
		return tool.Community
	}
	return l.Edition
}

// Allows reports whether tools of an edition may be used at a time. An edition
// that is not known is in no licence.
func (l Licence) Allows(edition tool.Edition, now time.Time) bool {
	wanted := rank(cmp.Or(edition, tool.Community))
	return wanted >= 0 && wanted <= rank(l.EditionAt(now))
}

// AgentLimit is how many agents there may be at a time; 0 means any number.
// The community edition limits tools, not agents.
func (l Licence) AgentLimit(now time.Time) int {
	if !l.inForce(now) {
		return 0
	}
	return l.Agents
}

// editions are in order, smallest first.
func rank(e tool.Edition) int {
	return slices.Index([]tool.Edition{tool.Community, tool.Pro, tool.Enterprise}, e)
}

// Notice is what the operator should read in the log at start and once a day;
// empty when there is nothing to do for 30 days.
func (l Licence) Notice(now time.Time) string {
	state, left := l.State(now)
	day := l.Expires.UTC().Format(time.DateOnly)
	switch {
	case state == Pending:
		return fmt.Sprintf("the licence for the %s edition begins in %s; until then this is the community edition", l.Edition, plural.Of(left, "day"))
	case state == Grace:
		return fmt.Sprintf("the licence for the %s edition expired on %s; it is accepted for %s more, then this becomes the community edition; renew it", l.Edition, day, plural.Of(left, "day"))
	case state == Expired:
		return fmt.Sprintf("the licence for the %s edition expired on %s and its %d days of grace are over: this is the community edition; renew it", l.Edition, day, days(GracePeriod))
	case state == Valid && l.Expires.Sub(now) <= noticePeriod:
		return fmt.Sprintf("the licence for the %s edition expires in %s, on %s; renew it", l.Edition, plural.Of(left, "day"), day)
	}
	return ""
}
