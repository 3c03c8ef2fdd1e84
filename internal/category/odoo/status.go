package odoo

import (
	"context"
	"time"

	"pawgate/internal/caller"
)

type statusResult struct {
	AgentID    string `json:"agent_id"`
	URL        string `json:"url"`
	Database   string `json:"database"`
	Login      string `json:"login"`
	SecretKind string `json:"secret_kind"` // password or api_key; never the secret or where it lies

	Companies []int64 `json:"companies"`
	Lang      string  `json:"lang,omitzero"`
	Timezone  string  `json:"timezone,omitzero"`

	AllowedModels  []string `json:"allowed_models"`
	DeniedModels   []string `json:"denied_models"`
	DeniedFields   []string `json:"denied_fields"`
	AllowedActions []string `json:"allowed_actions"`

	// The rest is what the last test found; tested_at is missing before it.
	TestedAt  *time.Time `json:"tested_at,omitzero"`
	Version   string     `json:"version,omitzero"`
	API       string     `json:"api,omitzero"` // json2, jsonrpc or xmlrpc
	UID       int64      `json:"uid,omitzero"`
	Edition   string     `json:"edition,omitzero"`
	Installed []string   `json:"installed,omitzero"`
}

// status tells what is stored and asks nobody.
func (o odoo) status(ctx context.Context, who caller.Caller, _ noArgs) (statusResult, error) {
	conn, err := o.connection(ctx, who)
	if err != nil {
		return statusResult{}, err
	}
	return statusOf(conn), nil
}

func statusOf(c connection) statusResult {
	r := statusResult{AgentID: c.AgentID, URL: c.URL, Database: c.Database, Login: c.Login, SecretKind: c.SecretKind,
		Companies: c.Companies, Lang: c.Lang, Timezone: c.Timezone,
		AllowedModels: c.AllowedModels, DeniedModels: c.DeniedModels, DeniedFields: c.DeniedFields, AllowedActions: c.AllowedActions}
	if c.FoundAt == nil {
		return r
	}
	r.TestedAt, r.Version, r.API, r.UID, r.Edition, r.Installed = c.FoundAt, c.FoundVersion, c.FoundDoor, c.FoundUID, c.FoundEdition, c.FoundModules
	if r.Lang == "" {
		r.Lang = c.FoundLang
	}
	if r.Timezone == "" {
		r.Timezone = c.FoundTimezone
	}
	return r
}
