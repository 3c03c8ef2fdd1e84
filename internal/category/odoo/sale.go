package odoo

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/caller"
	api "pawgate/internal/client/odoo"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

const (
	orderModel = "sale.order"
	lineModel  = "sale.order.line"
)

var orderColumns = []column{{as: "name", field: "name"}, {as: "customer", field: "partner_id"}, {as: "date", field: "date_order"}, {as: "state", field: "state"},
	{as: "locked", field: "locked"}, {as: "total", field: "amount_total"}, {as: "invoice_state", field: "invoice_status"}, {as: "salesperson", field: "user_id"},
	{as: "line_ids", field: "order_line"}, {as: "company", field: "company_id"}}

type ordersArgs struct {
	Status string `json:"status,omitempty" doc:"-"`
	paging
}

func (o odoo) orders(ctx context.Context, who caller.Caller, a ordersArgs) (page, error) {
	s, err := o.allowed(ctx, who, find, orderModel)
	if err != nil {
		return page{}, err
	}
	domain := []any{}
	if a.Status != "" {
		if domain, err = s.orderStatus(ctx, a.Status); err != nil {
			return page{}, err
		}
	}
	return s.list(ctx, query{model: orderModel, domain: domain, columns: orderColumns, limit: a.Limit, offset: a.Offset})
}

// orderStatus is a status as a condition. Odoo 17 made done a lock on sale.
func (s *session) orderStatus(ctx context.Context, status string) ([]any, error) {
	if err := s.need(ctx, orderModel, "status", "state"); err != nil {
		return nil, err
	}
	all, err := s.fields(ctx, orderModel)
	if err != nil {
		return nil, err
	}
	keys := all["state"].keys()
	if _, locks := all["locked"]; status == "done" && locks && !slices.Contains(keys, "done") {
		return []any{[]any{"state", "=", "sale"}, []any{"locked", "=", true}}, nil
	}
	if !slices.Contains(keys, status) {
		return nil, fault.Invalid("status", "there is no order status %q; there are %s", short(status), strings.Join(keys, ", "))
	}
	return []any{[]any{"state", "=", status}}, nil
}

type createQuotationArgs struct {
	PartnerID int64    `json:"partner_id" doc:"-"`
	ProductID int64    `json:"product_id" doc:"Variant"`
	Quantity  *float64 `json:"quantity,omitempty" doc:"Or 1"`
	Preview   bool     `json:"preview,omitempty" doc:"-"`
}

func (a createQuotationArgs) Validate() error {
	if a.Quantity != nil && *a.Quantity <= 0 {
		return fault.Invalid("quantity", "quantity must be above 0")
	}
	return nil
}

type createQuotationResult struct {
	outcome
	OrderID int64       `json:"order_id,omitzero"`
	Order   tool.Object `json:"order,omitzero"`
}

func (o odoo) createQuotation(ctx context.Context, who caller.Caller, a createQuotationArgs) (createQuotationResult, error) {
	s, err := o.allowed(ctx, who, create, orderModel)
	if err != nil {
		return createQuotationResult{}, err
	}
	for _, f := range []struct{ model, field, parameter string }{{orderModel, "partner_id", "partner_id"}, {orderModel, "order_line", "product_id"},
		{lineModel, "product_id", "product_id"}, {lineModel, "product_uom_qty", "quantity"}} {
		if err := s.need(ctx, f.model, f.parameter, f.field); err != nil {
			return createQuotationResult{}, err
		}
	}
	quantity := 1.0
	if a.Quantity != nil {
		quantity = *a.Quantity
	}
	values := map[string]any{"partner_id": a.PartnerID,
		"order_line": []any{[]any{0, 0, map[string]any{"product_id": a.ProductID, "product_uom_qty": quantity}}}}
	made, id, record, err := s.create(ctx, orderModel, values, a.Preview, orderColumns)
	return createQuotationResult{outcome: made, OrderID: id, Order: record}, err
}

type confirmArgs struct {
	OrderID int64 `json:"order_id" doc:"-"`
	Preview bool  `json:"preview,omitempty" doc:"-"`
}

type confirmResult struct {
	outcome
	OrderID int64       `json:"order_id"`
	Order   tool.Object `json:"order,omitzero"`
	// NextStep is there when Odoo asks a person for more, in a window.
	NextStep string `json:"next_step,omitzero"`
}

// confirmed are the states in which an order counts as confirmed.
var confirmed = []string{"sale", "done"}

func (o odoo) confirm(ctx context.Context, who caller.Caller, a confirmArgs) (confirmResult, error) {
	s, err := o.session(ctx, who)
	if err != nil {
		return confirmResult{}, err
	}
	if err := s.conn.may(execute, orderModel, "action_confirm"); err != nil {
		return confirmResult{}, err
	}
	if err := s.need(ctx, orderModel, "order_id", "state"); err != nil {
		return confirmResult{}, err
	}
	before, err := s.readBefore(ctx, orderModel, []int64{a.OrderID}, []string{"name", "state"})
	if err != nil {
		return confirmResult{}, err
	}
	r := confirmResult{OrderID: a.OrderID, outcome: outcome{State: "unchanged", Changes: []fieldChange{}, Note: "the order was confirmed before"}}
	switch state := before[0].text("state"); {
	case slices.Contains(confirmed, state):
		r.Order, _ = s.readBack(ctx, orderModel, a.OrderID, orderColumns)
		return r, nil
	case state == "cancel":
		return confirmResult{}, fault.New(fault.Conflict, "order %s is cancelled; a person sets it back to a quotation first", before[0].text("name"))
	}
	c := change{model: orderModel, method: "action_confirm", ids: []int64{a.OrderID}, before: before, values: map[string]any{"state": "sale"},
		call: api.Call{Model: orderModel, Method: "action_confirm", IDs: []int64{a.OrderID}}, happened: s.isConfirmed(a.OrderID)}
	if a.Preview {
		changes, err := s.compare(ctx, c)
		r.outcome = outcome{State: "preview", Changes: changes}
		return r, err
	}
	return s.confirmNow(ctx, r, c)
}

// confirmNow confirms, and believes the order's state more than the answer:
// another client may have confirmed meanwhile, and an answer may be a window
// in which a person has to choose.
func (s *session) confirmNow(ctx context.Context, r confirmResult, c change) (confirmResult, error) {
	made, result, err := s.make(ctx, c)
	if f, ok := fault.Of(err); ok && f.Reason == refused {
		if done, lookErr := c.happened(ctx); lookErr == nil && done {
			r.Order, _ = s.readBack(ctx, orderModel, r.OrderID, orderColumns)
			return r, nil
		}
	}
	if err != nil {
		return confirmResult{}, err
	}
	r.outcome = made
	r.NextStep = nextStep(result)
	done, err := c.happened(ctx)
	switch {
	case err != nil:
		r.Note = "Odoo took the confirmation, but the order could not be read back"
	case !done:
		r.State, r.Note = "unchanged", "Odoo did not confirm the order: a person has to finish the next step in Odoo"
	}
	r.Order, _ = s.readBack(ctx, orderModel, r.OrderID, orderColumns)
	return r, nil
}

func (s *session) isConfirmed(id int64) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		r, err := s.one(ctx, orderModel, id, same("state"))
		return err == nil && slices.Contains(confirmed, r.text("state")), err
	}
}

// nextStep names the window that an action opens; "" when it opens none.
func nextStep(result jsontext.Value) string {
	var action struct {
		Type  string `json:"type"`
		Name  any    `json:"name"`
		Model any    `json:"res_model"`
	}
	if json.Unmarshal(result, &action) != nil || !strings.HasPrefix(action.Type, "ir.actions.") {
		return ""
	}
	for _, v := range []any{action.Name, action.Model} {
		if text, ok := v.(string); ok && text != "" {
			return text
		}
	}
	return action.Type
}
