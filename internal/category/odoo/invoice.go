package odoo

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

const invoiceModel = "account.move"

var invoiceColumns = []column{{as: "number", field: "name"}, {as: "partner", field: "partner_id"}, {as: "move_type", field: "move_type"}, {as: "state", field: "state"},
	{as: "payment_state", field: "payment_state"}, {as: "total", field: "amount_total"}, {as: "balance_due", field: "amount_residual"},
	{as: "date", field: "invoice_date"}, {as: "due", field: "invoice_date_due"}, {as: "company", field: "company_id"}}

// invoiceTypes are customers' invoices and vendors' bills.
var invoiceTypes = []any{"move_type", "in", []string{"out_invoice", "in_invoice"}}

type invoicesArgs struct {
	Status string `json:"status,omitempty" doc:"paid, posted …"`
	paging
}

func (o odoo) invoices(ctx context.Context, who caller.Caller, a invoicesArgs) (page, error) {
	s, err := o.allowed(ctx, who, find, invoiceModel)
	if err != nil {
		return page{}, err
	}
	if err := s.need(ctx, invoiceModel, "status", "move_type"); err != nil {
		return page{}, err
	}
	domain := []any{invoiceTypes}
	if a.Status != "" {
		condition, err := s.invoiceStatus(ctx, a.Status)
		if err != nil {
			return page{}, err
		}
		domain = append(domain, condition...)
	}
	return s.list(ctx, query{model: invoiceModel, domain: domain, columns: invoiceColumns, limit: a.Limit, offset: a.Offset})
}

// invoiceStatus reads a status: a state of the document or of its payment. A
// draft is not paid either, so payment states mean posted invoices.
func (s *session) invoiceStatus(ctx context.Context, status string) ([]any, error) {
	all, err := s.fields(ctx, invoiceModel)
	if err != nil {
		return nil, err
	}
	if err := s.need(ctx, invoiceModel, "status", "state", "payment_state"); err != nil {
		return nil, err
	}
	states, payments := all["state"].keys(), all["payment_state"].keys()
	switch {
	case slices.Contains(states, status):
		return []any{[]any{"state", "=", status}}, nil
	case slices.Contains(payments, status):
		return []any{[]any{"state", "=", "posted"}, []any{"payment_state", "=", status}}, nil
	}
	return nil, fault.Invalid("status", "there is no invoice status %q; there are %s", short(status), strings.Join(append(states, payments...), ", "))
}

type paymentArgs struct {
	InvoiceID int64 `json:"invoice_id" doc:"-"`
}

type paymentResult struct {
	Invoice tool.Object `json:"invoice"`
	Paid    bool        `json:"paid"`
	Overdue bool        `json:"overdue"`
}

func (o odoo) payment(ctx context.Context, who caller.Caller, a paymentArgs) (paymentResult, error) {
	s, err := o.allowed(ctx, who, read, invoiceModel)
	if err != nil {
		return paymentResult{}, err
	}
	if err := s.need(ctx, invoiceModel, "invoice_id", "move_type", "state", "payment_state", "amount_residual", "invoice_date_due"); err != nil {
		return paymentResult{}, err
	}
	r, err := s.one(ctx, invoiceModel, a.InvoiceID, invoiceColumns)
	if err != nil {
		return paymentResult{}, err
	}
	if kind := r.text("move_type"); kind == "entry" {
		return paymentResult{}, fault.New(fault.NotFound, "%d is a journal entry, no invoice", a.InvoiceID)
	}
	all, err := s.fields(ctx, invoiceModel)
	if err != nil {
		return paymentResult{}, err
	}
	record, err := s.record(invoiceModel, all, invoiceColumns, r)
	if err != nil {
		return paymentResult{}, err
	}
	paid := r.text("payment_state") == "paid"
	due, dueErr := time.ParseInLocation(odooDate, r.text("invoice_date_due"), s.zone())
	overdue := dueErr == nil && !paid && r.text("state") == "posted" && s.now().After(due.AddDate(0, 0, 1)) && owed(r)
	return paymentResult{Invoice: record, Paid: paid, Overdue: overdue}, nil
}

func owed(r row) bool {
	var n float64
	return json.Unmarshal(r["amount_residual"], &n) == nil && n != 0
}

// zone is where the connection's days begin.
func (s *session) zone() *time.Location {
	if zone, ok := s.context()["tz"].(string); ok {
		if location, err := time.LoadLocation(zone); err == nil {
			return location
		}
	}
	return time.UTC
}
