package checks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pawgate/internal/tool"
)

// The rules below are the security checklist of the guide in README.md, as far
// as a program can check it. Each exception stands here with its reason, and
// one that no longer applies fails.

// TestRateClassAndEdition: the gate limits a tool by its class and hides it by
// its edition, so both must be ones it knows, and fit what the tool does.
func TestRateClassAndEdition(t *testing.T) {
	changing := []tool.Class{tool.ClassWrite, tool.ClassSend, tool.ClassExecute, tool.ClassExpensive}
	reading := []tool.Class{tool.ClassRead, tool.ClassExpensive}
	editions := []tool.Edition{tool.Community, tool.Pro, tool.Enterprise}
	for _, h := range handlers(t) {
		fitting := changing
		if h.Hints.ReadOnly {
			fitting = reading
		}
		if !slices.Contains(fitting, h.Class) {
			t.Errorf("%s has the rate class %q; one that fits its verb is %q (tool.Rate sets it)", h.Name, h.Class, fitting)
		}
		if !slices.Contains(editions, h.Edition) {
			t.Errorf("%s has the edition %q; there are %q (tool.In sets it)", h.Name, h.Edition, editions)
		}
	}
}

// secretWord is a word that a secret's name ends in or holds.
var secretWord = regexp.MustCompile(`(^|_)(token|secret|password|passwd|passphrase|credential|credentials|authorization|apikey)(_|$)|(^|_)key$`)

// harmless are arguments whose names look like a secret's and are none.
var harmless = map[string]string{
	"decision_resolve.chosen_key":  "the letter of an option",
	"spawn_agent.session_key":      "a name that tasks share",
	"send_message.idempotency_key": "the caller's own name for one message",
	"send_photo.idempotency_key":   "likewise",
	"send_sticker.idempotency_key": "likewise",
	"channel_config.key":           "the name of a setting",
}

// TestSecretArguments: a secret argument is marked, so that no log line and no
// audit row ever holds it. Only arguments at the root can be marked.
func TestSecretArguments(t *testing.T) {
	used := map[string]bool{}
	for _, h := range handlers(t) {
		eachArgument(h.Args, "", func(name string, _ *tool.Schema) {
			last := name[strings.LastIndexByte(name, '.')+1:]
			if !secretWord.MatchString(last) || slices.Contains(h.Secrets, name) {
				return
			}
			if _, ok := harmless[h.Name+"."+name]; ok {
				used[h.Name+"."+name] = true
				return
			}
			t.Errorf("%s: the argument %s is named like a secret; mark it with tool.Secret(%q) at the root of the arguments, or say in harmless why it is none", h.Name, name, last)
		})
	}
	noneLeft(t, "harmless", harmless, used)
}

// eachArgument visits the arguments, those in objects and arrays too, named
// from the root: "filter.key".
func eachArgument(s *tool.Schema, path string, visit func(name string, s *tool.Schema)) {
	for _, p := range s.Properties {
		name := strings.TrimPrefix(path+"."+p.Name, ".")
		visit(name, p.Schema)
		eachArgument(p.Schema, name, visit)
	}
	for _, inner := range []*tool.Schema{s.Items, s.Values} {
		if inner != nil {
			eachArgument(inner, path, visit)
		}
	}
}

func noneLeft(t *testing.T, list string, exceptions map[string]string, used map[string]bool) {
	t.Helper()
	for name := range exceptions {
		if !used[name] {
			t.Errorf("%s: %s is no exception any more; remove it", list, name)
		}
	}
}

// urlArgument finds arguments that hold addresses, by name and by description.
var urlArgument = regexp.MustCompile(`(?i)(^|[_.])(url|urls|uri|uris|link|href|endpoint|webhook|callback)([_.]|$)`)

// notFetched are arguments that hold an address which nothing follows.
var notFetched = map[string]string{}

// TestURLArguments: whoever takes an address from a caller fetches it through
// safehttp, or a page could make this installation call its own network.
func TestURLArguments(t *testing.T) {
	outside, used := outsidePackages(t), map[string]bool{}
	for _, h := range handlers(t) {
		eachArgument(h.Args, "", func(name string, s *tool.Schema) {
			if !urlArgument.MatchString(name) && !regexp.MustCompile(`\bURLs?\b`).MatchString(s.Description) || h.leaves(outside) {
				return
			}
			if _, ok := notFetched[h.Name+"."+name]; ok {
				used[h.Name+"."+name] = true
				return
			}
			t.Errorf("%s: the argument %s is an address, but its handler %s in %s/%s uses neither safehttp nor a client built on it; if nothing follows the address, say so in notFetched",
				h.Name, name, h.handler, h.category.name, h.file)
		})
	}
	noneLeft(t, "notFetched", notFetched, used)
}

// TestOpenWorld: clients ask their user before a tool reaches out, if they are
// told that it does.
func TestOpenWorld(t *testing.T) {
	outside := outsidePackages(t)
	for _, h := range handlers(t) {
		if h.leaves(outside) && !h.Hints.OpenWorld {
			t.Errorf("%s reaches outside this installation; its row needs tool.OpenWorld", h.Name)
		}
	}
}

// TestEveryToolIsTestedBothWays: some test gets an answer of the tool, and
// some test has it refuse, if it refuses anything by code of its own. That a
// schema refuses what it does not allow is tested once, in package tool.
func TestEveryToolIsTestedBothWays(t *testing.T) {
	calls := map[string]map[string]bool{} // tool → functions of tooltest called with its name
	for _, c := range tools() {
		paths, _ := filepath.Glob(filepath.Join(root, "internal/category", c.Name, "*_test.go"))
		for _, path := range paths {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, listed := range c.Tools {
				collect(calls, file, listed.Name)
			}
		}
	}
	for _, h := range handlers(t) {
		called := calls[h.Name]
		if !called["OK"] && !called["Call"] {
			t.Errorf("%s: no test gets its answer (tooltest.OK)", h.Name)
		}
		if h.refuses() && !called["Invalid"] && !called["Fault"] {
			t.Errorf("%s: it refuses arguments beyond its schema, and no test has it do so (tooltest.Invalid, tooltest.Fault)", h.Name)
		}
	}
}

// collect notes the calls tooltest.F(…, "name", …) in a file.
func collect(calls map[string]map[string]bool, file *ast.File, name string) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !slices.ContainsFunc(call.Args, func(a ast.Expr) bool { return text(a, name) }) {
			return true
		}
		fun := call.Fun
		if index, ok := fun.(*ast.IndexExpr); ok {
			fun = index.X
		}
		if s, ok := fun.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "tooltest" {
				if calls[name] == nil {
					calls[name] = map[string]bool{}
				}
				calls[name][s.Sel.Name] = true
			}
		}
		return true
	})
}

// TestSecretWords: which names the rules take for a secret's.
func TestSecretWords(t *testing.T) {
	for name, want := range map[string]bool{
		"token": true, "bot_token": true, "api_key": true, "key": true, "password": true, "client_secret": true, "token_url": true,
		"max_tokens": false, "monkey": false, "key_id": false, "keyword": false, "secretary": false, "tokens": false, "cursor": false,
	} {
		if got := secretWord.MatchString(name); got != want {
			t.Errorf("argument %s is a secret: %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]bool{
		"token": true, "botToken": true, "apiKey": true, "Password": true, "X-Api-Key": false, "primaryKey": false, "tokenType": false,
	} {
		if got := namesSecret(name); got != want {
			t.Errorf("variable %s is a secret: %v, want %v", name, got, want)
		}
	}
}
