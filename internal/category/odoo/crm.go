package odoo

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// The models of the tools with a purpose.
const (
	leadModel  = "crm.lead"
	stageModel = "crm.stage"
)

var leadColumns = []column{{as: "name", field: "name"}, {as: "lead_type", field: "type"}, {as: "contact_name", field: "contact_name"},
	{as: "company_name", field: "partner_name"}, {as: "email", field: "email_from"}, {as: "phone", field: "phone"}, {as: "stage", field: "stage_id"},
	{as: "expected_revenue", field: "expected_revenue"}, {as: "probability", field: "probability"}, {as: "salesperson", field: "user_id"},
	{as: "team", field: "team_id"}, {as: "company", field: "company_id"}, {as: "created_at", field: "create_date"}}

type leadsArgs struct {
	Stage string `json:"stage,omitempty" doc:"-"`
	paging
}

func (o odoo) leads(ctx context.Context, who caller.Caller, a leadsArgs) (page, error) {
	s, err := o.allowed(ctx, who, find, leadModel)
	if err != nil {
		return page{}, err
	}
	domain := []any{}
	if a.Stage != "" {
		if err := s.need(ctx, leadModel, "stage", "stage_id"); err != nil {
			return page{}, err
		}
		stages, err := s.stages(ctx)
		if err != nil {
			return page{}, err
		}
		stage, err := chooseStage(stages, a.Stage, true, "stage")
		if err != nil {
			return page{}, err
		}
		domain = append(domain, []any{"stage_id", "=", stage.id()})
	}
	return s.list(ctx, query{model: leadModel, domain: domain, columns: leadColumns, limit: a.Limit, offset: a.Offset})
}

// allowed opens the caller's connection for one kind of work.
func (o odoo) allowed(ctx context.Context, who caller.Caller, v verb, model string) (*session, error) {
	s, err := o.session(ctx, who)
	if err != nil {
		return nil, err
	}
	return s, s.conn.may(v, model, "")
}

// stages are all stages, in their order.
func (s *session) stages(ctx context.Context) ([]row, error) {
	if err := s.conn.may(find, stageModel, ""); err != nil {
		return nil, err
	}
	if err := s.need(ctx, stageModel, "stage", "name"); err != nil {
		return nil, err
	}
	return s.rows(ctx, query{model: stageModel, domain: []any{}, columns: same("name", "sequence", "is_won", "team_id", "team_ids"), order: "sequence, id"}, maxLimit)
}

// chooseStage finds the one stage that a text names, upper and lower case
// alike: by its name, by its id, or, where that is harmless, by a part of it.
func chooseStage(stages []row, text string, partly bool, parameter string) (row, error) {
	text = strings.TrimSpace(text)
	same := func(r row) bool { return strings.EqualFold(r.text("name"), text) }
	byID := func(r row) bool { return strconv.FormatInt(r.id(), 10) == text }
	part := func(r row) bool {
		return partly && strings.Contains(strings.ToLower(r.text("name")), strings.ToLower(text))
	}
	for _, rule := range []func(row) bool{same, byID, part} {
		var found []row
		for _, r := range stages {
			if rule(r) {
				found = append(found, r)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return nil, fault.Invalid(parameter, "%q names several stages: %s; give the id", short(text), stageList(found))
		}
	}
	return nil, fault.Invalid(parameter, "there is no stage %q; there are %s", short(text), stageList(stages))
}

func stageList(stages []row) string {
	var list []string
	for _, r := range stages {
		list = append(list, r.text("name")+" (id "+strconv.FormatInt(r.id(), 10)+")")
	}
	return strings.Join(list, ", ")
}

type createLeadArgs struct {
	Name            string   `json:"name" doc:"-"`
	ContactName     string   `json:"contact_name,omitempty" doc:"-"`
	Email           string   `json:"email,omitempty" doc:"-"`
	Phone           string   `json:"phone,omitempty" doc:"-"`
	ExpectedRevenue *float64 `json:"expected_revenue,omitempty" doc:"-"`
	Preview         bool     `json:"preview,omitempty" doc:"-"`
}

type createLeadResult struct {
	outcome
	LeadID int64       `json:"lead_id,omitzero"`
	Lead   tool.Object `json:"lead,omitzero"`
}

func (o odoo) createLead(ctx context.Context, who caller.Caller, a createLeadArgs) (createLeadResult, error) {
	s, err := o.allowed(ctx, who, create, leadModel)
	if err != nil {
		return createLeadResult{}, err
	}
	given := map[string]any{"name": a.Name, "type": "lead"}
	for name, text := range map[string]string{"contact_name": a.ContactName, "email_from": a.Email, "phone": a.Phone} {
		if text != "" {
			given[name] = text
		}
	}
	if a.ExpectedRevenue != nil {
		given["expected_revenue"] = *a.ExpectedRevenue
	}
	values, err := s.values(ctx, leadModel, "arguments", given)
	if err != nil {
		return createLeadResult{}, err
	}
	made, id, record, err := s.create(ctx, leadModel, values, a.Preview, leadColumns)
	return createLeadResult{outcome: made, LeadID: id, Lead: record}, err
}

// create makes a record, or shows what would be made, and reads it back.
func (s *session) create(ctx context.Context, model string, values map[string]any, preview bool, columns []column) (outcome, int64, tool.Object, error) {
	c := change{model: model, method: "create", values: values, call: createCall(model, values)}
	if preview {
		changes, err := s.compare(ctx, c)
		return outcome{State: "preview", Changes: changes}, 0, nil, err
	}
	made, result, err := s.make(ctx, c)
	if err != nil {
		return outcome{}, 0, nil, err
	}
	ids := createdIDs(result)
	if len(ids) == 0 {
		made.Note = "Odoo answered without an id; look for the record before making another"
		return made, 0, nil, nil
	}
	record, note := s.readBack(ctx, model, ids[0], columns)
	if note != "" {
		made.Note = note
	}
	return made, ids[0], record, nil
}

// readBack shows a record after a change. That it cannot be read does not
// make the change undone, so it is a note.
func (s *session) readBack(ctx context.Context, model string, id int64, columns []column) (tool.Object, string) {
	r, err := s.one(ctx, model, id, columns)
	if err != nil {
		return nil, "the change was made, but the record could not be read back"
	}
	all, err := s.fields(ctx, model)
	if err != nil {
		return nil, "the change was made, but the record could not be read back"
	}
	record, err := s.record(model, all, columns, r)
	if err != nil {
		return nil, "the change was made, but the record could not be read back"
	}
	return record, ""
}

type updateStageArgs struct {
	LeadID    int64  `json:"lead_id" doc:"-"`
	StageName string `json:"stage_name" doc:"Name or id"`
	Preview   bool   `json:"preview,omitempty" doc:"-"`
}

type updateStageResult struct {
	outcome
	LeadID int64 `json:"lead_id"`
	Stage  ref   `json:"stage"` // the one that the name meant
	Before *ref  `json:"before"`
}

func (o odoo) updateStage(ctx context.Context, who caller.Caller, a updateStageArgs) (updateStageResult, error) {
	s, err := o.allowed(ctx, who, write, leadModel)
	if err != nil {
		return updateStageResult{}, err
	}
	if err := s.need(ctx, leadModel, "stage_name", "stage_id"); err != nil {
		return updateStageResult{}, err
	}
	stages, err := s.stages(ctx)
	if err != nil {
		return updateStageResult{}, err
	}
	before, err := s.readBefore(ctx, leadModel, []int64{a.LeadID}, []string{"stage_id", "team_id"})
	if err != nil {
		return updateStageResult{}, err
	}
	stage, err := chooseStage(ofTeam(stages, before[0].ref("team_id")), a.StageName, false, "stage_name")
	if err != nil {
		return updateStageResult{}, err
	}
	r := updateStageResult{LeadID: a.LeadID, Stage: ref{stage.id(), stage.text("name")}, Before: before[0].ref("stage_id")}
	if r.Before != nil && r.Before.ID == r.Stage.ID {
		r.outcome = outcome{State: "unchanged", Changes: []fieldChange{}, Note: "the lead is in this stage already"}
		return r, nil
	}
	ids, values := []int64{a.LeadID}, map[string]any{"stage_id": stage.id()}
	r.outcome, err = s.write(ctx, leadModel, ids, values, before, a.Preview)
	return r, err
}

// ofTeam leaves out stages that belong to other teams.
func ofTeam(stages []row, team *ref) []row {
	var kept []row
	for _, r := range stages {
		own := r.ref("team_id") // a link up to Odoo 18, a list of ids since
		var many []int64
		_ = json.Unmarshal(r["team_ids"], &many)
		switch {
		case own == nil && len(many) == 0, team != nil && own != nil && own.ID == team.ID:
			kept = append(kept, r)
		case team != nil:
			for _, id := range many {
				if id == team.ID {
					kept = append(kept, r)
				}
			}
		}
	}
	return kept
}

// write changes records, or shows what would change. Odoo answers true; what
// else it says is no success.
func (s *session) write(ctx context.Context, model string, ids []int64, values map[string]any, before []row, preview bool) (outcome, error) {
	c := change{model: model, method: "write", ids: ids, values: values, before: before, call: writeCall(model, ids, values),
		happened: s.written(model, ids, values)}
	if preview {
		changes, err := s.compare(ctx, c)
		return outcome{State: "preview", Changes: changes}, err
	}
	made, result, err := s.make(ctx, c)
	if err == nil && string(result) != "true" && string(result) != "null" {
		return outcome{}, fault.New(fault.OutcomeUnknown, "Odoo answered the change with %s instead of true; look at the record before doing it again", shortJSON(result))
	}
	return made, err
}

func shortJSON(v jsontext.Value) string { return short(string(v)) }
