// Package odootest is an Odoo for tests: a server with the doors, models and
// odd answers of one version from 16 to 19.
//
// What differs between the versions is what recorded exchanges with real
// servers of 18 and 19 show, and for 16 and 17 what their source says: doors,
// field names, the words and classes of faults, statuses, what is missing
// from an answer. Every fault carries a traceback, as real ones do, so a test
// can see that none gets out. It is never linked by a program.
package odootest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Traceback is in every fault, and must be in no answer.
const Traceback = "Traceback (most recent call last):\n  File \"/usr/lib/python3/dist-packages/odoo/http.py\", line 1954, in _transactioning"

// User is an account of the fake.
type User struct {
	ID                         int64
	Login, Password, Key, Lang string
	Companies                  []int64
	Denied                     []string // models without any right
	SecondFactor               bool
}

// Call is a request that reached the models, for tests to look at.
type Call struct {
	Door          string
	UID           int64
	Model, Method string
	IDs           []int64
	Args          map[string]any // all arguments by name
	Context       map[string]any
}

// Server is the fake.
type Server struct {
	*httptest.Server
	Major    int
	Database string

	// Closed are doors that answer like a page that does not exist:
	// "/jsonrpc", "/xmlrpc", "/json/2", "/web/version".
	Closed []string
	// Before may answer a call in the server's place: it returns true when it
	// has written the response.
	Before func(w http.ResponseWriter, c Call) bool
	// After may spoil the answer of a call that was carried out.
	After func(w http.ResponseWriter, c Call) bool

	mu     sync.Mutex
	users  []User
	models map[string]*model
	calls  []Call
	http   int
	turn   int
}

// New starts a fake of a version, with an administrator (password admin, key
// Key), a user limited to nothing much, and a little data.
func New(t testing.TB, major int) *Server {
	t.Helper()
	s := &Server{Major: major, Database: fmt.Sprintf("odoo%d", major), users: []User{
		{ID: 2, Login: "admin", Password: "admin", Key: Key, Lang: "en_US", Companies: []int64{1, 2}},
		{ID: 8, Login: "limited", Password: "limited-pass-123", Key: "limited-key", Lang: "en_US", Companies: []int64{1},
			Denied: []string{"account.move", "crm.lead", "ir.module.module"}},
	}}
	s.models = models(major)
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Server.Close)
	return s
}

// Key is the administrator's API key.
const Key = "0123456789abcdef0123456789abcdef01234567"

// AddUser adds an account.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users = append(s.users, u)
}

// SetUser changes an account.
func (s *Server) SetUser(login string, change func(*User)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.users {
		if s.users[i].Login == login {
			change(&s.users[i])
		}
	}
}

// Add adds a record and gives its id.
func (s *Server) Add(model string, values map[string]any) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.models[model].add(values)
}

// Set changes a record behind everyone's back, as another client does.
func (s *Server) Set(model string, id int64, values map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, v := range values {
		s.models[model].find(id)[name] = v
	}
}

// Get is a record as it is stored; nil when there is none.
func (s *Server) Get(model string, id int64) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.models[model].find(id)
}

// AddField gives a model one field more.
func (s *Server) AddField(model, name string, attributes map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models[model].fields[name] = attributes
}

// Drop removes a model, as an app that is not installed lacks it.
func (s *Server) Drop(model string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.models, model)
}

// Calls are the calls of models so far.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Requests counts HTTP requests so far.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.http
}

// fault is an exception of the fake.
type fault struct{ class, message string }

func fail(class, format string, args ...any) *fault {
	return &fault{class, fmt.Sprintf(format, args...)}
}

// ServeHTTP answers at every door of the version.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.http++
	s.mu.Unlock()
	path := r.URL.Path
	switch {
	case slices.ContainsFunc(s.Closed, func(c string) bool { return strings.HasPrefix(path, c) }):
		page(w, http.StatusNotFound, "404 Not Found")
	case path == "/web/version" && s.Major >= 19:
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprintf(w, `{"version_info": [%d, 0, 0, "final", 0, ""], "version": "%d.0"}`, s.Major, s.Major)
	case path == "/jsonrpc":
		s.jsonrpc(w, r)
	case strings.HasPrefix(path, "/xmlrpc/2/"):
		s.xmlrpc(w, r)
	case strings.HasPrefix(path, "/json/2/") && s.Major >= 19:
		s.json2(w, r)
	case strings.HasPrefix(path, "/json/2/"):
		page(w, http.StatusOK, "Odoo") // the web client takes every path
	case path == "/web/session/authenticate":
		s.session(w, r)
	case strings.HasPrefix(path, "/report/pdf/"):
		s.report(w, r)
	case path == "/web/session/destroy":
		writeJSON(w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": nil, "result": nil})
	default:
		page(w, http.StatusNotFound, "404 Not Found")
	}
}

func page(w http.ResponseWriter, status int, title string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!DOCTYPE html>\n<html>\n<head><title>%s</title></head></html>", title)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// version is what common.version answers.
func (s *Server) version() map[string]any {
	return map[string]any{"server_version": fmt.Sprintf("%d.0", s.Major), "server_version_info": []any{s.Major, 0, 0, "final", 0, ""},
		"server_serie": fmt.Sprintf("%d.0", s.Major), "protocol_version": 1}
}

// common answers the service of the same name.
func (s *Server) common(method string, args []any) (any, *fault) {
	if method == "version" {
		return s.version(), nil
	}
	if len(args) < 3 {
		return nil, fail("builtins.TypeError", "exp_authenticate() missing arguments")
	}
	if args[0] != s.Database {
		return nil, fail("psycopg2.OperationalError", "connection to server at \"10.0.0.5\", port 5433 failed: FATAL:  database \"%v\" does not exist\n", args[0])
	}
	for _, u := range s.users {
		if u.Login == args[1] && args[2] != "" && (u.Password == args[2] || u.Key == args[2]) {
			return u.ID, nil
		}
	}
	return false, nil
}

// object answers execute_kw: it checks the login of every call.
func (s *Server) object(w http.ResponseWriter, door string, args []any) (any, *fault, bool) {
	if len(args) < 6 {
		return nil, fail("builtins.TypeError", "execute_kw() missing arguments"), false
	}
	if args[0] != s.Database {
		return nil, fail("psycopg2.OperationalError", "connection to server at \"10.0.0.5\", port 5433 failed: FATAL:  database \"%v\" does not exist\n", args[0]), false
	}
	user, ok := s.userBy(func(u User) bool {
		return toInt(args[1]) == u.ID && (args[2] == u.Password || args[2] == u.Key)
	})
	if !ok {
		return nil, fail("odoo.exceptions.AccessDenied", "Access Denied"), false
	}
	c := Call{Door: door, UID: user.ID, Model: args[3].(string), Method: args[4].(string), Args: map[string]any{}}
	positional, _ := args[5].([]any)
	if len(args) > 6 {
		for name, v := range args[6].(map[string]any) {
			c.Args[name] = v
		}
	}
	c.Context, _ = c.Args["context"].(map[string]any)
	delete(c.Args, "context")
	if !onModel(c.Method) && len(positional) > 0 {
		c.IDs, positional = toInts(positional[0]), positional[1:]
	}
	for i, name := range parameters[c.Method] {
		if i < len(positional) {
			c.Args[name] = positional[i]
		}
	}
	return s.dispatch(w, user, c)
}

func (s *Server) userBy(match func(User) bool) (User, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.users {
		if match(u) {
			return u, true
		}
	}
	return User{}, false
}

// dispatch runs a call; the last result is true when a hook has answered.
func (s *Server) dispatch(w http.ResponseWriter, user User, c Call) (any, *fault, bool) {
	s.mu.Lock()
	s.calls = append(s.calls, c)
	before, after := s.Before, s.After
	s.mu.Unlock()
	if before != nil && before(w, c) {
		return nil, nil, true
	}
	s.mu.Lock()
	result, f := s.run(user, c)
	s.mu.Unlock()
	if after != nil && after(w, c) {
		return nil, nil, true
	}
	return result, f, false
}
