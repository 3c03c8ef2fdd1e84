package odoo

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	api "pawgate/internal/client/odoo"
	"pawgate/internal/fault"
	document "pawgate/internal/page"
	"pawgate/internal/page/pdftext"
	"pawgate/internal/postgres"
)

//go:embed file_keep.sql
var fileKeepSQL string

// Limits of a document.
const (
	maxFile    = 8 << 20 // bytes kept
	maxInline  = 2 << 20 // bytes given in the answer, which base64 makes a third longer
	maxText    = 20_000  // characters of its text
	maxFileAge = 7 * 24 * time.Hour
)

var reportName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)+$`)

// reports are the models of the reports that every Odoo has.
var reports = map[string]string{
	"sale.report_saleorder": orderModel, "sale.report_saleorder_pro_forma": orderModel, "account.report_invoice": invoiceModel,
	"account.report_invoice_with_payments": invoiceModel, "stock.report_deliveryslip": "stock.picking", "stock.report_picking": "stock.picking",
	"purchase.report_purchaseorder": "purchase.order", "purchase.report_purchasequotation": "purchase.order",
}

type reportArgs struct {
	ReportName string `json:"report_name" doc:"Report"`
	RecordID   int64  `json:"record_id" doc:"Record"`
	IncludePDF bool   `json:"include_pdf,omitempty" doc:"In base64 too"`
}

type reportResult struct {
	FileID string `json:"file_id"` // kept for this agent for a week
	Name   string `json:"name"`
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"`
	// Source is rendered, or attachment where this login can only get a PDF
	// that Odoo made before.
	Source string `json:"source"`
	Link   string `json:"link"` // for a person who is logged in to Odoo
	Text   string `json:"text,omitzero"`
	PDF    string `json:"pdf_base64,omitzero"`
	Note   string `json:"note,omitzero"`
}

func (o odoo) report(ctx context.Context, who caller.Caller, a reportArgs) (reportResult, error) {
	if !reportName.MatchString(a.ReportName) {
		return reportResult{}, fault.Invalid("report_name", "report_name is a report's technical name, such as sale.report_saleorder or account.report_invoice")
	}
	s, err := o.session(ctx, who)
	if err != nil {
		return reportResult{}, err
	}
	model, err := s.reportModel(ctx, a.ReportName)
	if err != nil {
		return reportResult{}, err
	}
	if err := s.conn.may(read, model, ""); err != nil {
		return reportResult{}, err
	}
	record, err := s.one(ctx, model, a.RecordID, same("display_name"))
	if err != nil {
		return reportResult{}, err
	}
	r := reportResult{Name: record.text("display_name") + ".pdf", Source: "rendered", Link: s.client.ReportLink(a.ReportName, a.RecordID)}
	content, err := s.client.ReportPDF(ctx, a.ReportName, a.RecordID)
	if errors.Is(err, api.ErrNoSession) {
		r.Source = "attachment"
		content, r.Name, err = s.attached(ctx, model, a.RecordID, r.Link)
	}
	if err != nil {
		return reportResult{}, s.fault(err, model)
	}
	return r, s.keep(ctx, &r, content, a.IncludePDF)
}

// reportModel says which records a report is about.
func (s *session) reportModel(ctx context.Context, name string) (string, error) {
	if model, ok := reports[name]; ok {
		return model, nil
	}
	raw, err := s.call(ctx, api.Call{Model: "ir.actions.report", Method: "search_read", Reads: true,
		Args: []api.Arg{{Name: "domain", Value: []any{[]any{"report_name", "=", name}}}}, Options: map[string]any{"fields": []string{"model"}, "limit": 1}})
	if err != nil {
		return "", s.fault(err, "ir.actions.report")
	}
	var rows []row
	if json.Unmarshal(raw, &rows) != nil || len(rows) == 0 || rows[0].text("model") == "" {
		return "", fault.Invalid("report_name", "there is no report %s here; common ones are sale.report_saleorder and account.report_invoice", short(name))
	}
	return rows[0].text("model"), nil
}

// attached finds the newest PDF that Odoo keeps with the record: an invoice
// that was sent has one. It is all that a login without a web session can get,
// because rendering is closed to every API since Odoo 14.
func (s *session) attached(ctx context.Context, model string, id int64, link string) ([]byte, string, error) {
	raw, err := s.call(ctx, api.Call{Model: "ir.attachment", Method: "search_read", Reads: true,
		Args: []api.Arg{{Name: "domain", Value: []any{[]any{"res_model", "=", model}, []any{"res_id", "=", id}, []any{"mimetype", "=", "application/pdf"},
			[]any{"file_size", "<=", maxFile}}}},
		Options: map[string]any{"fields": []string{"name", "datas"}, "order": "id desc", "limit": 1}, Context: map[string]any{"bin_size": false}})
	if err != nil {
		return nil, "", s.fault(err, "ir.attachment")
	}
	var rows []row
	if json.Unmarshal(raw, &rows) != nil || len(rows) == 0 {
		why := "this connection logs in with an API key, and Odoo renders reports only in a web session, which a password opens"
		if s.conn.SecretKind == "password" {
			why = "this user needs a second factor, so no web session can be opened for rendering"
		}
		return nil, "", fault.New(reportMissing, "%s; no PDF is attached to the record either. A person gets it at %s, or the operator connects with a password", why, link).With("link", link)
	}
	content, err := base64.StdEncoding.DecodeString(rows[0].text("datas"))
	if err != nil {
		return nil, "", fault.New(serverError, "Odoo sent an attachment that cannot be decoded")
	}
	return content, rows[0].text("name"), nil
}

// keep stores the document and completes the answer.
func (s *session) keep(ctx context.Context, r *reportResult, content []byte, inline bool) error {
	if len(content) > maxFile {
		return fault.New(fault.TooLarge, "the PDF has %d bytes, more than the %d that are kept; a person gets it at %s", len(content), maxFile, r.Link)
	}
	sum := sha256.Sum256(content)
	r.FileID, r.Size, r.SHA256 = "f_"+strings.ToLower(rand.Text()[:16]), len(content), hex.EncodeToString(sum[:])
	_, err := postgres.Exec(ctx, s.db, fileKeepSQL, pgx.StrictNamedArgs{"id": r.FileID, "agent": s.who.Agent, "name": r.Name,
		"content": content, "now": s.now(), "purge": s.now().Add(-maxFileAge)})
	if err != nil {
		return fmt.Errorf("keep report: %w", err)
	}
	if text, err := pdftext.Read(ctx, content); err == nil {
		runes := []rune(document.Visible(strings.Join(text.Pages, "\n\n")))
		r.Text = string(runes[:min(len(runes), maxText)])
	}
	switch {
	case inline && len(content) > maxInline:
		r.Note = fmt.Sprintf("the PDF is larger than the %d bytes that an answer holds; a person gets it at the link", maxInline)
	case inline:
		r.PDF = base64.StdEncoding.EncodeToString(content)
	}
	return nil
}
