package odootest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strconv"
	"strings"
)

func (s *Server) jsonrpc(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var request struct {
		ID     any `json:"id"`
		Params struct {
			Service, Method string
			Args            []any
		}
	}
	if json.Unmarshal(body, &request) != nil {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "Invalid JSON data")
		return
	}
	var result any
	var f *fault
	answered := false
	if request.Params.Service == "common" {
		result, f = s.common(request.Params.Method, request.Params.Args)
	} else {
		result, f, answered = s.object(w, "jsonrpc", request.Params.Args)
	}
	if answered {
		return
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": request.ID}
	switch {
	case f != nil:
		code := 200
		if s.Major >= 19 {
			code = 0
		}
		answer["error"] = map[string]any{"code": code, "message": "Odoo Server Error", "data": f.data()}
	case result != nil: // None: there is no member result
		answer["result"] = result
	}
	writeJSON(w, http.StatusOK, answer)
}

func (f *fault) data() map[string]any {
	return map[string]any{"name": f.class, "debug": Traceback + "\n" + f.class + ": " + f.message, "message": f.message, "arguments": []any{f.message}, "context": map[string]any{}}
}

// statuses are those of JSON-2.
var statuses = map[string]int{"AccessDenied": 401, "Unauthorized": 401, "AccessError": 403, "MissingError": 404, "NotFound": 404, "UserError": 422, "ValidationError": 422}

func (s *Server) json2(w http.ResponseWriter, r *http.Request) {
	answerFault := func(f *fault) {
		status := statuses[f.class[strings.LastIndexByte(f.class, '.')+1:]]
		if status == 0 {
			status = http.StatusInternalServerError
		}
		writeJSON(w, status, f.data())
	}
	if r.Header.Get("X-Odoo-Database") != s.Database {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<!DOCTYPE html>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n<p>No database is selected and the requested URL was not found in the server-wide controllers.</p>")
		return
	}
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "bearer ")
	user, known := s.userBy(func(u User) bool { return ok && u.Key != "" && u.Key == key })
	if !known {
		answerFault(fail("werkzeug.exceptions.Unauthorized", "Invalid apikey"))
		return
	}
	args := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		answerFault(fail("werkzeug.exceptions.BadRequest", "could not parse the body as json: %v", err))
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/json/2/"), "/")
	c := Call{Door: "json2", UID: user.ID, Model: parts[0], Method: parts[1], IDs: toInts(args["ids"]), Args: args}
	c.Context, _ = args["context"].(map[string]any)
	delete(args, "ids")
	delete(args, "context")
	result, f, answered := s.dispatch(w, user, c)
	switch {
	case answered:
	case f != nil:
		answerFault(f)
	default:
		writeJSON(w, http.StatusOK, result)
	}
}

func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Params struct{ DB, Login, Password string }
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	user, ok := s.userBy(func(u User) bool {
		return u.Login == request.Params.Login && u.Password == request.Params.Password && request.Params.DB == s.Database
	})
	if !ok { // an API key too: it is no password of the web client
		writeJSON(w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "error": map[string]any{"code": 200, "message": "Odoo Server Error",
			"data": fail("odoo.exceptions.AccessDenied", "Access Denied").data()}})
		return
	}
	http.SetCookie(w, &http.Cookie{Name: "session_id", Value: "s" + user.Login, Path: "/", HttpOnly: true})
	uid := any(user.ID)
	if user.SecondFactor {
		uid = nil
	}
	writeJSON(w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "result": map[string]any{"uid": uid}})
}

func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie("session_id"); err != nil || cookie.Value == "" {
		http.Redirect(w, r, "/web/login", http.StatusSeeOther)
		return
	}
	w.Header().Set("Content-Type", "application/pdf")
	_, _ = io.WriteString(w, "%PDF-1.4\n"+r.URL.Path+"\n%%EOF\n")
}

// value is an XML-RPC value as it is read.
type value struct {
	Text   string    `xml:",chardata"`
	Int    *string   `xml:"int"`
	String *string   `xml:"string"`
	Double *string   `xml:"double"`
	Bool   *string   `xml:"boolean"`
	Nil    *struct{} `xml:"nil"`
	Array  *struct {
		Values []value `xml:"data>value"`
	} `xml:"array"`
	Struct *struct {
		Members []struct {
			Name  string `xml:"name"`
			Value value  `xml:"value"`
		} `xml:"member"`
	} `xml:"struct"`
}

func (v value) plain() any {
	switch {
	case v.Int != nil:
		n, _ := strconv.ParseFloat(*v.Int, 64)
		return n
	case v.Double != nil:
		n, _ := strconv.ParseFloat(*v.Double, 64)
		return n
	case v.Bool != nil:
		return *v.Bool == "1"
	case v.Nil != nil:
		return nil
	case v.String != nil:
		return *v.String
	case v.Array != nil:
		list := []any{}
		for _, item := range v.Array.Values {
			list = append(list, item.plain())
		}
		return list
	case v.Struct != nil:
		members := map[string]any{}
		for _, m := range v.Struct.Members {
			members[m.Name] = m.Value.plain()
		}
		return members
	}
	return v.Text
}

func (s *Server) xmlrpc(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Method string  `xml:"methodName"`
		Params []value `xml:"params>param>value"`
	}
	if err := xml.NewDecoder(r.Body).Decode(&request); err != nil {
		page(w, http.StatusBadRequest, "400 Bad Request")
		return
	}
	args := []any{}
	for _, p := range request.Params {
		args = append(args, p.plain())
	}
	var result any
	var f *fault
	answered := false
	if strings.HasSuffix(r.URL.Path, "/common") {
		result, f = s.common(request.Method, args)
	} else {
		result, f, answered = s.object(w, "xmlrpc", args)
	}
	if answered {
		return
	}
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	if f == nil && result == nil { // the method ran; only now its None cannot be written
		f = fail("TypeError", "cannot marshal None unless allow_none is enabled")
	}
	if f != nil {
		code, text := f.xml()
		fmt.Fprintf(w, "<?xml version=\"1.0\"?>\n<methodResponse>\n<fault>\n%s\n</fault>\n</methodResponse>\n", xmlValue(map[string]any{"faultCode": code, "faultString": text}))
		return
	}
	encoded, _ := json.Marshal(result) // only what is JSON is stored
	var plain any
	_ = json.Unmarshal(encoded, &plain)
	fmt.Fprintf(w, "<?xml version=\"1.0\"?>\n<methodResponse>\n<params>\n<param>\n%s\n</param>\n</params>\n</methodResponse>\n", xmlValue(plain))
}

// xml is the fault as /xmlrpc/2 writes it: a traceback where the class is not
// one of those foreseen.
func (f *fault) xml() (int, string) {
	switch f.class[strings.LastIndexByte(f.class, '.')+1:] {
	case "AccessDenied":
		return 3, f.message
	case "AccessError":
		return 4, f.message
	case "UserError", "MissingError", "ValidationError", "RedirectWarning":
		return 2, f.message
	}
	return 1, Traceback + "\n" + strings.TrimPrefix(f.class, "builtins.") + ": " + f.message + "\n"
}

func xmlValue(v any) string {
	var b strings.Builder
	b.WriteString("<value>")
	switch v := v.(type) {
	case nil:
		b.WriteString("<boolean>0</boolean>")
	case bool:
		fmt.Fprintf(&b, "<boolean>%d</boolean>", map[bool]int{true: 1}[v])
	case int:
		fmt.Fprintf(&b, "<int>%d</int>", v)
	case float64:
		if v == float64(int64(v)) {
			fmt.Fprintf(&b, "<int>%d</int>", int64(v))
		} else {
			fmt.Fprintf(&b, "<double>%v</double>", v)
		}
	case string:
		b.WriteString("<string>")
		_ = xml.EscapeText(&b, []byte(v))
		b.WriteString("</string>")
	case []any:
		b.WriteString("<array><data>\n")
		for _, item := range v {
			b.WriteString(xmlValue(item) + "\n")
		}
		b.WriteString("</data></array>")
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		sort.Strings(names)
		b.WriteString("<struct>\n")
		for _, name := range names {
			fmt.Fprintf(&b, "<member>\n<name>%s</name>\n%s\n</member>\n", name, xmlValue(v[name]))
		}
		b.WriteString("</struct>")
	}
	b.WriteString("</value>")
	return b.String()
}
