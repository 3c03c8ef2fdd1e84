package odootest

import (
	"encoding/base64"
	"strings"
)

type field map[string]any

type model struct {
	name, title string
	fields      map[string]field
	rows        []map[string]any
	index       map[int64]map[string]any
	next        int64
}

func (m *model) find(id int64) map[string]any {
	if m == nil {
		return nil
	}
	return m.index[id]
}

func (m *model) add(values map[string]any) int64 {
	r := map[string]any{}
	for name, v := range values {
		if n, ok := v.(int); ok {
			v = int64(n)
		}
		r[name] = v
	}
	id, ok := r["id"].(int64)
	if !ok {
		m.next++
		id = m.next
	}
	m.next = max(m.next, id)
	r["id"] = id
	m.rows = append(m.rows, r)
	m.index[id] = r
	return id
}

// describe reads fields written as "name:type:Label:relation or selection".
func describe(name, title string, specs ...string) *model {
	m := &model{name: name, title: title, fields: map[string]field{}, index: map[int64]map[string]any{}}
	for _, spec := range append([]string{"id:integer:ID", "display_name:char:Display Name", "create_date:datetime:Created on", "create_uid:many2one:Created by:res.users"}, specs...) {
		p := strings.SplitN(spec, ":", 4)
		f := field{"type": p[1], "string": p[2], "required": p[0] == "name", "readonly": p[0] == "id", "store": p[0] != "display_name"}
		if len(p) > 3 {
			switch p[1] {
			case "selection":
				pairs := []any{}
				for key := range strings.SplitSeq(p[3], ",") {
					key, label, _ := strings.Cut(key, "=")
					pairs = append(pairs, []any{key, label})
				}
				f["selection"] = pairs
			case "monetary":
				f["currency_field"] = p[3]
			default:
				f["relation"] = p[3]
			}
		}
		m.fields[p[0]] = f
	}
	return m
}

// models are the models of a version, with a little data.
func models(major int) map[string]*model {
	all := map[string]*model{}
	for _, m := range []*model{
		describe("crm.lead", "Lead/Opportunity", "name:char:Opportunity", "type:selection:Type:lead=Lead,opportunity=Opportunity", "contact_name:char:Contact Name",
			"partner_name:char:Company Name", "email_from:char:Email", "phone:char:Phone", "expected_revenue:monetary:Expected Revenue:company_currency",
			"company_currency:many2one:Currency:res.currency", "probability:float:Probability", "stage_id:many2one:Stage:crm.stage", "user_id:many2one:Salesperson:res.users",
			"team_id:many2one:Sales Team:crm.team", "company_id:many2one:Company:res.company", "active:boolean:Active", "date_deadline:date:Expected Closing",
			"date_open:datetime:Assignment Date", "partner_id:many2one:Customer:res.partner", "access_token:char:Token"),
		describe("crm.stage", "CRM Stages", "name:char:Stage Name", "sequence:integer:Sequence", "is_won:boolean:Is Won Stage?"),
		describe("crm.team", "Sales Team", "name:char:Sales Team"),
		describe("sale.order", "Sales Order", "name:char:Order Reference", "partner_id:many2one:Customer:res.partner", "date_order:datetime:Order Date",
			"state:selection:Status:draft=Quotation,sent=Quotation Sent,sale=Sales Order,cancel=Cancelled", "amount_total:monetary:Total:currency_id",
			"currency_id:many2one:Currency:res.currency", "invoice_status:selection:Invoice Status:no=Nothing to Invoice,invoiced=Fully Invoiced", "user_id:many2one:Salesperson:res.users",
			"order_line:one2many:Order Lines:sale.order.line", "company_id:many2one:Company:res.company", "note:html:Terms"),
		describe("sale.order.line", "Sales Order Line", "order_id:many2one:Order:sale.order", "product_id:many2one:Product:product.product", "product_uom_qty:float:Quantity", "price_unit:float:Unit Price"),
		describe("product.product", "Product Variant", "name:char:Name", "default_code:char:Internal Reference", "list_price:float:Sales Price", "currency_id:many2one:Currency:res.currency",
			"qty_available:float:Quantity On Hand", "virtual_available:float:Forecast Quantity", "type:selection:Product Type:consu=Goods,service=Service,combo=Combo", "uom_id:many2one:Unit:uom.uom", "active:boolean:Active"),
		describe("uom.uom", "Product Unit of Measure", "name:char:Name"),
		describe("stock.quant", "Quants", "product_id:many2one:Product:product.product", "location_id:many2one:Location:stock.location", "lot_id:many2one:Lot:stock.lot",
			"company_id:many2one:Company:res.company", "quantity:float:Quantity", "reserved_quantity:float:Reserved Quantity"),
		describe("stock.location", "Inventory Locations", "name:char:Location", "usage:selection:Type:internal=Internal,customer=Customer,inventory=Inventory Loss"),
		describe("account.move", "Journal Entry", "name:char:Number", "partner_id:many2one:Partner:res.partner", "move_type:selection:Type:entry=Journal Entry,out_invoice=Customer Invoice,in_invoice=Vendor Bill",
			"state:selection:Status:draft=Draft,posted=Posted,cancel=Cancelled", "payment_state:selection:Payment Status:not_paid=Not Paid,in_payment=In Payment,paid=Paid,partial=Partially Paid",
			"amount_total:monetary:Total:currency_id", "amount_residual:monetary:Amount Due:currency_id", "currency_id:many2one:Currency:res.currency",
			"invoice_date:date:Invoice Date", "invoice_date_due:date:Due Date", "company_id:many2one:Company:res.company"),
		describe("res.partner", "Contact", "name:char:Name", "email:char:Email", "phone:char:Phone", "city:char:City", "country_id:many2one:Country:res.country", "is_company:boolean:Is a Company",
			"parent_id:many2one:Related Company:res.partner", "ref:char:Reference", "vat:char:Tax ID", "image_1920:binary:Image", "user_ids:one2many:Users:res.users", "company_id:many2one:Company:res.company", "active:boolean:Active"),
		describe("res.country", "Country", "name:char:Name"), describe("res.currency", "Currency", "name:char:Currency"),
		describe("res.company", "Companies", "name:char:Company Name", "user_ids:many2many:Accepted Users:res.users"),
		describe("res.users", "User", "name:char:Name", "login:char:Login", "password:char:Password"),
		describe("ir.module.module", "Module", "name:char:Technical Name", "state:selection:Status:installed=Installed,uninstalled=Not Installed", "license:char:License", "application:boolean:Application"),
		describe("ir.attachment", "Attachment", "name:char:Name", "res_model:char:Model", "res_id:integer:Record", "mimetype:char:Type", "file_size:integer:Size", "datas:binary:Content"),
		describe("ir.actions.report", "Report Action", "name:char:Name", "report_name:char:Template", "model:char:Model"),
	} {
		all[m.name] = m
	}
	differ(all, major)
	fill(all, major)
	return all
}

// differ makes the fields those of the version.
func differ(all map[string]*model, major int) {
	put := func(model, spec string) {
		for name, f := range describe("", "", spec).fields {
			if strings.HasPrefix(spec, name+":") {
				all[model].fields[name] = f
			}
		}
	}
	if major <= 16 {
		put("sale.order", "state:selection:Status:draft=Quotation,sent=Quotation Sent,sale=Sales Order,done=Locked,cancel=Cancelled")
	} else {
		put("sale.order", "locked:boolean:Locked")
	}
	if major >= 17 {
		put("account.move", "invoice_pdf_report_id:many2one:PDF Attachment:ir.attachment")
	}
	if major <= 17 {
		put("product.product", "detailed_type:selection:Product Type:consu=Consumable,service=Service,product=Storable Product")
	} else {
		put("product.product", "is_storable:boolean:Track Inventory")
	}
	if major <= 18 {
		put("res.partner", "mobile:char:Mobile")
		put("res.users", "groups_id:many2many:Groups:res.groups")
		put("crm.stage", "team_id:many2one:Sales Team:crm.team")
	} else {
		put("res.users", "group_ids:many2many:Groups:res.groups")
		put("crm.stage", "team_ids:many2many:Sales Teams:crm.team")
	}
}

// fill adds what the recorded servers' demonstration data has, in part.
func fill(all map[string]*model, major int) {
	add := func(model string, values map[string]any) { all[model].add(values) }
	for id, name := range map[int64]string{1: "USD", 2: "TWD"} {
		add("res.currency", map[string]any{"id": id, "name": name})
	}
	add("res.country", map[string]any{"id": 233, "name": "United States"})
	add("uom.uom", map[string]any{"id": 1, "name": "Units"})
	add("res.company", map[string]any{"id": 1, "name": "YourCompany", "user_ids": []any{int64(2), int64(8)}})
	add("res.company", map[string]any{"id": 2, "name": "Branch", "user_ids": []any{int64(2)}})
	add("res.users", map[string]any{"id": 2, "name": "Mitchell Admin", "login": "admin"})
	add("res.users", map[string]any{"id": 8, "name": "Limited", "login": "limited"})
	for i, name := range []string{"New", "Qualified", "Proposition", "Won"} {
		add("crm.stage", map[string]any{"id": i + 1, "name": name, "sequence": i + 1, "is_won": name == "Won"})
	}
	add("crm.lead", map[string]any{"id": 43, "name": "Modernize old offices", "type": "lead", "contact_name": "Franny Seiller", "expected_revenue": 99755.0, "company_currency": 1,
		"stage_id": 1, "active": true, "create_date": "2026-10-09 18:16:34"})
	add("crm.lead", map[string]any{"id": 44, "name": "Quote for 35 windows", "type": "lead", "contact_name": "Tommi Brockhouse", "email_from": "tbrockhouse0@example.com",
		"expected_revenue": 41421.0, "company_currency": 1, "probability": 20.0, "stage_id": 3, "active": true, "create_date": "2026-10-09 18:16:34", "access_token": "hunter2"})
	add("res.partner", map[string]any{"id": 3, "name": "Mitchell Admin", "email": "admin@example.com", "active": true})
	add("res.partner", map[string]any{"id": 10, "name": "Deco Addict", "email": "info@example.com", "phone": "(603)-996-3829", "city": "Pleasant Hill", "country_id": 233, "is_company": true, "vat": "US12345", "active": true})
	desk := map[string]any{"id": 45, "name": "Customizable Desk", "default_code": "DESK0005", "list_price": 750.0, "currency_id": 1, "qty_available": 65.0, "type": "consu", "uom_id": 1, "active": true}
	hours := map[string]any{"id": 46, "name": "Consulting", "list_price": 90.0, "currency_id": 1, "type": "service", "active": true}
	if major <= 17 {
		desk["detailed_type"], desk["type"], hours["detailed_type"] = "product", "product", "service"
	} else {
		desk["is_storable"], hours["is_storable"] = true, false
	}
	add("product.product", desk)
	add("product.product", hours)
	add("stock.location", map[string]any{"id": 8, "name": "WH/Stock", "usage": "internal"})
	add("stock.location", map[string]any{"id": 14, "name": "Virtual Locations/Inventory adjustment", "usage": "inventory"})
	add("stock.quant", map[string]any{"id": 35, "product_id": 45, "location_id": 8, "quantity": 65.0, "reserved_quantity": 3.0})
	add("stock.quant", map[string]any{"id": 37, "product_id": 45, "location_id": 14, "quantity": -65.0, "reserved_quantity": 0.0})
	add("sale.order", map[string]any{"id": 24, "name": "S00024", "partner_id": 10, "state": "sale", "amount_total": 1990.0, "currency_id": 1, "date_order": "2026-11-30 18:16:55", "invoice_status": "no"})
	add("sale.order", map[string]any{"id": 25, "name": "S00025", "partner_id": 10, "state": "draft", "amount_total": 2250.0, "currency_id": 1, "date_order": "2026-11-30 18:16:55", "invoice_status": "no"})
	add("account.move", map[string]any{"id": 1, "name": "INV/2026/00001", "partner_id": 10, "move_type": "out_invoice", "state": "posted", "payment_state": "not_paid", "amount_total": 31750.0, "amount_residual": 31750.0,
		"currency_id": 1, "invoice_date": "2026-11-01", "invoice_date_due": "2026-11-30"})
	add("account.move", map[string]any{"id": 6, "name": "/", "move_type": "in_invoice", "state": "draft", "payment_state": "not_paid", "amount_total": 0.0, "amount_residual": 0.0, "currency_id": 1})
	for _, name := range []string{"account", "crm", "sale_management", "stock"} {
		add("ir.module.module", map[string]any{"name": name, "state": "installed", "license": "LGPL-3", "application": true})
	}
	add("ir.attachment", map[string]any{"id": 7, "name": "INV_2026_00001.pdf", "res_model": "account.move", "res_id": 1, "mimetype": "application/pdf", "file_size": 16,
		"datas": base64.StdEncoding.EncodeToString([]byte("%PDF-1.4\nkept\n%%EOF\n"))})
	if major >= 17 {
		all["account.move"].find(1)["invoice_pdf_report_id"] = int64(7)
	}
	add("ir.attachment", map[string]any{"id": 9, "name": "Contract.pdf", "res_model": "account.move", "res_id": 1, "mimetype": "application/pdf", "file_size": 16,
		"datas": base64.StdEncoding.EncodeToString([]byte("%PDF-1.4\nanother\n%%EOF\n"))})
	add("ir.attachment", map[string]any{"id": 10, "name": "Drawing.pdf", "res_model": "sale.order", "res_id": 24, "mimetype": "application/pdf", "file_size": 16,
		"datas": base64.StdEncoding.EncodeToString([]byte("%PDF-1.4\nanother\n%%EOF\n"))})
	add("ir.actions.report", map[string]any{"name": "Quotation / Order", "report_name": "sale.report_saleorder", "model": "sale.order"})
}
