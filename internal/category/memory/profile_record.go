package memory

import (
	"context"
	"strings"
	"unicode"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/terms"
)

const (
	originProfile     = "user_profile"
	profileTag        = "user-profile"
	profileImportance = 6
)

type profileRecordArgs struct {
	UserID      string   `json:"user_id" doc:"-" maxlen:"128"`
	Predicate   string   `json:"predicate" doc:"Such as prefers_language" maxlen:"64"`
	Value       string   `json:"value" doc:"Of the trait" maxlen:"1000"`
	OriginTrust *float64 `json:"origin_trust,omitempty" doc:"How sure; operators above 0.6" min:"0" max:"1"`
}

func (a profileRecordArgs) Validate() error {
	for parameter, value := range map[string]string{"user_id": a.UserID, "predicate": a.Predicate, "value": a.Value} {
		if strings.TrimSpace(value) == "" {
			return fault.Invalid(parameter, "%s must not be blank", parameter)
		}
	}
	for parameter, value := range map[string]string{"user_id": a.UserID, "predicate": a.Predicate} {
		if strings.ContainsFunc(value, unicode.IsControl) {
			return fault.Invalid(parameter, "%s must be one line", parameter)
		}
	}
	return nil
}

type profileRecordResult struct {
	MemoryID   string `json:"memory_id"`
	UserID     string `json:"user_id"`
	Predicate  string `json:"predicate"`
	Superseded string `json:"superseded,omitzero"`
}

// profileRecord keeps a trait of a user as a fact, so that its history can be
// asked for: memory_get_history with subject user:<id>.
func (m memory) profileRecord(ctx context.Context, who caller.Caller, a profileRecordArgs) (profileRecordResult, error) {
	declared := 1.0
	if a.OriginTrust != nil {
		declared = *a.OriginTrust
	}
	user, predicate, value := strings.TrimSpace(a.UserID), traitName(a.Predicate), oneLine(a.Value)
	kept, err := m.keep(ctx, draft{
		agent: who.Agent, content: predicate + ": " + value, tags: []string{profileTag}, marks: []string{},
		layer: semantic, importance: profileImportance, origin: originProfile, trust: trust(who, originProfile, declared),
		fact: &fact{subject: userSubject(user), predicate: predicate, object: value, from: m.now()},
	})
	return profileRecordResult{MemoryID: kept.MemoryID, UserID: user, Predicate: predicate, Superseded: kept.Superseded}, err
}

func userSubject(user string) string { return "user:" + strings.TrimSpace(user) }

// traitName is one spelling for a trait: Timezone, "time zone " and time_zone
// are two traits, not three.
func traitName(predicate string) string {
	return strings.Join(strings.Fields(terms.Fold(predicate)), "_")
}

// oneLine keeps a value from posing as further lines of a profile.
func oneLine(value string) string {
	return strings.Join(strings.FieldsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}
