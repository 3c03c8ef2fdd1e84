package control_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/category/control"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
)

type someArgs struct {
	Model string   `json:"model,omitempty" doc:"Which"`
	Limit int      `json:"limit,omitempty" doc:"Most" min:"1" max:"1000"`
	To    []string `json:"to,omitempty" doc:"Whom"`
	Token string   `json:"token,omitempty" doc:"Secret"`
}

type nothing struct{}

func never(context.Context, caller.Caller, someArgs) (nothing, error) {
	return nothing{}, errors.New("not called")
}

// shop is a category of made up tools of every kind.
func shop() tool.Category {
	return tool.Category{Name: "shop", Tools: []tool.Tool{
		tool.Read("shop_search", "Find.", never),
		tool.Write("shop_order", "Order.", never, tool.Secret("token")),
		tool.Write("shop_send", "Send.", never, tool.Rate(tool.ClassSend)),
		tool.Write("shop_run", "Run.", never, tool.Rate(tool.ClassExecute)),
		tool.Write("shop_close", "Close.", never, tool.NeedsScope(caller.ScopeOperator)),
		tool.Read("shop_report", "Report.", never, tool.In(tool.Enterprise)),
	}}
}

// inShop is the category control over a catalogue with the shop beside it.
func inShop(t *testing.T) (postgres.DB, tool.Category) {
	t.Helper()
	db := postgrestest.New(t)
	setup(t, db)
	return db, shopOn(db)
}

func shopOn(db postgres.DB) tool.Category {
	return control.With(db, clock, control.Options{Edition: func(time.Time) tool.Edition { return tool.Pro }, Catalog: shopCatalog})
}

func shopCatalog() (*catalog.Catalog, error) { return catalog.Of(shop(), control.New(nil, clock)) }

func exec(t *testing.T, db postgres.DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func count(t *testing.T, db postgres.DB, sql string) int {
	t.Helper()
	var n int
	if err := db.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}
