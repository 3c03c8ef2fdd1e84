package send

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/outbox"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

var (
	//go:embed config_set.sql
	configSetSQL string
	//go:embed config_reset.sql
	configResetSQL string
	//go:embed config_read.sql
	configReadSQL string
	//go:embed agent_known.sql
	agentKnownSQL string
)

// value is a setting of any of the kinds that settings have.
type value jsontext.Value

// JSONSchema publishes them.
func (value) JSONSchema() *tool.Schema {
	return &tool.Schema{Types: []string{"string", "boolean", "integer", "array"}}
}

// MarshalJSON gives the text back.
func (v value) MarshalJSON() ([]byte, error) { return jsontext.Value(v).MarshalJSON() }

// UnmarshalJSON keeps the text.
func (v *value) UnmarshalJSON(b []byte) error { return (*jsontext.Value)(v).UnmarshalJSON(b) }

// scope is which settings are meant.
type scope struct {
	Channel string `json:"channel" doc:"-" maxlen:"20"`
	ScopeID string `json:"scope_id" doc:"Chat or global" maxlen:"64"`
}

// global is the scope of the whole channel.
const global = "global"

var scopeID = regexp.MustCompile(`^[A-Za-z0-9_@/.:-]{1,64}$`)

func (a scope) Validate() error {
	if err := outbox.Known(a.Channel); err != nil {
		return fault.Invalid("channel", "%s", err.Error())
	}
	if !scopeID.MatchString(a.ScopeID) {
		return fault.Invalid("scope_id", "scope_id is global, or a chat's id")
	}
	return nil
}

type configArgs struct {
	scope
	Key   string `json:"key" doc:"-" maxlen:"40"`
	Value value  `json:"value,omitempty" doc:"Empty: reset; omit: read"`
}

type configResult struct {
	shown
	Changed bool `json:"changed"`
}

// config reads one setting, or changes it.
func (s send) config(ctx context.Context, who caller.Caller, a configArgs) (configResult, error) {
	k, err := findKey(a.Key)
	if err != nil {
		return configResult{}, err
	}
	if k.access && a.ScopeID != global {
		return configResult{}, fault.Invalid("scope_id", "%s holds for the whole channel; use scope_id global", k.name)
	}
	changed := int64(0)
	if len(a.Value) > 0 {
		if changed, err = s.change(ctx, who, k, a); err != nil {
			return configResult{}, err
		}
	}
	rows, err := s.rows(ctx, who, a.scope, k.name)
	if err != nil {
		return configResult{}, err
	}
	return configResult{k.shown(rows), changed > 0}, nil
}

func (s send) change(ctx context.Context, who caller.Caller, k key, a configArgs) (int64, error) {
	if k.access && !who.Operator() {
		return 0, fault.New(fault.Denied, "%s decides who gets in, so an agent does not set it; it takes a credential with the scope operator", k.name)
	}
	args := pgx.StrictNamedArgs{"agent": who.Agent, "channel": a.Channel, "scope_id": a.ScopeID, "key": k.name}
	if string(a.Value) == `""` {
		n, err := postgres.Exec(ctx, s.db, configResetSQL, args)
		if err != nil {
			return 0, fmt.Errorf("reset channel setting: %w", err)
		}
		return n, nil
	}
	raw, err := k.read(a.Value)
	if err != nil {
		return 0, err
	}
	if k.name == "agent_override" {
		if err := s.agentExists(ctx, raw); err != nil {
			return 0, err
		}
	}
	args["value"], args["by"], args["now"] = raw, who.Credential, s.now()
	n, err := postgres.Exec(ctx, s.db, configSetSQL, args)
	if err != nil {
		return 0, fmt.Errorf("set channel setting: %w", err)
	}
	return n, nil
}

func (s send) agentExists(ctx context.Context, raw json.RawMessage) error {
	var id string
	if err := json.Unmarshal(raw, &id); err != nil {
		return fmt.Errorf("read agent id: %w", err)
	}
	found, err := postgres.One[struct{ Known bool }](ctx, s.db, agentKnownSQL, pgx.StrictNamedArgs{"id": id})
	if err != nil {
		return fmt.Errorf("find agent: %w", err)
	}
	if !found.Known {
		return fault.New(fault.NotFound, "there is no agent %s", id)
	}
	return nil
}

func (s send) rows(ctx context.Context, who caller.Caller, a scope, key string) ([]row, error) {
	rows, err := postgres.All[row](ctx, s.db, configReadSQL, pgx.StrictNamedArgs{"agent": who.Agent, "channel": a.Channel, "scope_id": a.ScopeID, "key": key})
	if err != nil {
		return nil, fmt.Errorf("read channel settings: %w", err)
	}
	return rows, nil
}

type configListArgs struct{ scope }

type configListResult struct {
	Channel  string  `json:"channel"`
	ScopeID  string  `json:"scope_id"`
	Settings []shown `json:"settings"`
}

// configList is every documented setting with the value that holds.
func (s send) configList(ctx context.Context, who caller.Caller, a configListArgs) (configListResult, error) {
	rows, err := s.rows(ctx, who, a.scope, "")
	if err != nil {
		return configListResult{}, err
	}
	r := configListResult{Channel: a.Channel, ScopeID: a.ScopeID}
	for _, k := range keys {
		r.Settings = append(r.Settings, k.shown(rows))
	}
	return r, nil
}
