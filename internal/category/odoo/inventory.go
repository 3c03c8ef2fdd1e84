package odoo

import (
	"context"

	"pawgate/internal/caller"
)

const (
	productModel = "product.product"
	quantModel   = "stock.quant"
)

var productColumns = []column{{as: "name", field: "display_name"}, {as: "default_code", field: "default_code"}, {as: "list_price", field: "list_price", currency: "currency_id"},
	{as: "qty_available", field: "qty_available"}, {as: "virtual_available", field: "virtual_available"}, {as: "product_type", field: "type"}, {as: "unit", field: "uom_id"}}

type productsArgs struct {
	Query string `json:"query,omitempty" doc:"Name or code"`
	paging
}

func (o odoo) products(ctx context.Context, who caller.Caller, a productsArgs) (page, error) {
	s, err := o.allowed(ctx, who, find, productModel)
	if err != nil {
		return page{}, err
	}
	stockable, err := s.stockable(ctx)
	if err != nil {
		return page{}, err
	}
	domain := []any{stockable}
	if a.Query != "" {
		condition, err := s.containing(ctx, productModel, a.Query, "name", "default_code")
		if err != nil {
			return page{}, err
		}
		domain = append(domain, condition...)
	}
	return s.list(ctx, query{model: productModel, domain: domain, columns: productColumns, limit: a.Limit, offset: a.Offset})
}

// stockable is the condition for products that are counted: is_storable since
// Odoo 18, detailed_type before.
func (s *session) stockable(ctx context.Context) ([]any, error) {
	all, err := s.fields(ctx, productModel)
	if err != nil {
		return nil, err
	}
	switch {
	case all["is_storable"].Type != "":
		return []any{"is_storable", "=", true}, nil
	case all["detailed_type"].Type != "":
		return []any{"detailed_type", "=", "product"}, nil
	}
	return []any{"type", "=", "product"}, nil
}

type stockArgs struct {
	ProductID int64 `json:"product_id" doc:"Variant"`
}

type stockResult struct {
	Product   ref             `json:"product"`
	Unit      *ref            `json:"unit"`
	OnHand    float64         `json:"on_hand"`
	Reserved  float64         `json:"reserved"`
	Available float64         `json:"available"`
	Locations []stockLocation `json:"locations"`
	Counted   string          `json:"counted"` // which locations
	More      bool            `json:"more,omitzero"`
}

type stockLocation struct {
	Location  *ref    `json:"location"`
	Lot       *ref    `json:"lot"`
	Company   *ref    `json:"company"`
	OnHand    float64 `json:"on_hand"`
	Reserved  float64 `json:"reserved"`
	Available float64 `json:"available"`
}

// stock counts what lies in internal locations. Customers', suppliers' and
// virtual locations hold the other side of every move, with negative numbers.
func (o odoo) stock(ctx context.Context, who caller.Caller, a stockArgs) (stockResult, error) {
	s, err := o.allowed(ctx, who, find, quantModel)
	if err != nil {
		return stockResult{}, err
	}
	if err := s.conn.may(read, productModel, ""); err != nil {
		return stockResult{}, err
	}
	if err := s.need(ctx, quantModel, "product_id", "product_id", "location_id", "quantity", "reserved_quantity"); err != nil {
		return stockResult{}, err
	}
	product, err := s.one(ctx, productModel, a.ProductID, same("display_name", "uom_id"))
	if err != nil {
		return stockResult{}, err
	}
	rows, err := s.rows(ctx, query{model: quantModel, domain: []any{[]any{"product_id", "=", a.ProductID}, []any{"location_id.usage", "=", "internal"}},
		columns: same("location_id", "lot_id", "company_id", "quantity", "reserved_quantity"), order: "location_id, id"}, maxLimit+1)
	if err != nil {
		return stockResult{}, err
	}
	r := stockResult{Product: ref{a.ProductID, product.text("display_name")}, Unit: product.ref("uom_id"), Locations: []stockLocation{},
		Counted: "internal locations", More: len(rows) > maxLimit}
	for _, q := range rows[:min(len(rows), maxLimit)] {
		l := stockLocation{Location: q.ref("location_id"), Lot: q.ref("lot_id"), Company: q.ref("company_id"), OnHand: q.number("quantity"), Reserved: q.number("reserved_quantity")}
		l.Available = l.OnHand - l.Reserved
		r.Locations = append(r.Locations, l)
		r.OnHand, r.Reserved, r.Available = r.OnHand+l.OnHand, r.Reserved+l.Reserved, r.Available+l.Available
	}
	return r, nil
}
