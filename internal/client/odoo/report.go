package odoo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"pawgate/internal/safehttp"
)

// ErrNoSession is a login that the web client's door does not take: an API
// key, or a user with a second factor. Rendering a report over RPC is private
// since Odoo 14, and the one public route, /report/pdf, needs a session.
var ErrNoSession = errors.New("odoo: this login cannot open a web session")

// ReportLink is where a person with a session of their own gets a report.
func (c *Client) ReportLink(report string, record int64) string {
	return fmt.Sprintf("%s/report/pdf/%s/%d", c.login.URL, url.PathEscape(report), record)
}

// ReportPDF renders a report through the web client's route, in a session that
// is opened for this one document and closed after it.
func (c *Client) ReportPDF(ctx context.Context, report string, record int64) ([]byte, error) {
	if c.login.APIKey {
		return nil, ErrNoSession
	}
	cookie, err := c.openSession(ctx)
	if err != nil {
		return nil, err
	}
	defer c.closeSession(ctx, cookie)
	response, err := c.http.Do(ctx, safehttp.Request{URL: c.ReportLink(report, record), Header: http.Header{"Cookie": {cookie}}, Whole: true})
	if err != nil {
		return nil, err
	}
	switch {
	case response.Status == http.StatusOK && bytes.HasPrefix(response.Body, []byte("%PDF-")):
		return response.Body, nil
	case response.Status == http.StatusNotFound:
		return nil, &Error{Kind: Missing, Status: response.Status}
	case response.Status == http.StatusForbidden:
		return nil, &Error{Kind: Access, Status: response.Status}
	}
	// Odoo answers a failed report with a page that holds the fault as JSON,
	// escaped; its words are not worth the risk of showing the traceback.
	return nil, &Error{Kind: Broken, Status: response.Status}
}

func (c *Client) openSession(ctx context.Context) (string, error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "call", "params": map[string]any{
		"db": c.login.Database, "login": c.login.User, "password": c.login.Secret}})
	if err != nil {
		return "", err
	}
	response, err := c.post(ctx, "/web/session/authenticate", "application/json", nil, body)
	if err != nil {
		return "", err
	}
	answer, err := readJSONRPC(response)
	if err != nil {
		return "", err
	}
	var session struct {
		UID int64 `json:"uid"` // null while a second factor is missing
	}
	if json.Unmarshal(answer, &session) != nil || session.UID == 0 {
		return "", ErrNoSession
	}
	for _, line := range response.Header.Values("Set-Cookie") {
		if pair, _, _ := strings.Cut(line, ";"); strings.HasPrefix(pair, "session_id=") {
			return pair, nil
		}
	}
	return "", ErrNoSession
}

// closeSession is best effort: a session that is left over ends by itself.
func (c *Client) closeSession(ctx context.Context, cookie string) {
	_, _ = c.post(ctx, "/web/session/destroy", "application/json", http.Header{"Cookie": {cookie}}, []byte(`{"jsonrpc":"2.0","method":"call","params":{}}`))
}
