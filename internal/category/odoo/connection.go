package odoo

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	api "pawgate/internal/client/odoo"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed connection.sql
	connectionSQL string
	//go:embed found.sql
	foundSQL string
)

// connection is an agent's row.
type connection struct {
	AgentID, URL, Database, Login, Secret, SecretKind string

	Companies      []int64
	Lang, Timezone string

	AllowedModels, DeniedModels, DeniedFields, AllowedActions []string

	SetAt   time.Time
	FoundAt *time.Time

	FoundVersion  string
	FoundMajor    int
	FoundDoor     string
	FoundUID      int64
	FoundLang     string
	FoundTimezone string
	FoundEdition  string
	FoundModules  []string
}

// maxFound is how long a server's version and user are believed.
const maxFound = 24 * time.Hour

// session is one call's work on one connection, as one user.
type session struct {
	odoo
	who     caller.Caller
	conn    connection
	client  *api.Client
	entered bool // logged in during this call, so a refusal is final
	// known are the fields that this call has read already.
	known map[string]fields
}

// connection reads the caller's row. There is no other agent's to fall back on.
func (o odoo) connection(ctx context.Context, who caller.Caller) (connection, error) {
	c, err := postgres.One[connection](ctx, o.db, connectionSQL, pgx.StrictNamedArgs{"agent": who.Agent})
	if errors.Is(err, pgx.ErrNoRows) {
		return c, fault.New(fault.NotConfigured, "agent %s has no Odoo connection; an operator makes one with: pawgate odoo connect %s", who.Agent, who.Agent)
	}
	if err != nil {
		return c, fmt.Errorf("read odoo connection: %w", err)
	}
	return c, nil
}

// session opens the caller's connection. It asks Odoo only when the server
// was not found yet, or long ago.
func (o odoo) session(ctx context.Context, who caller.Caller) (*session, error) {
	conn, err := o.connection(ctx, who)
	if err != nil {
		return nil, err
	}
	s := &session{odoo: o, who: who, conn: conn, known: map[string]fields{}}
	if conn.FoundAt == nil || o.now().Sub(*conn.FoundAt) > maxFound {
		return s, s.enter(ctx)
	}
	login, err := s.login(ctx)
	if err != nil {
		return nil, err
	}
	s.client = api.New(o.http, login, api.Server{Version: conn.FoundVersion, Major: conn.FoundMajor, Door: api.Door(conn.FoundDoor),
		UID: conn.FoundUID, Lang: conn.FoundLang, TimeZone: conn.FoundTimezone})
	return s, nil
}

func (s *session) login(ctx context.Context) (api.Login, error) {
	secret, err := s.secrets.Get(ctx, s.conn.Secret)
	if err != nil {
		return api.Login{}, fault.New(fault.NotConfigured,
			"the secret of agent %s's Odoo connection cannot be had; the operator checks the reference given to pawgate odoo connect", s.conn.AgentID)
	}
	return api.Login{URL: s.conn.URL, Database: s.conn.Database, User: s.conn.Login, Secret: secret, APIKey: s.conn.SecretKind == "api_key"}, nil
}

// enter logs in anew and keeps what it found.
func (s *session) enter(ctx context.Context) error {
	s.entered = true
	login, err := s.login(ctx)
	if err != nil {
		return err
	}
	client, err := api.Open(ctx, s.http, login)
	switch api.KindOf(err) {
	case api.UnknownModel, api.UnknownMethod, api.UnknownField: // what every Odoo has
		return fault.New(fault.NotConfigured,
			"the database %q on %s is no complete Odoo: a login fails because something is not installed there; the operator checks the database given to pawgate odoo connect",
			s.conn.Database, s.host())
	}
	if err != nil {
		return s.fault(err, "")
	}
	s.client = client
	return s.keepFound(ctx, nil, nil)
}

func (s *session) keepFound(ctx context.Context, edition *string, modules []string) error {
	found, now := s.client.Server(), s.now()
	_, err := postgres.Exec(ctx, s.db, foundSQL, pgx.StrictNamedArgs{"agent": s.conn.AgentID, "set_at": s.conn.SetAt, "now": now,
		"version": found.Version, "major": found.Major, "door": string(found.Door), "uid": found.UID,
		"lang": found.Lang, "timezone": found.TimeZone, "edition": edition, "modules": modules})
	if err != nil {
		return fmt.Errorf("keep what was found: %w", err)
	}
	s.conn.FoundAt, s.conn.FoundVersion, s.conn.FoundMajor, s.conn.FoundDoor = &now, found.Version, found.Major, string(found.Door)
	s.conn.FoundUID, s.conn.FoundLang, s.conn.FoundTimezone = found.UID, found.Lang, found.TimeZone
	return nil
}

// lang is the language of labels and texts: the connection's, or the user's.
func (s *session) lang() string { return cmp.Or(s.conn.Lang, s.client.Server().Lang) }

// context is Odoo's context, with nothing left to the server's guess.
func (s *session) context() map[string]any {
	c := map[string]any{}
	if lang := s.lang(); lang != "" {
		c["lang"] = lang
	}
	if zone := cmp.Or(s.conn.Timezone, s.client.Server().TimeZone); zone != "" {
		c["tz"] = zone
	}
	if len(s.conn.Companies) > 0 {
		c["allowed_company_ids"] = s.conn.Companies
	}
	return c
}

// call makes a call in the connection's context; the call's own members win.
// A login that is refused is tried once more with a secret read anew: it may
// have been changed since, and a refused login ran nothing.
func (s *session) call(ctx context.Context, c api.Call) (jsontext.Value, error) {
	own := c.Context
	c.Context = s.context()
	maps.Copy(c.Context, own)
	v, err := s.client.Call(ctx, c)
	if api.KindOf(err) == api.WrongLogin && !s.entered {
		s.secrets.Forget(s.conn.Secret)
		if enterErr := s.enter(ctx); enterErr != nil {
			return nil, enterErr
		}
		return s.client.Call(ctx, c)
	}
	return v, err
}
