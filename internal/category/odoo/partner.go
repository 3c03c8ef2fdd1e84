package odoo

import (
	"context"
	"strings"

	"pawgate/internal/caller"
)

const partnerModel = "res.partner"

type partnersArgs struct {
	Query string `json:"query,omitempty" doc:"Name or e-mail"`
	Limit int    `json:"limit,omitempty" doc:"Or 10" min:"1" max:"40"`
}

func (o odoo) partners(ctx context.Context, who caller.Caller, a partnersArgs) (page, error) {
	s, err := o.allowed(ctx, who, find, partnerModel)
	if err != nil {
		return page{}, err
	}
	if a.Limit == 0 {
		a.Limit = 10
	}
	domain, order := []any{}, "name, id"
	if text := strings.TrimSpace(a.Query); text != "" {
		if domain, err = s.containing(ctx, partnerModel, text, "name", "email", "ref"); err != nil {
			return page{}, err
		}
	}
	if s.conn.hides(partnerModel, "name") {
		order = "id"
	}
	return s.list(ctx, query{model: partnerModel, domain: domain, limit: a.Limit, order: order,
		columns: same("name", "email", "phone", "mobile", "city", "country_id", "is_company", "parent_id", "ref")})
}
