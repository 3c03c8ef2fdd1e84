package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// pkg is what the new tool must fit into: a category's package as its source
// has it now.
type pkg struct {
	source   []byte // of the file with the table
	rows     *ast.CompositeLit
	set      *token.FileSet
	variable string // what the table calls the category, as in m.search
	receiver string // of its handlers, as in "m memory"
	taken    map[string]bool
}

// parsePackage finds the table in source, which is the content of the file
// named like the category.
func parsePackage(dir, category string, source []byte) (pkg, error) {
	p := pkg{source: source, set: token.NewFileSet(), taken: map[string]bool{}}
	file, err := parser.ParseFile(p.set, category+".go", source, 0)
	if err != nil {
		return pkg{}, fmt.Errorf("read the category's table: %w", err)
	}
	var home *ast.FuncDecl
	if home, p.rows = table(file); p.rows == nil {
		return pkg{}, usagef("internal/category/%s/%s.go must hold the table in one []tool.Tool{…}; as it is, add the row by hand", category, category)
	}
	var typ string
	if p.variable, typ = state(home, p.rows); typ == "" {
		return pkg{}, usagef("func %s of category %s makes no value with the handlers, as in: m := %s{db: db}", home.Name.Name, category, category)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return pkg{}, err
	}
	for _, path := range paths {
		other, err := parser.ParseFile(p.set, path, nil, 0)
		if err != nil {
			return pkg{}, fmt.Errorf("read the category: %w", err)
		}
		p.learn(other, typ)
	}
	if p.receiver == "" {
		p.receiver = "c " + typ
	}
	return p, nil
}

// table is the only []tool.Tool{…} of a file with the function around it, most
// often New.
func table(file *ast.File) (home *ast.FuncDecl, rows *ast.CompositeLit) {
	found := 0
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok {
				if list, ok := lit.Type.(*ast.ArrayType); ok && selects(list.Elt, "tool", "Tool") {
					home, rows, found = f, lit, found+1
				}
			}
			return true
		})
	}
	if found != 1 {
		return nil, nil
	}
	return home, rows
}

// selects reports whether an expression is x.name.
func selects(e ast.Expr, x, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	return ok && id.Name == x
}

// state finds the value whose methods are the handlers: its variable in the
// table's function, and its type.
func state(home *ast.FuncDecl, rows *ast.CompositeLit) (variable, typ string) {
	used := ""
	for _, row := range rows.Elts {
		if call, ok := row.(*ast.CallExpr); ok && len(call.Args) > 2 {
			if s, ok := call.Args[2].(*ast.SelectorExpr); ok {
				if id, ok := s.X.(*ast.Ident); ok {
					used = id.Name
				}
			}
		}
	}
	for _, statement := range home.Body.List {
		assign, ok := statement.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != 1 || len(assign.Rhs) != 1 {
			continue
		}
		id, ok := assign.Lhs[0].(*ast.Ident)
		if name := literal(assign.Rhs[0]); ok && name != "" && (used == "" || used == id.Name) {
			return id.Name, name
		}
	}
	return "", ""
}

// literal is the type of T{…} or &T{…}; empty for anything else.
func literal(e ast.Expr) string {
	if address, ok := e.(*ast.UnaryExpr); ok && address.Op == token.AND {
		e = address.X
	}
	if lit, ok := e.(*ast.CompositeLit); ok {
		if id, ok := lit.Type.(*ast.Ident); ok {
			return id.Name
		}
	}
	return ""
}

// learn notes which names a file takes, and how its methods call the
// category.
func (p *pkg) learn(file *ast.File, typ string) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || receives(d, typ) {
				p.taken[d.Name.Name] = true
			}
			if receives(d, typ) && p.receiver == "" {
				p.receiver = receiver(d, typ)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				p.learnSpec(s, typ)
			}
		}
	}
}

func (p *pkg) learnSpec(s ast.Spec, typ string) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			p.taken[name.Name] = true
		}
	case *ast.TypeSpec:
		p.taken[s.Name.Name] = true
		if fields, ok := s.Type.(*ast.StructType); ok && s.Name.Name == typ {
			for _, f := range fields.Fields.List {
				for _, name := range f.Names { // a method may not share a field's name
					p.taken[name.Name] = true
				}
				if len(f.Names) == 0 {
					p.taken[embedded(f.Type)] = true
				}
			}
		}
	}
}

// embedded is the name of an embedded field.
func embedded(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return embedded(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func receives(f *ast.FuncDecl, typ string) bool {
	if f.Recv == nil {
		return false
	}
	e := f.Recv.List[0].Type
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	id, ok := e.(*ast.Ident)
	return ok && id.Name == typ
}

// receiver is how a method names its category; empty when it does not, or in
// a way that would clash with a handler's parameters.
func receiver(f *ast.FuncDecl, typ string) string {
	names := f.Recv.List[0].Names
	if len(names) != 1 || slices.Contains([]string{"_", "a", "ctx", "who"}, names[0].Name) {
		return ""
	}
	if _, pointer := f.Recv.List[0].Type.(*ast.StarExpr); pointer {
		typ = "*" + typ
	}
	return names[0].Name + " " + typ
}

// choose is the first name that the package has free for a handler, its two
// types and its test.
func (p pkg) choose(r request) (string, error) {
	for _, name := range r.identifiers() {
		if !p.taken[name] && !p.taken[name+"Args"] && !p.taken[name+"Result"] && !p.taken["Test"+title(name)] {
			return name, nil
		}
	}
	return "", usagef("category %s already has code named %s; choose another NAME", r.category, strings.Join(r.identifiers(), ", "))
}

// insert gives the table's file with a row after the last one.
func (p pkg) insert(row string) ([]byte, error) {
	offset := func(pos token.Pos) int { return p.set.Position(pos).Offset }
	end := offset(p.rows.Rbrace)
	last := offset(p.rows.Lbrace) + 1
	if n := len(p.rows.Elts); n > 0 {
		last = offset(p.rows.Elts[n-1].End())
	}
	rest := bytes.TrimSpace(p.source[last:end]) // a comma and comments, if anything
	var out bytes.Buffer
	out.Write(p.source[:last])
	if len(p.rows.Elts) > 0 && !bytes.HasPrefix(rest, []byte(",")) {
		out.WriteByte(',')
	}
	out.Write(bytes.TrimRight(p.source[last:end], " \t\r\n"))
	fmt.Fprintf(&out, "\n%s\n", row)
	out.Write(p.source[end:])
	formatted, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("format the table: %w", err)
	}
	return formatted, nil
}
