package odoo_test

import (
	"testing"

	"pawgate/internal/fault"
	"pawgate/internal/tool/tooltest"
)

// Every tool answers an agent with a connection, and refuses one without: no
// other agent's connection, and no default, stands in for it.
func TestTools(t *testing.T) {
	b := setup(t, 18)
	b.connect(b.agent, object{"secret": "admin", "secret_kind": "password"})
	who, nobody := b.clerk(), tooltest.Who("nobody")

	tooltest.OK[object](t, b.cat, who, "odoo_connect", `{}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_connect", `{}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_status", `{}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_status", `{}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_crm_leads", `{}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_crm_leads", `{}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_crm_create_lead", `{"name":"x"}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_crm_create_lead", `{"name":"x"}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_crm_update_stage", `{"lead_id":44,"stage_name":"Won"}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_crm_update_stage", `{"lead_id":44,"stage_name":"Won"}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_sale_orders", `{}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_sale_orders", `{}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_sale_create_quotation", `{"partner_id":10,"product_id":45}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_sale_create_quotation", `{"partner_id":10,"product_id":45}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_sale_confirm", `{"order_id":25}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_sale_confirm", `{"order_id":25}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_inventory_products", `{}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_inventory_products", `{}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_inventory_check", `{"product_id":45}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_inventory_check", `{"product_id":45}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_invoice_list", `{}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_invoice_list", `{}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_payment_status", `{"invoice_id":1}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_payment_status", `{"invoice_id":1}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_search", `{"model":"res.partner"}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_search", `{"model":"res.partner"}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_execute", `{"model":"res.partner","method":"search_count"}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_execute", `{"model":"res.partner","method":"search_count"}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_report", `{"report_name":"sale.report_saleorder","record_id":25}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_report", `{"report_name":"sale.report_saleorder","record_id":25}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_partner_search", `{}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_partner_search", `{}`, fault.NotConfigured)
	tooltest.OK[object](t, b.cat, who, "odoo_schema_fields", `{"model":"res.partner"}`)
	tooltest.Fault(t, b.cat, nobody, "odoo_schema_fields", `{"model":"res.partner"}`, fault.NotConfigured)
}
