// Package caller says who makes a call, and carries that statement, signed,
// from the router to a category.
//
// The caller is an argument of every handler, named who. It is made once, by
// the router's authentication; nothing a client sends as a tool argument can
// change it.
package caller

import (
	"slices"
	"strings"
)

// Scopes that are not tied to a category. The others have the form
// "category:read", "category:write" or "category:execute"; either side may be
// "*", and "*" alone stands for "*:*". They never imply the three below.
const (
	ScopeAll      = "*"
	ScopeApprove  = "approve"
	ScopeOperator = "operator"
)

// Caller is the agent on whose behalf a call runs, and the credential used.
type Caller struct {
	// Agent is the id of the agent's row, such as "default".
	Agent string `json:"agent"`
	// Credential is the id of the key or token used; never the secret.
	Credential string `json:"credential"`
	// Scopes are what the credential allows.
	Scopes []string `json:"scopes,omitempty"`
	// RequestID ties log lines and audit rows of one call together.
	RequestID string `json:"request_id,omitempty"`
}

// Operator reports whether the credential administers.
func (c Caller) Operator() bool { return c.HasScope(ScopeOperator) }

// HasScope reports whether the credential carries exactly this scope.
func (c Caller) HasScope(scope string) bool { return slices.Contains(c.Scopes, scope) }

// Allows reports whether the credential's scopes cover an action (read, write
// or execute) in a category.
func (c Caller) Allows(category, action string) bool {
	return slices.ContainsFunc(c.Scopes, func(scope string) bool {
		if scope == ScopeAll {
			return true
		}
		cat, act, ok := strings.Cut(scope, ":")
		return ok && (cat == "*" || cat == category) && (act == "*" || act == action)
	})
}

// Within cuts scopes down to those that a ceiling covers; nil is no ceiling.
func Within(scopes, ceiling []string) []string {
	if ceiling == nil {
		return scopes
	}
	return slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool {
		if slices.Contains(ceiling, scope) {
			return false
		}
		category, action, ok := strings.Cut(scope, ":")
		return !ok || !Caller{Scopes: ceiling}.Allows(category, action)
	})
}
