package odoo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"pawgate/internal/safehttp"
)

// firstJSON2 is the first version with the JSON-2 door.
const firstJSON2 = 19

// Open finds the server's version, the door that fits the login, and the
// user. The error is an *Error, or one of package safehttp.
func Open(ctx context.Context, http *safehttp.Client, login Login) (*Client, error) {
	c := New(http, login, Server{})
	door, err := c.detect(ctx)
	if err != nil {
		return nil, err
	}
	if c.server.Major >= firstJSON2 && login.APIKey {
		return c, c.enterJSON2(ctx)
	}
	return c, c.enterRPC(ctx, door)
}

// detect asks for the version at each door in turn and says which answered.
// Odoo 19 tells it at /web/version; before, the RPC doors do.
func (c *Client) detect(ctx context.Context) (Door, error) {
	response, err := c.http.Do(ctx, safehttp.Request{Method: http.MethodGet, URL: c.login.URL + "/web/version"})
	if err != nil {
		return "", err
	}
	var web struct {
		Version string `json:"version"`
	}
	if response.Status == http.StatusOK && isType(response, "json") && json.Unmarshal(response.Body, &web) == nil && c.setVersion(web.Version) {
		return "", nil // RPC is tried when it is needed
	}
	for _, door := range []Door{JSONRPC, XMLRPC} {
		version, err := c.askVersion(ctx, door)
		if err == nil && c.setVersion(version) {
			return door, nil
		}
		if err != nil && KindOf(err) != NotAPI {
			return "", err
		}
	}
	return "", &Error{Kind: NotAPI, Status: response.Status}
}

func (c *Client) askVersion(ctx context.Context, door Door) (string, error) {
	ask := c.jsonrpc
	if door == XMLRPC {
		ask = c.xmlrpc
	}
	answer, err := ask(ctx, "common", "version")
	if err != nil {
		return "", err
	}
	var v struct {
		Version string `json:"server_version"`
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		return "", &Error{Kind: NotAPI}
	}
	return v.Version, nil
}

// setVersion reads "18.0+e-20241005", "saas~18.2" and the like.
func (c *Client) setVersion(version string) bool {
	number := strings.TrimLeft(version, "saas~-")
	end := strings.IndexFunc(number, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(number)
	}
	major, err := strconv.Atoi(number[:end])
	if err != nil {
		return false
	}
	c.server.Version, c.server.Major = version, major
	return true
}

// enterJSON2 asks who the key is. A key decides the user by itself, so one
// that is another user's than the login says is refused: the two were mixed.
func (c *Client) enterJSON2(ctx context.Context) error {
	c.server.Door = JSON2
	if err := c.whoami(ctx); err != nil {
		return err
	}
	answer, err := c.Call(ctx, Call{Model: "res.users", Method: "search_read", Reads: true, Args: []Arg{
		{"domain", []any{[]any{"login", "=", c.login.User}}}}, Options: map[string]any{"fields": []string{"login"}, "limit": 1}})
	if err != nil {
		return err
	}
	var users []struct {
		ID int64 `json:"id"`
	}
	if err := json.Unmarshal(answer, &users); err != nil {
		return &Error{Kind: NotAPI}
	}
	if len(users) == 0 || c.server.UID != 0 && users[0].ID != c.server.UID {
		return &Error{Kind: WrongLogin, Message: "the API key belongs to another user than the login"}
	}
	c.server.UID = users[0].ID
	return nil
}

// whoami reads the user's own context.
func (c *Client) whoami(ctx context.Context) error {
	answer, err := c.Call(ctx, Call{Model: "res.users", Method: "context_get", Reads: true})
	if err != nil {
		return err
	}
	var own struct {
		UID  int64 `json:"uid"`
		Lang any   `json:"lang"` // false where there is none
		Zone any   `json:"tz"`
	}
	if err := json.Unmarshal(answer, &own); err != nil {
		return &Error{Kind: NotAPI}
	}
	if c.server.UID == 0 {
		c.server.UID = own.UID
	}
	c.server.Lang, _ = own.Lang.(string)
	c.server.TimeZone, _ = own.Zone.(string)
	return nil
}

// enterRPC logs in at an old door. A wrong login is answered with false, not
// with a fault.
func (c *Client) enterRPC(ctx context.Context, door Door) error {
	doors := []Door{door}
	if door == "" {
		doors = []Door{JSONRPC, XMLRPC}
	}
	for _, door := range doors {
		c.server.Door = door
		ask := c.jsonrpc
		if door == XMLRPC {
			ask = c.xmlrpc
		}
		answer, err := ask(ctx, "common", "authenticate", c.login.Database, c.login.User, c.login.Secret, map[string]any{})
		if KindOf(err) == NotAPI {
			continue
		}
		if err != nil {
			return err
		}
		if json.Unmarshal(answer, &c.server.UID) != nil || c.server.UID <= 0 {
			return &Error{Kind: WrongLogin}
		}
		return c.whoami(ctx)
	}
	return ErrKeyNeeded
}

// ErrKeyNeeded is a server without the old doors and a login by password: the
// JSON-2 door takes API keys only.
var ErrKeyNeeded = errors.New("odoo: this server takes API keys only")
