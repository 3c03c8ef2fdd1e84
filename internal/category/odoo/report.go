package odoo

import (
	"bytes"
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
	"slices"
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

var (
	//go:embed file_keep.sql
	fileKeepSQL string
	//go:embed file_part.sql
	filePartSQL string
)

// Limits of a document.
const (
	maxFile    = 8 << 20            // bytes kept
	maxInline  = 2 << 20            // bytes in one answer, which base64 makes a third longer
	maxText    = 20_000             // characters of its text
	maxFileAge = 7 * 24 * time.Hour // the upkeep removes it then
)

var reportName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)+$`)

// reports are the models of the reports that every Odoo has.
var reports = map[string]string{
	"sale.report_saleorder": orderModel, "sale.report_saleorder_pro_forma": orderModel, "account.report_invoice": invoiceModel,
	"account.report_invoice_with_payments": invoiceModel, "stock.report_deliveryslip": "stock.picking", "stock.report_picking": "stock.picking",
	"purchase.report_purchaseorder": "purchase.order", "purchase.report_purchasequotation": "purchase.order",
}

type reportArgs struct {
	ReportName string `json:"report_name" doc:"-"`
	RecordID   int64  `json:"record_id" doc:"-"`
	IncludePDF bool   `json:"include_pdf,omitempty" doc:"In base64 too"`
	Part       int    `json:"part,omitempty" doc:"Of the last" min:"1" max:"4"`
}

type reportResult struct {
	FileID string `json:"file_id"` // kept for this agent for a week
	Name   string `json:"name"`
	Size   int    `json:"size"`
	SHA256 string `json:"sha256,omitzero"` // of the whole
	Parts  int    `json:"parts"`           // that the PDF is given in
	// Source is rendered; attachment where this login can only get a PDF that
	// Odoo made before; or kept, of a part of what was fetched last.
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
	record, err := s.one(ctx, model, a.RecordID, same("display_name", "name"))
	if err != nil {
		return reportResult{}, err
	}
	if a.Part > 0 {
		return s.part(ctx, a)
	}
	r := reportResult{Name: record.text("display_name") + ".pdf", Source: "rendered", Link: s.client.ReportLink(a.ReportName, a.RecordID)}
	content, err := s.client.ReportPDF(ctx, a.ReportName, a.RecordID)
	if errors.Is(err, api.ErrNoSession) {
		r.Source = "attachment"
		content, r.Name, err = s.attached(ctx, a.ReportName, model, record, r.Link)
	}
	if err != nil {
		return reportResult{}, s.fault(err, model)
	}
	err = s.keep(ctx, &r, a, content)
	return r, err
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

// invoiceReports are those whose PDF Odoo keeps with the invoice once it was
// sent. Of no other report it says which of a record's files is its own.
var invoiceReports = []string{"account.report_invoice", "account.report_invoice_with_payments"}

// attached finds the PDF that Odoo itself made of an invoice and kept. It is
// all that a login without a web session can get, because rendering is closed
// to every API since Odoo 14. Any other file of a record may be a different
// document, so it is named and not given.
func (s *session) attached(ctx context.Context, report, model string, record row, link string) ([]byte, string, error) {
	if slices.Contains(invoiceReports, report) {
		domain, err := s.invoicePDF(ctx, record)
		if err != nil {
			return nil, "", err
		}
		files, err := s.files(ctx, append(domain, []any{"file_size", "<=", maxFile}), "name", "datas")
		if err != nil {
			return nil, "", err
		}
		if len(files) == 1 {
			content, err := base64.StdEncoding.DecodeString(files[0].text("datas"))
			if err != nil || !bytes.HasPrefix(content, []byte("%PDF-")) {
				return nil, "", fault.New(serverError, "Odoo sent an attachment that is no PDF")
			}
			return content, files[0].text("name"), nil
		}
	}
	return nil, "", s.noReport(ctx, model, record.id(), link)
}

// invoicePDF is the condition for the file: Odoo links it to the invoice since
// 17, and before names it by the invoice's number.
func (s *session) invoicePDF(ctx context.Context, record row) ([]any, error) {
	all, err := s.fields(ctx, invoiceModel)
	if err != nil {
		return nil, err
	}
	if _, links := all["invoice_pdf_report_id"]; links {
		invoice, err := s.one(ctx, invoiceModel, record.id(), same("invoice_pdf_report_id"))
		if err != nil {
			return nil, err
		}
		var id int64 // 0 finds nothing
		if file := invoice.ref("invoice_pdf_report_id"); file != nil {
			id = file.ID
		}
		return []any{[]any{"id", "=", id}}, nil
	}
	name := strings.ReplaceAll(record.text("name"), "/", "_") + ".pdf"
	return []any{[]any{"res_model", "=", invoiceModel}, []any{"res_id", "=", record.id()}, []any{"mimetype", "=", "application/pdf"}, []any{"name", "=", name}}, nil
}

func (s *session) files(ctx context.Context, domain []any, names ...string) ([]row, error) {
	raw, err := s.call(ctx, api.Call{Model: "ir.attachment", Method: "search_read", Reads: true, Args: []api.Arg{{Name: "domain", Value: domain}},
		Options: map[string]any{"fields": names, "order": "id desc", "limit": maxNamed}, Context: map[string]any{"bin_size": false}})
	if err != nil {
		return nil, s.fault(err, "ir.attachment")
	}
	var rows []row
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, fault.New(serverError, "Odoo answered with something that is no list of attachments")
	}
	return rows, nil
}

// maxNamed is how many files of a record are named.
const maxNamed = 10

// noReport says why there is no PDF, and what a person does.
func (s *session) noReport(ctx context.Context, model string, id int64, link string) error {
	why := "this connection logs in with an API key, and Odoo renders reports only in a web session, which a password opens"
	if s.conn.SecretKind == "password" {
		why = "this user needs a second factor, so no web session can be opened for rendering"
	}
	there := "no PDF is attached to the record either"
	files, err := s.files(ctx, []any{[]any{"res_model", "=", model}, []any{"res_id", "=", id}, []any{"mimetype", "=", "application/pdf"}}, "name")
	if err != nil {
		return err
	}
	if len(files) > 0 {
		var list []string
		for _, f := range files {
			list = append(list, short(f.text("name")))
		}
		there = "which of the attached files is this report cannot be told: " + strings.Join(list, ", ")
	}
	return fault.New(reportMissing, "%s; %s. A person gets it at %s, or the operator connects with a password", why, there, link).With("link", link)
}

// keep stores the document and completes the answer.
func (s *session) keep(ctx context.Context, r *reportResult, a reportArgs, content []byte) error {
	if len(content) > maxFile {
		return fault.New(fault.TooLarge, "the PDF has %d bytes, more than the %d that are kept; a person gets it at %s", len(content), maxFile, r.Link)
	}
	sum := sha256.Sum256(content)
	r.FileID, r.Size, r.SHA256, r.Parts = "f_"+strings.ToLower(rand.Text()[:16]), len(content), hex.EncodeToString(sum[:]), parts(len(content))
	_, err := postgres.Exec(ctx, s.db, fileKeepSQL, pgx.StrictNamedArgs{"id": r.FileID, "agent": s.who.Agent, "report": a.ReportName, "record": a.RecordID,
		"name": r.Name, "content": content, "now": s.now()})
	if err != nil {
		return fmt.Errorf("keep report: %w", err)
	}
	if text, err := pdftext.Read(ctx, content); err == nil {
		runes := []rune(document.Visible(strings.Join(text.Pages, "\n\n")))
		r.Text = string(runes[:min(len(runes), maxText)])
	}
	if a.IncludePDF {
		r.PDF = base64.StdEncoding.EncodeToString(content[:min(len(content), maxInline)])
	}
	if a.IncludePDF && r.Parts > 1 {
		r.Note = fmt.Sprintf("this is part 1 of %d; ask for the others with part", r.Parts)
	}
	return nil
}

func parts(size int) int { return (size + maxInline - 1) / maxInline }

// part gives a part of the document as it was fetched last, so that the parts
// fit together, and asks Odoo nothing.
func (s *session) part(ctx context.Context, a reportArgs) (reportResult, error) {
	row, err := postgres.One[struct {
		ID, Name  string
		Size      int
		CreatedAt time.Time
		Part      []byte
	}](ctx, s.db, filePartSQL, pgx.StrictNamedArgs{"agent": s.who.Agent, "report": a.ReportName, "record": a.RecordID,
		"part": a.Part, "bytes": maxInline, "since": s.now().Add(-maxFileAge)})
	if errors.Is(err, pgx.ErrNoRows) || err == nil && len(row.Part) == 0 {
		return reportResult{}, fault.New(fault.NotFound, "there is no part %d of this report; call without part first, which says how many there are", a.Part)
	}
	if err != nil {
		return reportResult{}, fmt.Errorf("read report: %w", err)
	}
	return reportResult{FileID: row.ID, Name: row.Name, Size: row.Size, Parts: parts(row.Size), Source: "kept",
		Link: s.client.ReportLink(a.ReportName, a.RecordID), PDF: base64.StdEncoding.EncodeToString(row.Part),
		Note: "as it was at " + row.CreatedAt.UTC().Format(time.RFC3339)}, nil
}
