package odoo

import (
	"context"
	"maps"
	"slices"

	"pawgate/internal/caller"
)

type schemaArgs struct {
	Model  string `json:"model" doc:"-"`
	Offset int    `json:"offset,omitempty" doc:"-" min:"0"`
}

type schemaResult struct {
	Model      string        `json:"model"`
	Version    string        `json:"version"`
	Fields     []schemaField `json:"fields"`
	Total      int           `json:"total"`
	NextOffset int           `json:"next_offset,omitzero"`
}

type schemaField struct {
	Name     string   `json:"name"`
	Type     string   `json:"ttype"`
	Label    string   `json:"label"`
	Required bool     `json:"required,omitzero"`
	Readonly bool     `json:"readonly,omitzero"`
	Relation string   `json:"relation,omitzero"`
	Values   []string `json:"values,omitzero"` // of a selection
}

// schema lists fields by name, 200 at a time.
func (o odoo) schema(ctx context.Context, who caller.Caller, a schemaArgs) (schemaResult, error) {
	s, err := o.session(ctx, who)
	if err != nil {
		return schemaResult{}, err
	}
	if _, old := renamed[a.Model]; old {
		return schemaResult{}, s.unknownModel(a.Model)
	}
	if err := s.conn.may(read, a.Model, ""); err != nil {
		return schemaResult{}, err
	}
	all, err := s.fields(ctx, a.Model)
	if err != nil {
		return schemaResult{}, err
	}
	r := schemaResult{Model: a.Model, Version: s.client.Server().Version, Fields: []schemaField{}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		r.Total++
		if r.Total <= a.Offset || len(r.Fields) == maxLimit {
			continue
		}
		r.Fields = append(r.Fields, schemaField{name, f.Type, f.Label, f.Required, f.Readonly, f.Relation, f.keys()})
	}
	if end := a.Offset + len(r.Fields); end < r.Total {
		r.NextOffset = end
	}
	return r, nil
}
