// Package category is the table of categories. Only programs that hold
// several at once use it: the laptop's server, the generator of the catalogue
// and the checks. A Lambda function links its one category directly.
package category

import (
	"time"

	"pawgate/internal/category/agent"
	"pawgate/internal/category/control"
	"pawgate/internal/category/cost"
	"pawgate/internal/category/inference"
	"pawgate/internal/category/llamafile"
	"pawgate/internal/category/memory"
	"pawgate/internal/category/model"
	"pawgate/internal/category/odoo"
	"pawgate/internal/category/send"
	"pawgate/internal/category/skill"
	"pawgate/internal/category/web"
	"pawgate/internal/client/embed"
	"pawgate/internal/client/hub"
	"pawgate/internal/client/llama"
	"pawgate/internal/licence"
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

// Deps are what a process shares between its categories, and the settings of
// those that have some.
type Deps struct {
	DB  postgres.DB
	Now func() time.Time
	// Licence says how many agents there may be.
	Licence licence.Licence
	// Edition is what the licence pays for; nil: community.
	Edition    func(time.Time) tool.Edition
	Embeddings embed.Config
	Models     *llama.Host
	Downloads  *hub.Downloads
	Inference  inference.Settings
	Odoo       odoo.Settings
	Send       send.Settings
	Web        web.Settings
	Skill      skill.Settings
}

// Row is one category. New does no I/O.
type Row struct {
	Name string
	Host Host
	New  func(Deps) tool.Category
}

// Rows are all categories, in the order in which their tools are listed.
func Rows() []Row {
	return []Row{
		{"memory", Function, newMemory},
		{"agent", Function, func(d Deps) tool.Category { return agent.With(d.DB, d.Now, agent.Options{Licence: d.Licence}) }},
		{"control", Function, func(d Deps) tool.Category { return control.With(d.DB, d.Now, control.Options{Edition: d.Edition}) }},
		{"web", Function, func(d Deps) tool.Category { return web.New(d.DB, d.Web, d.Now) }},
		{"send", Function, func(d Deps) tool.Category { return send.New(d.DB, d.Send, d.Now) }},
		{"odoo", Function, func(d Deps) tool.Category { return odoo.New(d.DB, d.Odoo, d.Now) }},
		{"skill", Function, func(d Deps) tool.Category { return skill.New(d.DB, d.Skill, d.Now) }},
		{"cost", Function, func(d Deps) tool.Category { return cost.New(d.DB, d.Now) }},
		{"model", Sidecar, func(d Deps) tool.Category { return model.New(d.Models, d.Downloads, d.Now) }},
		{"inference", Sidecar, func(d Deps) tool.Category { return inference.New(d.DB, d.Models, d.Inference, d.Now) }},
		{"llamafile", Sidecar, func(d Deps) tool.Category { return llamafile.New(d.Models) }},
	}
}

// newMemory searches by meaning too where there is a server for embeddings.
func newMemory(d Deps) tool.Category {
	if d.Embeddings.URL == "" {
		return memory.New(d.DB, d.Now)
	}
	return memory.NewHybrid(d.DB, d.Now, embed.New(d.Embeddings))
}

// All are the categories over the same dependencies.
func All(d Deps) []tool.Category {
	var all []tool.Category
	for _, row := range Rows() {
		all = append(all, row.New(d))
	}
	return all
}
