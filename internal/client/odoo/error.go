package odoo

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"pawgate/internal/safehttp"
)

// Kind is what a server's refusal means. Each has one next step.
type Kind string

// The kinds.
const (
	Access          Kind = "access"           // the user lacks a right, or a record is another company's
	Private         Kind = "private"          // the method may not be called from outside
	Missing         Kind = "missing"          // a record does not exist
	Refused         Kind = "refused"          // a rule of the business says no (UserError)
	Invalid         Kind = "invalid"          // a value breaks a constraint (ValidationError)
	WrongLogin      Kind = "wrong_login"      // login, password or key are not accepted
	WrongDatabase   Kind = "wrong_database"   // there is no such database
	UnknownModel    Kind = "unknown_model"    // not there in this version or not installed
	UnknownField    Kind = "unknown_field"    // not there in this version
	UnknownMethod   Kind = "unknown_method"   // not there in this version
	UnknownArgument Kind = "unknown_argument" // the method has no such argument
	BadDomain       Kind = "bad_domain"       // the search condition cannot be read
	Concurrent      Kind = "concurrent"       // another transaction was in the way; nothing was changed
	NoResult        Kind = "no_result"        // the method ran, and its None could not be written down
	Broken          Kind = "broken"           // an error inside Odoo
	NotAPI          Kind = "not_api"          // what answered is not this door
	Away            Kind = "away"             // a proxy says that Odoo is down
	Busy            Kind = "busy"             // a proxy says that there are too many requests
)

// Error is a server's refusal.
type Error struct {
	Kind Kind
	// Message is the server's own sentence, for a person; may be empty.
	Message string
	// Class is the Python class, such as odoo.exceptions.AccessError.
	Class string
	// Name is the model, field, method or argument that is unknown.
	Name   string
	Status int // of HTTP
}

func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("odoo: %s (status %d)", e.Kind, e.Status)
	}
	return fmt.Sprintf("odoo: %s: %s", e.Kind, e.Message)
}

// KindOf finds the kind in an error's chain; "" when there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// Unsent reports whether the request surely reached no server, so that
// nothing was changed.
func Unsent(err error) bool {
	var e *safehttp.Error
	return errors.As(err, &e) && !e.Sent
}

// Lost reports whether nobody knows what became of the request.
func Lost(err error) bool {
	var e *safehttp.Error
	if errors.As(err, &e) {
		return e.Sent
	}
	k := KindOf(err)
	return k == Away || k == NotAPI || err != nil && k == ""
}

// again reports whether a request may be repeated at once.
func again(err error, reads bool) bool {
	var e *safehttp.Error
	if errors.As(err, &e) {
		switch e.Reason {
		case safehttp.BadResponse:
			return reads || !e.Sent
		case safehttp.ConnectFailed:
			return !e.Sent
		}
		return false // refused by policy, too large, out of time
	}
	return reads && (KindOf(err) == Away || KindOf(err) == Concurrent)
}

// exception is a fault as both JSON doors write it. The debug member, a
// traceback, is not read.
type exception struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}

// unknown finds in a message what does not exist. The wordings are those of
// Odoo 16 to 19; see the recorded exchanges in testdata.
var unknown = []struct {
	kind Kind
	form *regexp.Regexp
}{
	{UnknownModel, regexp.MustCompile(`^Object (\S+) doesn't exist`)},
	{UnknownModel, regexp.MustCompile(`(?i)^the model '([^']+)' does not exist`)},
	{UnknownMethod, regexp.MustCompile(`^The method '(?:[a-z0-9_.]+\.)?([^'.]+)' does not exist`)},
	{UnknownMethod, regexp.MustCompile(`^type object '[^']+' has no attribute '([^']+)'`)},
	{UnknownField, regexp.MustCompile(`^Invalid field '([^']+)' on`)},
	{UnknownField, regexp.MustCompile(`^Invalid field (?:[a-z0-9_]+\.)+([a-z0-9_]+) in `)},
	{UnknownArgument, regexp.MustCompile(`got an unexpected keyword argument '([^']+)'`)},
	{UnknownArgument, regexp.MustCompile(`(?i)unknown (?:keyword )?argument:? '?([a-z0-9_]+)`)},
}

// databaseMissing is how PostgreSQL and Odoo say that there is no database.
var databaseMissing = regexp.MustCompile(`(?i)database "?[^"]*"? does not exist|no such database|database not found`)

// classify makes an Error of a fault by its class first and its words second,
// because the words are translated and the classes are not.
func (x exception) classify(status int) *Error {
	e := &Error{Kind: Broken, Message: tidy(x.Message), Class: x.Name, Status: status}
	class := x.Name[strings.LastIndexByte(x.Name, '.')+1:]
	switch class {
	case "AccessDenied", "Unauthorized":
		e.Kind = WrongLogin
	case "AccessError":
		e.Kind = Access
		if strings.HasPrefix(x.Message, "Private methods") {
			e.Kind = Private
		}
	case "MissingError":
		e.Kind = Missing
	case "ValidationError":
		e.Kind = Invalid
	case "UserError", "RedirectWarning", "Warning", "CacheMiss", "LockError":
		e.Kind = Refused
	case "SerializationFailure", "TransactionRollbackError", "LockNotAvailable", "DeadlockDetected":
		e.Kind, e.Message = Concurrent, ""
	case "OperationalError":
		if databaseMissing.MatchString(x.Message) {
			e.Kind = WrongDatabase
		}
		e.Message = "" // it names hosts and ports of the server's own network
	case "ValueError":
		if strings.Contains(x.Message, "unpack") || strings.HasPrefix(x.Message, "Domain()") || strings.HasPrefix(x.Message, "Invalid leaf") || strings.Contains(x.Message, "malformed domain") {
			e.Kind = BadDomain
		}
	case "TypeError":
		if strings.Contains(x.Message, "cannot marshal None") {
			e.Kind, e.Message = NoResult, ""
		}
	case "KeyError":
		if databaseMissing.MatchString(x.Message) {
			e.Kind = WrongDatabase
		} else if name := strings.Trim(x.Message, "'"); strings.Contains(name, ".") {
			e.Kind, e.Name = UnknownModel, name
		}
	}
	if strings.HasPrefix(x.Name, "psycopg2.") && e.Kind == Broken {
		e.Message = ""
		if class == "ForeignKeyViolation" || class == "NotNullViolation" || class == "UniqueViolation" || class == "CheckViolation" {
			e.Kind = Invalid
		}
	}
	e.unknown(class)
	return e
}

// unknown looks for what does not exist, in faults whose class leaves it open.
func (e *Error) unknown(class string) {
	switch class {
	case "UserError", "NotFound", "ValueError", "AttributeError", "TypeError", "UnprocessableEntity", "BadRequest":
	default:
		return
	}
	if e.Kind == NoResult {
		return
	}
	for _, u := range unknown {
		if found := u.form.FindStringSubmatch(e.Message); found != nil {
			e.Kind, e.Name = u.kind, found[1]
			return
		}
	}
	if class == "UnprocessableEntity" {
		e.Kind = Invalid
	}
}

// maxMessage bounds a server's sentence, in bytes.
const maxMessage = 600

// tidy keeps the sentence of a message: no traceback, no Python dictionary
// (a RedirectWarning carries one), no control characters.
func tidy(message string) string {
	if strings.Contains(message, "Traceback (most recent call last)") {
		message = lastLine(message)
	}
	var kept []string
	for line := range strings.Lines(message) {
		line = strings.TrimSpace(strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return ' '
			}
			return r
		}, line))
		if strings.HasPrefix(line, "{'") {
			break // the action of a button, then the button's name and context
		}
		if line != "" {
			kept = append(kept, line)
		}
	}
	text := strings.Join(kept, "\n")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

func lastLine(text string) string {
	text = strings.TrimRight(text, "\n ")
	return text[strings.LastIndexByte(text, '\n')+1:]
}
