package oauth

import "net/http"

// Error is a token that is not accepted, or that cannot be judged now. Its text
// is for the client and quotes nothing of the token.
type Error struct {
	// Status is 401 for a token that is not good here, 403 for one without the
	// base scope, 503 when the issuer's keys cannot be had.
	Status int
	// Code is the error code of RFC 6750 §3.1, invalid_token or
	// insufficient_scope; empty with 503.
	Code string
	// Reason is a stable token for the audit row, such as token_expired.
	Reason string
	// Scope is what was missing; set with insufficient_scope.
	Scope string

	message string
	cause   error
}

// The reasons.
const (
	Malformed      = "token_malformed"    // no JWT, or one with a broken part; opaque tokens too
	WrongType      = "token_type"         // a JWT for another purpose, or bound to a key
	BadAlgorithm   = "token_algorithm"    // not on the list; "none"
	UnknownKey     = "token_key"          // the issuer has no such key for this algorithm
	BadSignature   = "token_signature"    // the signature does not fit
	WrongIssuer    = "token_issuer"       // another iss, or none
	WrongAudience  = "token_audience"     // another aud, or none
	TokenExpired   = "token_expired"      // past its exp, or without one
	NotYetValid    = "token_not_yet"      // before its nbf or iat
	BadClaims      = "token_claims"       // no sub, or a claim of the wrong form
	MissingScope   = "insufficient_scope" // without the base scope
	KeysNotReached = "issuer_unreachable" // the keys cannot be fetched
)

func invalid(reason, message string) *Error {
	return &Error{Status: http.StatusUnauthorized, Code: "invalid_token", Reason: reason, message: message}
}

func (e *Error) because(cause error) *Error {
	e.cause = cause
	return e
}

func (e *Error) Error() string { return e.message }

// Unwrap is the cause, for the log.
func (e *Error) Unwrap() error { return e.cause }
