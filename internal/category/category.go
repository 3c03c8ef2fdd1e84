// Package category is the table of categories. Only programs that hold
// several at once use it: the laptop's server, the generator of the catalogue
// and the checks. A Lambda function links its one category directly.
package category

import (
	"context"
	"time"

	"pawgate/internal/category/agent"
	"pawgate/internal/category/control"
	// memory
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

// Host is where a category runs when it is deployed.
type Host string

// The hosts.
const (
	Function Host = "function" // a Lambda function of its own
	Sidecar  Host = "sidecar"  // the long-running host
)

// Deps are what a process shares between its categories.
type Deps struct {
	DB  postgres.DB
	Now func() time.Time
}

// Row is one category. Open may read the category's own settings from the
// environment; it connects to nothing.
type Row struct {
	Name string
	Host Host
	Open func(context.Context, Deps) (tool.Category, error)
}

// Rows are all categories, in the order in which their tools are listed.
func Rows() []Row {
	return []Row{
		// {"memory", Function, shared(memory.New)},
		{"agent", Function, shared(agent.New)},
		{"control", Function, shared(control.New)},
	}
}

// shared is the Open of a category that needs the database and the clock.
func shared(open func(postgres.DB, func() time.Time) tool.Category) func(context.Context, Deps) (tool.Category, error) {
	return func(_ context.Context, d Deps) (tool.Category, error) { return open(d.DB, d.Now), nil }
}

// OpenAll opens every category in this process.
func OpenAll(ctx context.Context, d Deps) ([]tool.Category, error) {
	var all []tool.Category
	for _, row := range Rows() {
		c, err := row.Open(ctx, d)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}
