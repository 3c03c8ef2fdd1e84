// Package catalog holds every tool as clients see it, one generated file per
// category. It is all the router knows of tools: it links no category.
//
// The files are written from the categories' tables by "make generate"; a
// check refuses a stale one. A diff of these files is the review of the
// public surface.
package catalog

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"pawgate/internal/policy"
	"pawgate/internal/tool"
)

//go:embed *.json
var files embed.FS

// Entry is one tool: what decisions need, and its public form, encoded once.
type Entry struct {
	policy.Tool
	// Public is the element of tools/list.
	Public json.RawMessage

	schema      func() *tool.Schema
	fingerprint func() string
}

// Fingerprint is the SHA-256, in hex, of the tool as it is published: an
// approval holds for this definition only.
func (e *Entry) Fingerprint() string { return e.fingerprint() }

// Schema is the argument schema, decoded at first use: a cold start pays only
// for the tools that are called.
func (e *Entry) Schema() *tool.Schema { return e.schema() }

// Catalog finds tools by name and keeps their order.
type Catalog struct {
	entries []*Entry
	byName  map[string]*Entry
	size    int
}

// Size is how many bytes the whole list takes, with the commas.
func (c *Catalog) Size() int { return c.size }

// file is the form of a generated file.
type file struct {
	Category string `json:"category"`
	Tools    []line `json:"tools"`
}

// line is one tool in a file: what clients see, ready to be sent, and what
// only the gate needs.
type line struct {
	Public  json.RawMessage `json:"public"`
	Class   tool.Class      `json:"class"`
	Edition tool.Edition    `json:"edition"`
	Scope   string          `json:"scope,omitempty"`
	Exempt  bool            `json:"exempt,omitempty"`
	Secrets []string        `json:"secrets,omitempty"`
	Args    json.RawMessage `json:"args"` // the whole schema
}

// listed is an element of tools/list.
type listed struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema *tool.Schema    `json:"inputSchema"`
	Annotations map[string]bool `json:"annotations"`
}

// Load reads the embedded files.
func Load() (*Catalog, error) {
	dir, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("list catalogue: %w", err)
	}
	c := &Catalog{byName: map[string]*Entry{}}
	for _, f := range dir {
		content, err := files.ReadFile(f.Name())
		if err != nil {
			return nil, fmt.Errorf("read catalogue: %w", err)
		}
		if err := c.add(content); err != nil {
			return nil, fmt.Errorf("read catalogue %s: %w", f.Name(), err)
		}
	}
	return c, nil
}

// Of is the catalogue of assembled categories, as Encode would write it.
func Of(categories ...tool.Category) (*Catalog, error) {
	c := &Catalog{byName: map[string]*Entry{}}
	for _, category := range categories {
		content, err := Encode(category)
		if err != nil {
			return nil, err
		}
		if err := c.add(content); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Catalog) add(content []byte) error {
	var f file
	if err := json.Unmarshal(content, &f); err != nil {
		return err
	}
	for _, l := range f.Tools {
		entry, err := l.entry(f.Category)
		if err != nil {
			return err
		}
		if _, twice := c.byName[entry.Name]; twice {
			return fmt.Errorf("tool %s stands in two categories", entry.Name)
		}
		c.byName[entry.Name] = entry
		c.entries = append(c.entries, entry)
		c.size += len(entry.Public) + 1
	}
	return nil
}

func (l line) entry(category string) (*Entry, error) {
	var public struct {
		Name        string     `json:"name"`
		Description string     `json:"description"`
		Annotations tool.Hints `json:"annotations"`
	}
	if err := json.Unmarshal(l.Public, &public); err != nil {
		return nil, err
	}
	public.Annotations.Idempotent = public.Annotations.Idempotent || public.Annotations.ReadOnly
	return &Entry{
		Tool: policy.Tool{Category: category, Definition: tool.Definition{
			Name: public.Name, About: public.Description, Hints: public.Annotations, Class: l.Class,
			Edition: l.Edition, Scope: l.Scope, Exempt: l.Exempt, Secrets: l.Secrets,
		}},
		Public: l.Public,
		fingerprint: sync.OnceValue(func() string {
			sum := sha256.Sum256(append(slices.Clone(l.Public), l.Args...))
			return hex.EncodeToString(sum[:])
		}),
		schema: sync.OnceValue(func() *tool.Schema {
			s := new(tool.Schema)
			if err := json.Unmarshal(l.Args, s); err != nil {
				panic(fmt.Sprintf("catalogue: schema of %s: %v", public.Name, err)) // generated and checked
			}
			return s
		}),
	}, nil
}

// Find gives the tool of that exact name, or nil.
func (c *Catalog) Find(name string) *Entry { return c.byName[name] }

// All are the tools in their order: by category, then as in its table.
func (c *Catalog) All() []*Entry { return c.entries }

// Categories are the names of the categories, in order.
func (c *Catalog) Categories() []string {
	var names []string
	for _, e := range c.entries {
		if len(names) == 0 || names[len(names)-1] != e.Category {
			names = append(names, e.Category)
		}
	}
	return names
}

// Encode renders a category's file: one tool a line, members in a fixed
// order.
func Encode(category tool.Category) ([]byte, error) {
	out := fmt.Appendf(nil, "{\n  \"category\": %q,\n  \"tools\": [", category.Name)
	for i, t := range category.Tools {
		encoded, err := encodeLine(t.Definition)
		if err != nil {
			return nil, fmt.Errorf("encode tool %s: %w", t.Name, err)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, "\n    "...), encoded...)
	}
	return append(out, "\n  ]\n}\n"...), nil
}

func encodeLine(d tool.Definition) ([]byte, error) {
	public, err := tool.Marshal(listed{Name: d.Name, Description: d.About, InputSchema: d.Args.Brief(), Annotations: d.Hints.Published()})
	if err != nil {
		return nil, err
	}
	args, err := tool.Marshal(d.Args)
	if err != nil {
		return nil, err
	}
	return tool.Marshal(line{Public: public, Class: d.Class, Edition: d.Edition, Scope: d.Scope, Exempt: d.Exempt, Secrets: d.Secrets, Args: args})
}
