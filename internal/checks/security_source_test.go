package checks

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ownClients are the places that speak HTTP without safehttp. None of them
// takes an address from a caller. A category is never one (TestForbiddenCalls).
var ownClients = map[string]string{
	"internal/safehttp":               "it is the guard",
	"internal/settings":               "signed requests to the region's own AWS endpoints",
	"internal/router":                 "Lambda's Invoke API and the sidecar that the operator configured",
	"internal/client/chat":            "the one model server that the operator configured; no redirect is followed",
	"internal/client/embed":           "the one embedding server that the operator configured; no redirect is followed",
	"internal/client/hub":             "downloads too large to hold; what the hub redirects to is judged by safehttp.Blocked",
	"internal/client/llama":           "the one provider that the operator configured; no redirect is followed",
	"internal/client/sqs":             "signed requests to the region's own AWS endpoint",
	"internal/client/llama/supervise": "health of the servers that it started on loopback",
	"local/stdio":                     "the router that the user configured",
}

// TestOutsideCallsAreGuarded: an HTTP client or a connection of one's own is
// made only where the list says why.
func TestOutsideCallsAreGuarded(t *testing.T) {
	used := map[string]bool{}
	eachGoFile(t, func(name string, set *token.FileSet, file *ast.File) {
		dir := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(dir, "internal/e2e") || strings.HasPrefix(dir, "internal/category") {
			return
		}
		imports := importsOf(file)
		ast.Inspect(file, func(n ast.Node) bool {
			out := wayOut(n, imports)
			if out == "" {
				return true
			}
			if _, ok := ownClients[dir]; ok {
				used[dir] = true
			} else {
				t.Errorf("%s:%d: %s: outside calls go through safehttp; if this one cannot, say why in ownClients",
					name, set.Position(n.Pos()).Line, out)
			}
			return true
		})
	})
	noneLeft(t, "ownClients", ownClients, used)
}

// wayOut names the way out that a piece of code makes without a guard; empty
// when it makes none. To name a type, as a parameter's, is not to make one.
func wayOut(n ast.Node, imports map[string]string) string {
	made := map[string]string{"net/http": "Client Transport", "net": "Dialer", "crypto/tls": "Dialer"}
	used := map[string]string{
		"net/http":   "DefaultClient DefaultTransport Get Head Post PostForm",
		"net":        "Dial DialTimeout DialTCP DialUDP DialIP DialUnix",
		"crypto/tls": "Dial DialWithDialer",
	}
	switch n := n.(type) {
	case *ast.CompositeLit:
		return among(n.Type, imports, made)
	case *ast.ValueSpec:
		return among(n.Type, imports, made)
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "new" && len(n.Args) == 1 {
			return among(n.Args[0], imports, made)
		}
	case *ast.SelectorExpr:
		return among(n, imports, used)
	}
	return ""
}

// among gives an expression x.name whose package and name are listed.
func among(e ast.Expr, imports, listed map[string]string) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := s.X.(*ast.Ident)
	if !ok || !slices.Contains(strings.Fields(listed[imports[x.Name]]), s.Sel.Name) {
		return ""
	}
	return x.Name + "." + s.Sel.Name
}

// TestSQLIsInFiles: a statement is an embedded file with named arguments;
// text put together at run time is how an argument becomes SQL.
func TestSQLIsInFiles(t *testing.T) {
	eachGoFile(t, func(name string, set *token.FileSet, file *ast.File) {
		if !strings.HasPrefix(name, "internal/category/") || strings.HasSuffix(name, "_test.go") {
			return
		}
		imports := importsOf(file)
		for _, d := range file.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if sql, ok := statement(call, imports); ok && !embeddedSQL(sql, d) {
					t.Errorf("%s:%d: the statement is not an embedded .sql file: declare it with go:embed and a name that ends in SQL",
						name, set.Position(call.Pos()).Line)
				}
				return true
			})
		}
	})
}

// embeddedSQL: a variable named …SQL, or one that the function sets to such
// variables only.
func embeddedSQL(e ast.Expr, function ast.Decl) bool {
	id, ok := e.(*ast.Ident)
	if !ok || strings.HasSuffix(id.Name, "SQL") {
		return ok
	}
	set, only := false, true
	ast.Inspect(function, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, left := range assign.Lhs {
			if name, ok := left.(*ast.Ident); ok && name.Name == id.Name {
				set = true
				only = only && len(assign.Rhs) == len(assign.Lhs) && strings.HasSuffix(last(assign.Rhs[i]), "SQL")
			}
		}
		return true
	})
	return set && only
}

// statement is the SQL of a call that runs some.
func statement(call *ast.CallExpr, imports map[string]string) (ast.Expr, bool) {
	fun := call.Fun
	if index, ok := fun.(*ast.IndexExpr); ok { // postgres.All[T]
		fun = index.X
	}
	s, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return nil, false
	}
	x, isName := s.X.(*ast.Ident)
	switch {
	case isName && imports[x.Name] == "pawgate/internal/postgres":
		if slices.Contains([]string{"All", "One", "First", "Exec"}, s.Sel.Name) && len(call.Args) > 2 {
			return call.Args[2], true
		}
	case slices.Contains([]string{"Query", "QueryRow", "Exec"}, s.Sel.Name) && len(call.Args) > 1:
		return call.Args[1], true
	case s.Sel.Name == "Queue" && len(call.Args) > 0: // pgx.Batch
		return call.Args[0], true
	}
	return nil, false
}

// TestHandlersDoNotLog: a category returns its errors; the host logs them once,
// with the request. What is not logged here cannot leak here.
func TestHandlersDoNotLog(t *testing.T) {
	eachGoFile(t, func(name string, _ *token.FileSet, file *ast.File) {
		if strings.HasPrefix(name, "internal/category/") && !strings.HasSuffix(name, "_test.go") && importsOf(file)["slog"] == "log/slog" {
			t.Errorf("%s logs; return the error, it is logged once with its request id", name)
		}
	})
}

// literalSecret is what a secret of some length looks like in quotes.
var literalSecret = regexp.MustCompile(`^"[A-Za-z0-9+/_=.-]{16,}"$`)

// TestNoSecretLiterals: nothing named like a secret is given a value in the
// source. Settings bring secrets in, see the guide.
func TestNoSecretLiterals(t *testing.T) {
	eachGoFile(t, func(name string, set *token.FileSet, file *ast.File) {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(path.Dir(name), "test") { // odootest is a stand-in
			return
		}
		check := func(variable string, value ast.Expr) {
			lit, ok := value.(*ast.BasicLit)
			if ok && namesSecret(variable) && literalSecret.MatchString(lit.Value) && strings.ContainsAny(lit.Value, "0123456789") {
				t.Errorf("%s:%d: %s is given a value in the source; read it through package settings", name, set.Position(lit.Pos()).Line, variable)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i := range min(len(n.Names), len(n.Values)) {
					check(n.Names[i].Name, n.Values[i])
				}
			case *ast.AssignStmt:
				for i := range min(len(n.Lhs), len(n.Rhs)) {
					check(last(n.Lhs[i]), n.Rhs[i])
				}
			case *ast.KeyValueExpr:
				check(last(n.Key), n.Value)
			}
			return true
		})
	})
}

// last is the name that an expression ends in.
func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.BasicLit:
		return strings.Trim(e.Value, "\"`")
	}
	return ""
}

var goSecret = regexp.MustCompile(`(?i)(token|secret|password|passphrase|credential|apikey|api_key|privatekey)s?$`)

func namesSecret(name string) bool { return goSecret.MatchString(name) }
