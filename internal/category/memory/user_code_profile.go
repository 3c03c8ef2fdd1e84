package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"pawgate/internal/caller"
)

type userCodeProfileArgs struct {
	UserID string `json:"user_id,omitempty" doc:"-" maxlen:"128"`
}

type userCodeProfileResult struct {
	Users []codeProfile `json:"users"`
}

// codeProfile is what is known of one user, as rules a program can apply.
type codeProfile struct {
	UserID    string     `json:"user_id"`
	Rules     []rule     `json:"rules"`
	Conflicts []conflict `json:"conflicts"`
}

// rule is one trait, understood: its kind says which fields it has.
type rule struct {
	Kind     string `json:"kind"` // preference, constraint or fact
	MemoryID string `json:"memory_id"`
	Trait    string `json:"trait"` // as recorded

	// Of a preference.
	Topic    string  `json:"topic,omitempty"`
	Likes    *bool   `json:"likes,omitzero"`
	Strength float64 `json:"strength,omitzero"` // 0 to 1

	// Of a constraint.
	Action string `json:"action,omitempty"` // what must not be done
	Hours  *hours `json:"hours,omitzero"`   // when; always if absent

	// Of a preference or fact.
	Value string `json:"value,omitempty"`
}

// conflict is two rules of one user that cannot both be followed.
type conflict struct {
	Topic     string   `json:"topic"`
	MemoryIDs []string `json:"memory_ids"`
}

// userCodeProfile compiles the facts about each user into rules. Users are
// kept apart: what one prefers says nothing of another.
func (m memory) userCodeProfile(ctx context.Context, who caller.Caller, a userCodeProfileArgs) (userCodeProfileResult, error) {
	subject := ""
	if strings.TrimSpace(a.UserID) != "" {
		subject = userSubject(a.UserID)
	}
	rows, err := m.traits(ctx, who.Agent, subject)
	if err != nil {
		return userCodeProfileResult{}, err
	}
	byUser := map[string]*codeProfile{}
	for _, r := range rows {
		user := strings.TrimPrefix(r.Subject, "user:")
		p := byUser[user]
		if p == nil {
			p = &codeProfile{UserID: user}
			byUser[user] = p
		}
		if r.Predicate != summaryTrait {
			p.Rules = append(p.Rules, compileTrait(r))
		}
	}
	var result userCodeProfileResult
	for _, p := range byUser {
		p.Conflicts = conflicts(p.Rules)
		result.Users = append(result.Users, *p)
	}
	slices.SortFunc(result.Users, func(a, b codeProfile) int { return cmp.Compare(a.UserID, b.UserID) })
	return result, nil
}

// conflicts finds topics that a user both likes and dislikes.
func conflicts(rules []rule) []conflict {
	liked := map[string][]rule{}
	for _, r := range rules {
		if r.Likes != nil {
			topic := r.Topic + "\n" + strings.ToLower(r.Value)
			liked[topic] = append(liked[topic], r)
		}
	}
	var all []conflict
	for _, same := range liked {
		c := conflict{Topic: cmp.Or(same[0].Value, same[0].Topic)}
		yes, no := false, false
		for _, r := range same {
			yes, no = yes || *r.Likes, no || !*r.Likes
			c.MemoryIDs = append(c.MemoryIDs, r.MemoryID)
		}
		if yes && no {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b conflict) int { return cmp.Compare(a.Topic, b.Topic) })
	return all
}
