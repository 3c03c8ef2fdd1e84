package operator

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/safehttp"
	"pawgate/internal/settings"
	"pawgate/internal/tool"
)

var (
	//go:embed odoo_set.sql
	odooSetSQL string
	//go:embed odoo_list.sql
	odooListSQL string
	//go:embed odoo_remove.sql
	odooRemoveSQL string
	//go:embed odoo_writes.sql
	odooWritesSQL string
)

// odooCommands are about agents' connections to Odoo. No agent has them: one
// that could pair an address of its own with a secret's reference would be
// sent the secret.
func (s *session) odooCommands() []tool.Tool {
	return []tool.Tool{
		tool.Write("odoo_connect", "Give an agent its Odoo: address, database, login and secret, and what it may do there. Replaces all of it.", s.odooConnect,
			tool.Idempotent, tool.Secret("secret")),
		tool.Read("odoo_list", "List the agents' Odoo connections.", s.odooList),
		tool.Destroy("odoo_remove", "Take an agent's Odoo connection away.", s.odooRemove, tool.Idempotent),
		tool.Read("odoo_writes", "List what agents changed in Odoo, with the values before, newest first.", s.odooWrites),
	}
}

// What a connection is opened for unless it is said: the work of the tools
// with a purpose. What is closed: whatever decides who may do what, people's
// data, messages, bank and payment data, and fields that hold secrets.
var (
	odooModels  = []string{"*"}
	odooDenied  = []string{"ir.*", "base.*", "base_*", "res.users*", "res.groups*", "res.config*", "res.partner.bank", "auth.*", "auth_*", "fetchmail.*", "iap.*", "hr.*", "payment.*", "account.payment*", "account.bank.*", "mail.*", "discuss.*", "sms.*", "bus.*"}
	odooFields  = []string{"*password*", "*passwd*", "*secret*", "*token*", "*api_key*", "*apikey*", "totp_*"}
	odooActions = []string{"read", "search", "create:crm.lead", "write:crm.lead", "create:sale.order", "execute:sale.order/action_confirm"}
)

type odooConnectArgs struct {
	AgentID  string   `json:"agent_id" doc:"The agent" maxlen:"64"`
	URL      string   `json:"url" doc:"Address, such as https://odoo.example.com" maxlen:"512"`
	Database string   `json:"database" doc:"Name of the database" maxlen:"63"`
	Login    string   `json:"login" doc:"Login of a user made for the agent" maxlen:"200"`
	Secret   string   `json:"secret" doc:"Where its secret lies: env://NAME, file://PATH, secretsmanager://ID or ssm://NAME" maxlen:"500"`
	Kind     string   `json:"kind,omitempty" doc:"What the secret is; api_key if left out" enum:"api_key,password"`
	Company  []int64  `json:"company,omitempty" doc:"Ids of the companies it acts in, the first one foremost; the user's own if left out"`
	Lang     string   `json:"lang,omitempty" doc:"Language of labels and texts, such as zh_TW; the user's own if left out" maxlen:"20"`
	Timezone string   `json:"timezone,omitempty" doc:"Such as Asia/Taipei; the user's own if left out" maxlen:"60"`
	Model    []string `json:"model,omitempty" doc:"Models it may use, with *; all but the denied ones if left out"`
	Deny     []string `json:"deny,omitempty" doc:"Models it may not use, which wins; if left out: ir.*, res.users*, hr.*, mail.*, payment.* and the like"`
	Hide     []string `json:"hide,omitempty" doc:"Fields it never sees, as FIELD or MODEL/FIELD, with *; passwords and tokens if left out"`
	Action   []string `json:"action,omitempty" doc:"What it may do: read, search, create, write, unlink, or execute, each limited as VERB:MODEL or execute:MODEL/METHOD (a method that is no button of a form must be named in full); if left out, what the leads and orders tools need"`
	PlainOK  bool     `json:"allow_http,omitempty" doc:"Take an http:// address, whose secret anyone on the way can read"`
}

type odooConnected struct {
	AgentID string   `json:"agent_id"`
	Actions []string `json:"allowed_actions"`
	Denied  []string `json:"denied_models"`
	Note    string   `json:"note"`
}

func (s *session) odooConnect(ctx context.Context, _ caller.Caller, a odooConnectArgs) (odooConnected, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return odooConnected{}, err
	}
	if err := a.check(); err != nil {
		return odooConnected{}, err
	}
	u, err := safehttp.CheckURL(a.URL)
	if err != nil {
		return odooConnected{}, fault.Invalid("url", "%s", err.Error())
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return odooConnected{}, fault.Invalid("url", "give the address without ? and #")
	}
	if u.Scheme == "http" && !a.PlainOK && !loopback(u.Hostname()) {
		return odooConnected{}, fault.Invalid("url", "http:// sends the secret readable for all; use https://, or say --allow-http")
	}
	kind := a.Kind
	if kind == "" {
		kind = "api_key"
	}
	models, denied, hidden, actions := or(a.Model, odooModels), also(odooDenied, a.Deny), also(odooFields, a.Hide), or(a.Action, odooActions)
	_, err = postgres.Exec(ctx, s.db, odooSetSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID, "url": strings.TrimRight(u.String(), "/"), "database": a.Database,
		"login": a.Login, "secret": a.Secret, "secret_kind": kind, "companies": append([]int64{}, a.Company...), "lang": a.Lang, "timezone": a.Timezone,
		"allowed_models": models, "denied_models": denied, "denied_fields": hidden, "allowed_actions": actions, "by": s.By, "now": s.Now()})
	if err != nil {
		return odooConnected{}, fmt.Errorf("write odoo connection: %w", err)
	}
	return odooConnected{AgentID: a.AgentID, Actions: actions, Denied: denied, Note: "not tested yet: the tool odoo_connect does that"}, nil
}

// also adds to what is closed for every connection: naming one thing more must
// not open the others.
func also(always, more []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(always, more))))
}

func or(given, otherwise []string) []string {
	if len(given) > 0 {
		return given
	}
	return otherwise
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

var (
	odooDatabase = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	odooLang     = regexp.MustCompile(`^([a-z]{2,3}(_[A-Z]{2}|_[0-9]{3})?(@[a-z]+)?)?$`)
	odooPattern  = regexp.MustCompile(`^[a-z0-9_.*/]+$`)
	odooAction   = regexp.MustCompile(`^(read|search|create|write|unlink|execute)(:[a-z0-9_.*]+)?$|^execute:[a-z0-9_.*]+/[a-z0-9_*]+$`)
)

// check refuses what would only be noticed at the first call, or never.
func (a odooConnectArgs) check() error {
	switch {
	case !settings.IsReference(a.Secret):
		return fault.Invalid("secret", "secret says where the secret lies, it is not the secret itself: env://NAME, file://PATH, secretsmanager://ID#KEY or ssm://NAME")
	case !odooDatabase.MatchString(a.Database):
		return fault.Invalid("database", "database has only letters, digits, _, . and -")
	case strings.TrimSpace(a.Login) == "":
		return fault.Invalid("login", "login is empty")
	case !odooLang.MatchString(a.Lang):
		return fault.Invalid("lang", "lang is written as Odoo does, such as zh_TW")
	case slices.ContainsFunc(a.Company, func(id int64) bool { return id < 1 }):
		return fault.Invalid("company", "company is a company's id in Odoo")
	}
	if _, err := time.LoadLocation(a.Timezone); err != nil {
		return fault.Invalid("timezone", "there is no time zone %s; write it as Asia/Taipei", short(a.Timezone))
	}
	for parameter, patterns := range map[string][]string{"model": a.Model, "deny": a.Deny, "hide": a.Hide} {
		for _, p := range patterns {
			if _, err := path.Match(p, ""); err != nil || !odooPattern.MatchString(p) {
				return fault.Invalid(parameter, "%q is no pattern; write a name in Odoo's spelling, with * for any part", short(p))
			}
		}
	}
	for _, action := range a.Action {
		if !odooAction.MatchString(action) {
			return fault.Invalid("action", "%q is no action; write read, search, create, write, unlink or execute, or limited: write:crm.lead, execute:sale.order/action_confirm", short(action))
		}
	}
	return nil
}

type odooListArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Only this agent's" maxlen:"64"`
}

// odooShown is a connection without its secret and where that lies.
type odooShown struct {
	AgentID        string     `json:"agent_id"`
	URL            string     `json:"url"`
	Database       string     `json:"database"`
	Login          string     `json:"login"`
	SecretKind     string     `json:"secret_kind"`
	Companies      []int64    `json:"companies"`
	AllowedModels  []string   `json:"allowed_models"`
	DeniedModels   []string   `json:"denied_models"`
	DeniedFields   []string   `json:"denied_fields"`
	AllowedActions []string   `json:"allowed_actions"`
	Version        string     `json:"version,omitzero"`
	Edition        string     `json:"edition,omitzero"`
	TestedAt       *time.Time `json:"tested_at,omitzero"`
	SetBy          string     `json:"set_by"`
	SetAt          time.Time  `json:"set_at"`
}

type odooListed struct {
	Connections []odooShown `json:"connections"`
}

func (s *session) odooList(ctx context.Context, _ caller.Caller, a odooListArgs) (odooListed, error) {
	if err := s.only(ctx, a.AgentID); err != nil {
		return odooListed{}, err
	}
	shown, err := postgres.All[odooShown](ctx, s.db, odooListSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID})
	if err != nil {
		return odooListed{}, fmt.Errorf("list odoo connections: %w", err)
	}
	return odooListed{Connections: shown}, nil
}

type odooRemoved struct {
	AgentID string `json:"agent_id"`
	Changed bool   `json:"changed"`
}

func (s *session) odooRemove(ctx context.Context, _ caller.Caller, a agentArgs) (odooRemoved, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return odooRemoved{}, err
	}
	n, err := postgres.Exec(ctx, s.db, odooRemoveSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID})
	if err != nil {
		return odooRemoved{}, fmt.Errorf("remove odoo connection: %w", err)
	}
	return odooRemoved{AgentID: a.AgentID, Changed: n > 0}, nil
}

type odooWritesArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Only this agent's" maxlen:"64"`
	Limit   int    `json:"limit,omitempty" doc:"20 if left out" min:"1" max:"1000"`
}

type odooWrite struct {
	WriteID   string          `json:"write_id"`
	AgentID   string          `json:"agent_id"`
	StartedAt time.Time       `json:"started_at"`
	Login     string          `json:"login"`
	Model     string          `json:"model"`
	Method    string          `json:"method"`
	RecordIDs []int64         `json:"record_ids"`
	State     string          `json:"state"`
	Before    json.RawMessage `json:"before"`
	Values    json.RawMessage `json:"values"`
	Args      json.RawMessage `json:"args"` // of an action
	Note      string          `json:"note,omitzero"`
}

type odooWritten struct {
	Writes []odooWrite `json:"writes"`
}

func (s *session) odooWrites(ctx context.Context, _ caller.Caller, a odooWritesArgs) (odooWritten, error) {
	if err := s.only(ctx, a.AgentID); err != nil {
		return odooWritten{}, err
	}
	if a.Limit == 0 {
		a.Limit = 20
	}
	writes, err := postgres.All[odooWrite](ctx, s.db, odooWritesSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID, "limit": a.Limit})
	if err != nil {
		return odooWritten{}, fmt.Errorf("list odoo writes: %w", err)
	}
	return odooWritten{Writes: writes}, nil
}
