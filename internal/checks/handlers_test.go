package checks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pawgate/internal/tool"
)

// handled is a tool with the place of its handler in the source.
type handled struct {
	tool.Tool
	category *categorySource
	handler  string // the method's name
	file     string // where it is declared
}

// categorySource is a category's package as its files say it, tests left out.
type categorySource struct {
	name  string
	funcs map[string][]declared // by name; methods of different types share one
	// outside are the fields of its structs that hold a client of package
	// safehttp or of a package built on it.
	outside map[string]bool
}

type declared struct {
	file    string
	imports map[string]string // local name → path
	decl    *ast.FuncDecl
}

// handlers finds the handler of every tool in its category's source. A tool
// that it cannot find fails the test: the rules that read handlers would be
// blind to it.
func handlers(t *testing.T) []handled {
	t.Helper()
	outside := outsidePackages(t)
	var all []handled
	for _, c := range tools() {
		source := readCategory(t, c.Name, outside)
		for _, listed := range c.Tools {
			method, ok := source.handlerOf(listed.Name)
			if !ok {
				t.Fatalf("%s: no row tool.Read|Write|Destroy(%q, …, x.method) in internal/category/%s; the checks could not read its handler", listed.Name, listed.Name, c.Name)
			}
			all = append(all, handled{Tool: listed, category: source, handler: method, file: source.funcs[method][0].file})
		}
	}
	return all
}

// outsidePackages are safehttp and the packages that are built on it, those of
// categories and hosts left out: who calls into one leaves this installation.
func outsidePackages(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{"pawgate/internal/safehttp": true}
	for _, p := range packages(t) {
		if strings.HasPrefix(p.path(), "internal/client/") && slices.Contains(p.Deps, "pawgate/internal/safehttp") {
			found[p.ImportPath] = true
		}
	}
	return found
}

func readCategory(t *testing.T, name string, outside map[string]bool) *categorySource {
	t.Helper()
	c := &categorySource{name: name, funcs: map[string][]declared{}, outside: map[string]bool{}}
	paths, err := filepath.Glob(filepath.Join(root, "internal/category", name, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		c.add(filepath.Base(path), file, outside)
	}
	return c
}

func (c *categorySource) add(name string, file *ast.File, outside map[string]bool) {
	imports := importsOf(file)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			c.funcs[n.Name.Name] = append(c.funcs[n.Name.Name], declared{name, imports, n})
		case *ast.StructType:
			for _, f := range n.Fields.List {
				if mentions(f.Type, imports, outside) {
					for _, name := range f.Names {
						c.outside[name.Name] = true
					}
				}
			}
		}
		return true
	})
}

func importsOf(file *ast.File) map[string]string {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = path
	}
	return imports
}

// mentions reports whether a piece of code names something of the packages.
func mentions(n ast.Node, imports map[string]string, packages map[string]bool) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && packages[imports[x.Name]] {
				found = true
			}
		}
		return !found
	})
	return found
}

// handlerOf reads the row of a tool: the name of its third argument's method.
func (c *categorySource) handlerOf(name string) (string, bool) {
	found := ""
	for _, d := range slices.Concat(slices.Collect(maps.Values(c.funcs))...) {
		ast.Inspect(d.decl, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 3 || !text(call.Args[0], name) {
				return true
			}
			if method, ok := call.Args[2].(*ast.SelectorExpr); ok && len(c.funcs[method.Sel.Name]) > 0 {
				found = method.Sel.Name
			}
			return true
		})
	}
	return found, found != ""
}

// text reports whether an expression is the string.
func text(e ast.Expr, want string) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING && lit.Value == strconv.Quote(want)
}

// reached are the functions that a handler may call, itself first. It goes by
// names, so it may say too many and never too few.
func (c *categorySource) reached(handler string) []declared {
	var all []declared
	seen := map[string]bool{}
	for next := []string{handler}; len(next) > 0; next = next[1:] {
		if seen[next[0]] {
			continue
		}
		seen[next[0]] = true
		for _, d := range c.funcs[next[0]] {
			all = append(all, d)
			ast.Inspect(d.decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					x, ok := n.X.(*ast.Ident)
					return !ok || d.imports[x.Name] == "" // fault.New is not our New
				case *ast.Ident:
					if len(c.funcs[n.Name]) > 0 {
						next = append(next, n.Name)
					}
				}
				return true
			})
		}
	}
	return all
}

// leaves reports whether a tool reaches systems outside this installation.
func (h handled) leaves(outside map[string]bool) bool {
	for _, d := range h.category.reached(h.handler) {
		if mentions(d.decl, d.imports, outside) {
			return true
		}
		away := false
		ast.Inspect(d.decl, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && h.category.outside[s.Sel.Name] {
				away = true
			}
			return !away
		})
		if away {
			return true
		}
	}
	return false
}

// refuses reports whether a tool has code of its own that refuses arguments:
// a Validate method, or a fault in what its handler reaches in its own file.
func (h handled) refuses() bool {
	for _, d := range h.category.funcs["Validate"] {
		if receiverOf(d.decl) == argumentsOf(h.category.funcs[h.handler][0].decl) {
			return true
		}
	}
	faults := map[string]bool{"pawgate/internal/fault": true}
	return slices.ContainsFunc(h.category.reached(h.handler), func(d declared) bool {
		return d.file == h.file && mentions(d.decl, d.imports, faults)
	})
}

// receiverOf is the type that a method belongs to.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	if star, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok {
		return last(star.X)
	}
	return last(f.Recv.List[0].Type)
}

// argumentsOf is the type of a handler's last parameter.
func argumentsOf(f *ast.FuncDecl) string {
	params := f.Type.Params.List
	if len(params) == 0 {
		return ""
	}
	return last(params[len(params)-1].Type)
}

// TestLeaves: the rules above see a way out, also one or two calls away.
func TestLeaves(t *testing.T) {
	for _, c := range []struct {
		name, code string
		want       bool
	}{
		{"stays", `func (w web) run() int { return len("safehttp") }`, false},
		{"in_the_handler", `func (w web) run() { safehttp.CheckURL("") }`, true},
		{"by_a_field", `func (w web) run() { w.fetch.Do(nil) }`, true},
		{"by_another_method", `func (w web) run() { w.more() }; func (w web) more() { w.fetch.Do(nil) }`, true},
		{"by_a_function_value", `func (w web) run() { apply(more) }; func more() { safehttp.CheckURL("") }; func apply(f func()) { f() }`, true},
		{"in_a_circle", `func (w web) run() { w.more() }; func (w web) more() { w.run() }`, false},
		{"another_tool_does", `func (w web) run() {}; func (w web) other() { w.fetch.Do(nil) }`, false},
		{"fault_New_is_not_New", `func (w web) run() { other.New() }; func (w web) other() { w.fetch.Do(nil) }`, false},
		{"a_package_of_that_name", `func (w web) run() { other.CheckURL("") }`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := `package web
				import ("pawgate/internal/safehttp"; other "strings")
				type web struct { fetch *safehttp.Client; n int }
				func New() { w := web{}; _ = tool.Read("web_run", "Runs.", w.run) }
				` + c.code
			file, err := parser.ParseFile(token.NewFileSet(), "web.go", source, 0)
			if err != nil {
				t.Fatal(err)
			}
			outside := map[string]bool{"pawgate/internal/safehttp": true}
			s := &categorySource{name: "web", funcs: map[string][]declared{}, outside: map[string]bool{}}
			s.add("web.go", file, outside)
			method, ok := s.handlerOf("web_run")
			if !ok || method != "run" {
				t.Fatalf("handler %q, %v", method, ok)
			}
			if got := (handled{category: s, handler: method}).leaves(outside); got != c.want {
				t.Errorf("leaves: %v, want %v", got, c.want)
			}
		})
	}
}
