package odoo

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/fault"
)

// brief is a value as an answer repeats it: of a file, only how large it is.
func (f field) brief(v jsontext.Value) jsontext.Value {
	text := row{"v": v}.text("v")
	if f.Type != "binary" || text == "" {
		return v
	}
	return encoded(fmt.Sprintf("a file of about %d bytes", base64.StdEncoding.DecodedLen(len(text))))
}

// keepFiles reads the files that a change replaces into what is kept of it.
// It says so where one is too large for that; the change is made all the same.
func (s *session) keepFiles(ctx context.Context, c *change) (note string, err error) {
	all, err := s.fields(ctx, c.model)
	if err != nil {
		return "", err
	}
	var files []string
	for name := range c.values {
		if all[name].Type == "binary" {
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		return "", nil
	}
	slices.Sort(files)
	rows, err := s.rows(ctx, query{model: c.model, domain: []any{[]any{"id", "in", c.ids}}, columns: same(files...), order: "id",
		context: map[string]any{"active_test": false, "bin_size": false}}, len(c.ids))
	if f, ok := fault.Of(err); ok && f.Reason == fault.TooLarge {
		return "the file before is too large to be kept, so this cannot be put back", nil
	}
	if err != nil {
		return "", err
	}
	for _, old := range c.before {
		for _, r := range rows {
			for _, name := range files {
				if r.id() == old.id() {
					old[name] = r[name]
				}
			}
		}
	}
	c.whole = true
	return "the file before is kept with the write_id", nil
}
