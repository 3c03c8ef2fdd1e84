// Package odoo holds the tools that work with an agent's Odoo: leads, orders,
// stock, invoices, contacts, and any other model that its connection allows.
//
// Which server, database and user an agent has, and what it may do there, is a
// row that only an operator writes (pawgate odoo connect). An agent cannot
// choose an address or a secret: one that could pair the two would read the
// secret. The row's parts are one whole; there is no default to fall back on.
//
// Every tool logs in by itself, with the row it reads at each call, so a change
// by the operator holds from the next call on. What is kept, and for how long:
// a resolved secret for a minute in this process, the version and user of a
// server for a day, the fields of a model for an hour. No record is ever kept.
//
// Four rules hold for all tools: an allow-list of models and actions and
// deny-lists of models and fields are checked before anything is sent, also
// inside domains and values; a malformed domain is an error; nothing is
// deleted and no private method runs unless the operator allowed it; before a
// change the old values are written down, and a change whose answer is lost is
// looked up, never repeated.
package odoo

import (
	"context"
	"fmt"
	"time"

	api "pawgate/internal/client/odoo"
	"pawgate/internal/postgres"
	"pawgate/internal/safehttp"
	"pawgate/internal/settings"
	"pawgate/internal/tool"
)

// Config is what the category reads from its environment.
type Config struct {
	postgres.Config
	Settings
}

// Settings are what an operator decides for every connection.
type Settings struct {
	AllowHosts []string      `envconfig:"ODOO_ALLOW_HOSTS" desc:"private hosts where an Odoo may be, as host or host:port, separated by commas"`
	Timeout    time.Duration `envconfig:"ODOO_TIMEOUT" desc:"longest time for one request to Odoo; unset: 25s"`
	MaxBytes   int64         `envconfig:"ODOO_MAX_BYTES" desc:"most bytes of one answer of Odoo; unset: 16777216"`
}

const (
	defaultTimeout  = 25 * time.Second
	defaultMaxBytes = 16 << 20
)

func (s Settings) policy() safehttp.Policy {
	p := safehttp.Policy{AllowHosts: s.AllowHosts, Timeout: s.Timeout, MaxBytes: s.MaxBytes}
	if p.Timeout == 0 {
		p.Timeout = defaultTimeout
	}
	if p.MaxBytes == 0 {
		p.MaxBytes = defaultMaxBytes
	}
	return api.Policy(p)
}

// Open is the category over the configured database. It connects to nothing.
func Open(ctx context.Context, cfg Config) (tool.Category, error) {
	if err := cfg.policy().Validate(); err != nil {
		return tool.Category{}, fmt.Errorf("read ODOO_ settings: %w", err)
	}
	db, err := postgres.Open(ctx, cfg.Config)
	if err != nil {
		return tool.Category{}, fmt.Errorf("open odoo: %w", err)
	}
	c := New(db, cfg.Settings, time.Now)
	c.Close = db.Close
	return c, nil
}

// New is the category over an open database. It does no I/O. The options
// replace the network in tests.
func New(db postgres.DB, s Settings, now func() time.Time, options ...safehttp.Option) tool.Category {
	o := odoo{db: db, now: now, http: safehttp.New(s.policy(), options...), secrets: settings.NewSecrets(settings.Resolve, now)}
	return tool.Category{Name: "odoo", Tools: []tool.Tool{
		tool.Read("odoo_connect", "Test the Odoo connection.", o.connect, tool.OpenWorld),
		tool.Read("odoo_status", "Show the Odoo connection and rights.", o.status),

		tool.Read("odoo_crm_leads", "List leads, newest first.", o.leads, tool.OpenWorld),
		tool.Write("odoo_crm_create_lead", "Create a lead.", o.createLead, tool.OpenWorld),
		tool.Write("odoo_crm_update_stage", "Move a lead to a stage.", o.updateStage, tool.OpenWorld, tool.Idempotent),

		tool.Read("odoo_sale_orders", "List sales orders.", o.orders, tool.OpenWorld),
		tool.Write("odoo_sale_create_quotation", "Create a quotation.", o.createQuotation, tool.OpenWorld),
		tool.Write("odoo_sale_confirm", "Confirm a quotation.", o.confirm, tool.OpenWorld, tool.Idempotent),

		tool.Read("odoo_inventory_products", "List stockable products.", o.products, tool.OpenWorld),
		tool.Read("odoo_inventory_check", "Count a product's stock in internal locations.", o.stock, tool.OpenWorld),

		tool.Read("odoo_invoice_list", "List invoices and bills.", o.invoices, tool.OpenWorld),
		tool.Read("odoo_payment_status", "Tell whether an invoice is paid.", o.payment, tool.OpenWorld),

		tool.Read("odoo_search", "Search any allowed model.", o.search, tool.OpenWorld),
		tool.Destroy("odoo_execute", "Call an allowed method of a model.", o.execute, tool.OpenWorld, tool.Rate(tool.ClassExecute)),
		tool.Read("odoo_report", "Get a record's PDF.", o.report, tool.OpenWorld, tool.Rate(tool.ClassExpensive)),
		tool.Read("odoo_partner_search", "Find contacts.", o.partners, tool.OpenWorld),
		tool.Read("odoo_schema_fields", "List the fields of a model.", o.schema, tool.OpenWorld),
	}}
}

type odoo struct {
	db      postgres.DB
	now     func() time.Time
	http    *safehttp.Client
	secrets *settings.Secrets
}
