package odoo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"pawgate/internal/caller"
	api "pawgate/internal/client/odoo"
	"pawgate/internal/fault"
)

type noArgs struct{}

type connectResult struct {
	statusResult
	CompaniesOfUser []ref    `json:"companies_of_user"`
	Notes           []string `json:"notes,omitzero"`
}

// connect logs in anew, whatever was found before, and looks at what is there.
func (o odoo) connect(ctx context.Context, who caller.Caller, _ noArgs) (connectResult, error) {
	conn, err := o.connection(ctx, who)
	if err != nil {
		return connectResult{}, err
	}
	o.secrets.Forget(conn.Secret)
	s := &session{odoo: o, who: who, conn: conn, known: map[string]fields{}}
	if err := s.enter(ctx); err != nil {
		return connectResult{}, err
	}
	r := connectResult{CompaniesOfUser: []ref{}}
	if err := s.companies(ctx, &r); err != nil {
		return connectResult{}, err
	}
	if err := s.modules(ctx, &r); err != nil {
		return connectResult{}, err
	}
	if s.conn.FoundMajor < 16 {
		r.Notes = append(r.Notes, fmt.Sprintf("Odoo %d is older than the versions this was made for (16 to 19)", s.conn.FoundMajor))
	}
	if s.conn.FoundMajor >= 19 && s.conn.FoundDoor != string(api.JSON2) {
		r.Notes = append(r.Notes, "Odoo removes the API that passwords use; the operator should change to an API key (--kind api_key)")
	}
	r.statusResult = statusOf(s.conn)
	return r, nil
}

// companies checks that the user belongs to the connection's companies.
func (s *session) companies(ctx context.Context, r *connectResult) error {
	raw, err := s.call(ctx, api.Call{Model: "res.company", Method: "search_read", Reads: true, Args: []api.Arg{{Name: "domain",
		Value: []any{[]any{"user_ids", "in", []int64{s.client.Server().UID}}}}}, Options: map[string]any{"fields": []string{"name"}, "order": "id", "limit": maxLimit},
		Context: map[string]any{"allowed_company_ids": []int64{}}})
	if err != nil {
		r.Notes = append(r.Notes, "the user's companies cannot be read: "+s.fault(err, "res.company").Error())
		return nil
	}
	var rows []row
	if err := json.Unmarshal(raw, &rows); err != nil {
		return fault.New(serverError, "Odoo answered with something that is no list of companies")
	}
	for _, company := range rows {
		r.CompaniesOfUser = append(r.CompaniesOfUser, ref{company.id(), company.text("name")})
	}
	for _, id := range s.conn.Companies {
		if !slices.ContainsFunc(r.CompaniesOfUser, func(c ref) bool { return c.ID == id }) {
			return fault.New(fault.NotConfigured, "the Odoo user %s does not belong to company %d; the operator corrects --company with pawgate odoo connect, or adds the company to the user in Odoo", s.conn.Login, id)
		}
	}
	return nil
}

// enterpriseApps are installed only where Odoo Enterprise is.
var enterpriseApps = []string{"web_enterprise", "web_studio", "approvals", "sign", "marketing_automation", "hr_payroll", "mrp_workorder", "quality_control", "documents", "helpdesk", "planning"}

// modules tells the edition by what is installed, not by a name or a setting.
func (s *session) modules(ctx context.Context, r *connectResult) error {
	raw, err := s.call(ctx, api.Call{Model: "ir.module.module", Method: "search_read", Reads: true,
		Args:    []api.Arg{{Name: "domain", Value: []any{[]any{"state", "=", "installed"}, "|", []any{"application", "=", true}, []any{"name", "in", enterpriseApps}}}},
		Options: map[string]any{"fields": []string{"name", "license"}, "order": "name", "limit": maxLimit}})
	edition, installed := "unknown", []string{}
	if err == nil {
		var rows []row
		if err := json.Unmarshal(raw, &rows); err != nil {
			return fault.New(serverError, "Odoo answered with something that is no list of modules")
		}
		edition = "community"
		for _, module := range rows {
			name := module.text("name")
			installed = append(installed, name)
			if slices.Contains(enterpriseApps, name) || module.text("license") == "OEEL-1" {
				edition = "enterprise"
			}
		}
	} else {
		r.Notes = append(r.Notes, "the user may not see which apps are installed, so the edition is unknown")
	}
	s.conn.FoundEdition, s.conn.FoundModules = edition, installed
	return s.keepFound(ctx, &edition, installed)
}
