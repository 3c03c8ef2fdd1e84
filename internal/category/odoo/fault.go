package odoo

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	api "pawgate/internal/client/odoo"
	"pawgate/internal/fault"
	"pawgate/internal/safehttp"
)

// The reasons of this category's own.
const (
	accessDenied  fault.Reason = "odoo_access"
	refused       fault.Reason = "odoo_refused"
	notInstalled  fault.Reason = "odoo_not_installed"
	serverError   fault.Reason = "odoo_error"
	reportMissing fault.Reason = "odoo_no_report"
)

// fault words a failure of Odoo for the caller: what happened, in the
// server's own sentence where there is one, and one next step. Errors that are
// none of Odoo's pass.
func (s *session) fault(err error, model string) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, api.ErrKeyNeeded) {
		return fault.New(fault.NotConfigured, "Odoo at %s takes API keys only, and this connection has a password; the operator connects with --kind api_key", s.host())
	}
	var network *safehttp.Error
	if errors.As(err, &network) {
		return s.unreachable(network)
	}
	var e *api.Error
	if !errors.As(err, &e) {
		return err
	}
	return s.explain(e, model)
}

func (s *session) host() string {
	u, err := url.Parse(s.conn.URL)
	if err != nil {
		return "the configured address"
	}
	return u.Host
}

func (s *session) unreachable(e *safehttp.Error) error {
	switch e.Reason {
	case safehttp.BlockedAddress, safehttp.BlockedPort, safehttp.BadURL, safehttp.BlockedScheme, safehttp.TLSFailed:
		return fault.New(fault.NotConfigured, "Odoo's address cannot be used: %s; the operator checks the address and ODOO_ALLOW_HOSTS", e.Error())
	case safehttp.TooManyRedirects:
		return fault.New(fault.NotConfigured, "%s redirects elsewhere, and a login is never sent on; the operator gives the final address to pawgate odoo connect", s.host())
	case safehttp.TooLarge:
		return fault.New(fault.TooLarge, "Odoo's answer is too large: %s; ask for fewer records or fields", e.Error())
	case safehttp.Timeout:
		return fault.New(fault.DeadlineExceeded, "Odoo did not answer in time; ask for less, or try again later")
	case safehttp.Cancelled:
		return fault.New(fault.Cancelled, "the call was cancelled")
	}
	return fault.New(fault.Unavailable, "Odoo is not reachable: %s; try again later", e.Error())
}

// version is Odoo's, as far as it is known: a fault may come before the login.
func (s *session) version() string {
	if s.client == nil {
		return "of unknown version"
	}
	return s.client.Server().Version
}

func (s *session) explain(e *api.Error, model string) error {
	subject := cmp.Or(model, "Odoo")
	said := func(format string, args ...any) string {
		text := fault.New("", format, args...).Message
		if e.Message == "" {
			return text
		}
		return strings.TrimRight(e.Message, ".") + ". " + text
	}
	f := func(reason fault.Reason, format string, args ...any) error {
		made := fault.New(reason, "%s", said(format, args...))
		if e.Class != "" {
			made.With("exception", e.Class)
		}
		return made
	}
	switch e.Kind {
	case api.Access:
		return f(accessDenied, "Odoo's user %s lacks this right, or the record is of another company; the operator gives the right in Odoo or the company with pawgate odoo connect --company", s.conn.Login)
	case api.Private:
		return f(fault.Denied, "Call a public method instead")
	case api.Missing:
		return f(fault.NotFound, "Look for the right id with odoo_search")
	case api.Refused:
		return f(refused, "Nothing was changed; meet the condition first, or tell the person")
	case api.Invalid:
		return f(refused, "Nothing was changed; correct the values")
	case api.WrongLogin:
		return f(fault.NotConfigured, "Odoo does not accept the login or secret of this connection; the operator checks them and runs pawgate odoo connect")
	case api.WrongDatabase:
		return fault.New(fault.NotConfigured, "there is no database %q on %s; the operator corrects --database with pawgate odoo connect", s.conn.Database, s.host())
	case api.UnknownModel:
		return s.unknownModel(cmp.Or(e.Name, model))
	case api.UnknownField:
		return fault.Invalid("fields", "%s has no field %s in Odoo %s; odoo_schema_fields lists its fields", subject, e.Name, s.version())
	case api.UnknownMethod:
		return fault.Invalid("method", "%s has no method %s in Odoo %s", subject, e.Name, s.version())
	case api.UnknownArgument:
		return fault.Invalid("args", "the method takes no argument %s", e.Name)
	case api.BadDomain:
		return fault.Invalid("domain", "Odoo cannot read the domain: %s", e.Message)
	case api.Concurrent:
		return fault.Retry(fault.Conflict, retrySoon, "somebody else changed the same records at the same time; nothing was changed, try again")
	case api.Busy, api.Away:
		return fault.Retry(fault.Unavailable, retryLater, "%s is down or overloaded; try again later", s.host())
	case api.NotAPI:
		return fault.New(fault.NotConfigured, "%s answers, but not as an Odoo whose external API is open (it may be closed by a proxy, the hosting plan or the version); the operator checks the address", s.host())
	}
	return f(serverError, "That is an error inside Odoo; the operator of Odoo finds it in its log")
}

// renamed are models that were called otherwise before Odoo 13, as a model's
// memory often has them, and some since.
var renamed = map[string]string{
	"account.invoice": "account.move", "account.invoice.line": "account.move.line", "account.voucher": "account.payment",
	"stock.production.lot": "stock.lot", "mail.channel": "discuss.channel", "product.uom": "uom.uom", "product.uom.categ": "uom.category",
	"crm.case.stage": "crm.stage", "crm.helpdesk": "helpdesk.ticket", "project.issue": "project.task", "hr.holidays": "hr.leave",
	"sale.quote.template": "sale.order.template", "ir.actions.report.xml": "ir.actions.report", "res.partner.title.shortcut": "res.partner.title",
	"procurement.rule": "stock.rule", "stock.pack.operation": "stock.move.line", "account.analytic.account.line": "account.analytic.line",
}

// apps are the apps that bring a model, by the beginning of its name.
var apps = []struct{ prefix, app string }{
	{"crm.", "CRM"}, {"sale.", "Sales"}, {"stock.", "Inventory"}, {"account.", "Invoicing"}, {"purchase.", "Purchase"}, {"mrp.", "Manufacturing"},
	{"project.", "Project"}, {"hr.", "Employees"}, {"pos.", "Point of Sale"}, {"website", "Website"}, {"event.", "Events"}, {"mailing.", "Email Marketing"},
	{"approval.", "Approvals (Enterprise)"}, {"sign.", "Sign (Enterprise)"}, {"documents.", "Documents (Enterprise)"}, {"helpdesk.", "Helpdesk (Enterprise)"},
	{"planning.", "Planning (Enterprise)"}, {"quality.", "Quality (Enterprise)"}, {"marketing.", "Marketing Automation (Enterprise)"}, {"product.", "Products"},
}

func (s *session) unknownModel(model string) error {
	if now, ok := renamed[model]; ok {
		return fault.New(fault.NotFound, "the model %s was renamed %s; use that", model, now).With("renamed", now)
	}
	for _, a := range apps {
		if strings.HasPrefix(model, a.prefix) {
			return fault.New(notInstalled, "this Odoo (%s) has no model %s: the app %s is not installed; odoo_connect lists what is", s.version(), model, a.app)
		}
	}
	return fault.New(fault.NotFound, "this Odoo (%s) has no model %s; write it as Odoo does, such as res.partner", s.version(), model)
}
