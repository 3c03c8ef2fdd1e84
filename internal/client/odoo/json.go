package odoo

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/safehttp"
)

// jsonrpc makes a call of the old JSON door: POST /jsonrpc, faults with
// status 200, and no member result at all where the method gives None.
func (c *Client) jsonrpc(ctx context.Context, service, method string, args ...any) (jsontext.Value, error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "call", "id": 1,
		"params": map[string]any{"service": service, "method": method, "args": args}})
	if err != nil {
		return nil, err
	}
	response, err := c.post(ctx, "/jsonrpc", "application/json", nil, body)
	if err != nil {
		return nil, err
	}
	return readJSONRPC(response)
}

func readJSONRPC(r *safehttp.Response) (jsontext.Value, error) {
	if err := notJSON(r); err != nil {
		return nil, err
	}
	var answer struct {
		Result jsontext.Value `json:"result"`
		Error  *struct {
			Message string    `json:"message"`
			Data    exception `json:"data"`
		} `json:"error"`
	}
	if err := json.Unmarshal(r.Body, &answer); err != nil {
		return nil, &Error{Kind: NotAPI, Status: r.Status}
	}
	if answer.Error != nil {
		if answer.Error.Data.Message == "" {
			answer.Error.Data.Message = answer.Error.Message
		}
		return nil, answer.Error.Data.classify(r.Status)
	}
	if len(answer.Result) == 0 {
		return jsontext.Value("null"), nil
	}
	return answer.Result, nil
}

// json2 makes a call of the door of Odoo 19: POST /json/2/<model>/<method>
// with named arguments, a bearer key, and statuses that mean something.
func (c *Client) json2(ctx context.Context, call Call) (jsontext.Value, error) {
	named := map[string]any{}
	for _, a := range call.Args {
		named[a.Name] = a.Value
	}
	for name, value := range call.Options {
		named[name] = value
	}
	if call.IDs != nil {
		named["ids"] = call.IDs
	}
	if len(call.Context) > 0 {
		named["context"] = call.Context
	}
	body, err := json.Marshal(named)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Authorization": {"bearer " + c.login.Secret}, "X-Odoo-Database": {c.login.Database}}
	path := "/json/2/" + url.PathEscape(call.Model) + "/" + url.PathEscape(call.Method)
	response, err := c.post(ctx, path, "application/json; charset=utf-8", header, body)
	if err != nil {
		return nil, err
	}
	return readJSON2(response)
}

func readJSON2(r *safehttp.Response) (jsontext.Value, error) {
	if err := notJSON(r); err != nil {
		return nil, err
	}
	if r.Status == http.StatusOK {
		value := jsontext.Value(bytes.TrimSpace(r.Body))
		if !value.IsValid() {
			return nil, &Error{Kind: NotAPI, Status: r.Status}
		}
		return value, nil
	}
	var e exception
	if err := json.Unmarshal(r.Body, &e); err != nil {
		return nil, &Error{Kind: NotAPI, Status: r.Status}
	}
	return nil, e.classify(r.Status)
}

// notJSON judges an answer that is not JSON: a page of Odoo's web client, of a
// proxy, or of something that is no Odoo.
func notJSON(r *safehttp.Response) error {
	if isType(r, "json") {
		return nil
	}
	text := string(r.Body)
	switch {
	case r.Status == http.StatusNotFound && strings.Contains(text, "No database is selected"):
		return &Error{Kind: WrongDatabase, Status: r.Status}
	case r.Status == http.StatusTooManyRequests:
		return &Error{Kind: Busy, Status: r.Status}
	case r.Status == http.StatusBadGateway, r.Status == http.StatusServiceUnavailable, r.Status == http.StatusGatewayTimeout:
		return &Error{Kind: Away, Status: r.Status}
	}
	return &Error{Kind: NotAPI, Status: r.Status}
}

func isType(r *safehttp.Response, word string) bool {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.Contains(media, word)
}
