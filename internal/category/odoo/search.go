package odoo

import (
	"context"
	"encoding/json"
	"slices"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// nameList is a list of names. The predecessor took them as one text,
// separated by commas.
type nameList []string

// JSONSchema publishes both forms.
func (nameList) JSONSchema() *tool.Schema { return &tool.Schema{Types: []string{"array", "string"}} }

// UnmarshalJSON reads both forms.
func (l *nameList) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		if json.Unmarshal([]byte(text), (*[]string)(l)) == nil {
			return nil
		}
		*l = names([]string{text})
		return nil
	}
	return json.Unmarshal(b, (*[]string)(l))
}

type searchArgs struct {
	Model  string    `json:"model" doc:"-"`
	Domain tool.List `json:"domain,omitempty" doc:"As [[\"state\",\"=\",\"sale\"]]"`
	Fields nameList  `json:"fields,omitempty" doc:"-"`
	Order  string    `json:"order,omitempty" doc:"name desc"`
	paging
	Archived  bool  `json:"archived,omitempty" doc:"Include archived"`
	CompanyID int64 `json:"company_id,omitempty" doc:"Act in it"`
}

func (o odoo) search(ctx context.Context, who caller.Caller, a searchArgs) (page, error) {
	s, err := o.session(ctx, who)
	if err != nil {
		return page{}, err
	}
	q, err := s.query(ctx, a)
	if err != nil {
		return page{}, err
	}
	return s.list(ctx, q)
}

// query checks a search of any model.
func (s *session) query(ctx context.Context, a searchArgs) (query, error) {
	q := query{model: a.Model, limit: a.Limit, offset: a.Offset, context: map[string]any{}}
	if _, old := renamed[a.Model]; old {
		return q, s.unknownModel(a.Model)
	}
	if err := s.conn.may(find, a.Model, ""); err != nil {
		return q, err
	}
	var err error
	if q.domain, err = s.domain(ctx, a.Model, a.Domain); err != nil {
		return q, err
	}
	if q.order, err = s.order(ctx, a.Model, a.Order); err != nil {
		return q, err
	}
	if q.columns, err = s.columns(ctx, a.Model, a.Fields); err != nil {
		return q, err
	}
	if a.Archived {
		q.context["active_test"] = false
	}
	return q, s.inCompany(a.CompanyID, q.context)
}

// columns are the fields that a caller asked for, each of which must exist.
func (s *session) columns(ctx context.Context, model string, given []string) ([]column, error) {
	wanted := names(given)
	if len(wanted) == 0 {
		return same("display_name"), nil
	}
	for _, name := range wanted {
		if _, err := s.field(ctx, model, name, "fields"); err != nil {
			return nil, err
		}
	}
	return same(wanted...), nil
}

// inCompany narrows a call to one of the connection's companies.
func (s *session) inCompany(company int64, context map[string]any) error {
	if company == 0 {
		return nil
	}
	if len(s.conn.Companies) > 0 && !slices.Contains(s.conn.Companies, company) {
		return fault.New(fault.Denied, "this agent's Odoo connection is for the companies %v, not %d", s.conn.Companies, company)
	}
	context["allowed_company_ids"] = []int64{company}
	return nil
}
