// Package odoo speaks to one Odoo server as one user: JSON-2 with an API key
// from Odoo 19, JSON-RPC before, XML-RPC where nothing else is open.
//
// Open finds out which version and which door there are and who the login is;
// what it found may be kept and given to New, which does no I/O. A Client
// keeps no session and no cookie: every request carries the login it was made
// with, so two of them cannot see each other's user.
//
// A request is repeated only when repeating is safe: one that surely never
// left, or a reading method whose answer was lost. What the server refuses
// becomes an *Error of a Kind, with the server's own sentence; a traceback,
// which Odoo sends with every fault, never leaves this package.
//
// The wire forms are those of Odoo's external RPC API (16 to 19) and of its
// external JSON-2 API (19).
package odoo

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/safehttp"
)

// Login is one account in one database of one server. The parts belong
// together; nothing here ever combines parts of two.
type Login struct {
	URL      string // https://host, with a path where Odoo is below one
	Database string
	User     string // the user's login, often an e-mail address
	Secret   string // a password or an API key
	APIKey   bool   // which of the two
}

// Door is a protocol that a server answers.
type Door string

// The doors.
const (
	JSON2   Door = "json2"
	JSONRPC Door = "jsonrpc"
	XMLRPC  Door = "xmlrpc"
)

// Server is what Open found.
type Server struct {
	Version  string // as the server says it, such as "18.0+e-20241005"
	Major    int    // 18
	Door     Door
	UID      int64  // the id of the login's user
	Lang     string // the user's own, such as en_US
	TimeZone string // the user's own, such as Asia/Taipei; may be empty
}

// Client makes calls as one user. It is safe for concurrent use.
type Client struct {
	http   *safehttp.Client
	login  Login
	server Server
}

// New is a client for a server that was found before. It does no I/O. The
// HTTP client must not follow redirects: see Policy.
func New(http *safehttp.Client, login Login, server Server) *Client {
	login.URL = strings.TrimRight(login.URL, "/")
	return &Client{http: http, login: login, server: server}
}

// Policy is a safehttp policy as this package needs it: no redirect is
// followed, since every request carries a credential, and Odoo's own port is
// open besides those of the web.
func Policy(p safehttp.Policy) safehttp.Policy {
	p.MaxRedirects = -1
	if len(p.Ports) == 0 {
		p.Ports = []int{80, 443, 8069, 8080, 8443}
	}
	return p
}

// Server is what is known of the server.
func (c *Client) Server() Server { return c.server }

// Arg is one argument of a method, by its name in Odoo's source.
type Arg struct {
	Name  string
	Value any
}

// Call is one call of a method of a model.
type Call struct {
	Model, Method string
	// IDs are the records the method runs on; nil for a method of the model
	// itself, such as search_read.
	IDs []int64
	// Args go by position where the door has positions, and by name else.
	Args []Arg
	// Options always go by name.
	Options map[string]any
	// Context is Odoo's context: lang, tz, allowed_company_ids, active_test.
	Context map[string]any
	// Reads says that the method changes nothing, so that it may be repeated.
	Reads bool
}

// Call runs a method and gives its result as JSON; null where the method
// gives nothing. The error is an *Error, or one of package safehttp.
func (c *Client) Call(ctx context.Context, call Call) (jsontext.Value, error) {
	return c.repeat(ctx, call.Reads, func() (jsontext.Value, error) {
		switch c.server.Door {
		case JSON2:
			return c.json2(ctx, call)
		case XMLRPC:
			return c.xmlrpc(ctx, "object", "execute_kw", c.executeKw(call)...)
		}
		return c.jsonrpc(ctx, "object", "execute_kw", c.executeKw(call)...)
	})
}

// repeat runs a request again, once, if that is safe.
func (c *Client) repeat(ctx context.Context, reads bool, run func() (jsontext.Value, error)) (jsontext.Value, error) {
	v, err := run()
	if err != nil && ctx.Err() == nil && again(err, reads) {
		v, err = run()
	}
	return v, err
}

// executeKw are the arguments of the old doors' one method.
func (c *Client) executeKw(call Call) []any {
	args := []any{}
	if call.IDs != nil {
		args = append(args, call.IDs)
	}
	for _, a := range call.Args {
		args = append(args, a.Value)
	}
	named := map[string]any{}
	for name, value := range call.Options {
		named[name] = value
	}
	if len(call.Context) > 0 {
		named["context"] = call.Context
	}
	return []any{c.login.Database, c.server.UID, c.login.Secret, call.Model, call.Method, args, named}
}

// post sends a body and gives the answer, whatever its status.
func (c *Client) post(ctx context.Context, path, contentType string, header http.Header, body []byte) (*safehttp.Response, error) {
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", contentType)
	return c.http.Do(ctx, safehttp.Request{Method: http.MethodPost, URL: c.login.URL + path, Header: header, Body: body, Whole: true})
}
