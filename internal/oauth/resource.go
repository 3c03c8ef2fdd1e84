package oauth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// wellKnown is where clients look for the metadata (RFC 9728 §3).
const wellKnown = "/.well-known/oauth-protected-resource"

// Resource tells clients where to get a token for this server. It is made of
// configuration alone.
type Resource struct {
	document []byte
	url      string   // of the metadata, for WWW-Authenticate
	paths    []string // at which the metadata is served
	scope    string
}

// metadata is RFC 9728 §2.
type metadata struct {
	Resource      string   `json:"resource"`
	Servers       []string `json:"authorization_servers"`
	Scopes        []string `json:"scopes_supported,omitempty"`
	BearerMethods []string `json:"bearer_methods_supported"`
	Name          string   `json:"resource_name"`
}

// NewResource is the resource that the configuration describes. Without an
// issuer it serves no metadata and its challenge names none.
func NewResource(cfg Config) (*Resource, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if !cfg.Enabled() {
		return &Resource{}, nil
	}
	document, err := json.Marshal(metadata{
		Resource: cfg.Audience, Servers: []string{cfg.Issuer}, BearerMethods: []string{"header"}, Name: "pawgate",
		Scopes: slices.DeleteFunc(slices.Compact(append([]string{cfg.Scope}, cfg.Scopes...)), func(s string) bool { return s == "" }),
	})
	if err != nil {
		return nil, fmt.Errorf("encode resource metadata: %w", err)
	}
	origin, path := splitURL(cfg.Audience)
	cut := max(strings.LastIndexByte(path, '/'), 0)
	stage, endpoint := path[:cut], path[cut:]
	r := &Resource{document: document, scope: cfg.Scope, url: origin + stage + wellKnown + endpoint}
	// The two places of RFC 9728 §3.1, and the same below a stage: API Gateway
	// sends nothing outside /{stage}/ here, and cuts the stage off or not.
	r.paths = []string{wellKnown, wellKnown + endpoint, wellKnown + path, stage + wellKnown, stage + wellKnown + endpoint}
	return r, nil
}

// Serves reports whether a path is one of the metadata's. They need no
// authentication and no Origin check: a browser's client reads them first.
func (r *Resource) Serves(path string) bool {
	return slices.Contains(r.paths, strings.TrimSuffix(path, "/"))
}

// MetadataURL is where the metadata is; empty without an issuer.
func (r *Resource) MetadataURL() string { return r.url }

// ServeHTTP answers with the metadata, whatever the path: the routes are
// Serves'. Without an issuer it is 404, in JSON, on which clients go on without
// OAuth.
func (r *Resource) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	switch {
	case r.document == nil:
		w.WriteHeader(http.StatusNotFound)
		write(w, req, []byte(`{"error":"not_found","error_description":"this server has no authorization server; use a key"}`))
	case req.Method == http.MethodOptions:
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, MCP-Protocol-Version")
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNoContent)
	case req.Method != http.MethodGet && req.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		w.WriteHeader(http.StatusMethodNotAllowed)
		write(w, req, []byte(`{"error":"method_not_allowed","error_description":"the metadata is read with GET"}`))
	default:
		write(w, req, r.document)
	}
}

// write leaves the body of a HEAD out. A client that went away is nobody's
// concern.
func write(w http.ResponseWriter, req *http.Request, body []byte) {
	if req.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// Challenge is the value of WWW-Authenticate for a refused request (RFC 6750
// §3, RFC 9728 §5.1). refused is nil when the request had no token at all,
// which is no error of the client: it learns where to get one.
func (r *Resource) Challenge(refused *Error) string {
	var b strings.Builder
	b.WriteString(`Bearer realm="pawgate"`)
	add := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, `, %s="%s"`, name, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value))
		}
	}
	if refused != nil && refused.Code != "" {
		add("error", refused.Code)
		add("error_description", refused.message)
	}
	add("scope", r.scope)
	add("resource_metadata", r.url)
	return b.String()
}
