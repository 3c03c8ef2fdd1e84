package odoo

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/safehttp"
)

// xmlrpc makes a call of the oldest door (the XML-RPC specification of 1999,
// with the nil extension in requests): POST /xmlrpc/2/common or /object.
func (c *Client) xmlrpc(ctx context.Context, service, method string, args ...any) (jsontext.Value, error) {
	body, err := writeCall(method, args)
	if err != nil {
		return nil, err
	}
	response, err := c.post(ctx, "/xmlrpc/2/"+service, "text/xml", nil, body)
	if err != nil {
		return nil, err
	}
	return readXMLRPC(response)
}

// The fault codes of /xmlrpc/2.
const (
	faultWarning      = 2 // also a missing record and a validation
	faultAccessDenied = 3
	faultAccessError  = 4
)

func readXMLRPC(r *safehttp.Response) (jsontext.Value, error) {
	if !isType(r, "xml") || isType(r, "xhtml") {
		if err := notJSON(r); err != nil {
			return nil, err
		}
		return nil, &Error{Kind: NotAPI, Status: r.Status}
	}
	value, isFault, err := readResponse(r.Body)
	if err != nil {
		return nil, &Error{Kind: NotAPI, Status: r.Status}
	}
	if !isFault {
		return value, nil
	}
	var f struct {
		Code int    `json:"faultCode"`
		Text string `json:"faultString"`
	}
	if err := json.Unmarshal(value, &f); err != nil {
		return nil, &Error{Kind: NotAPI, Status: r.Status}
	}
	return nil, faultException(f.Code, f.Text).classify(r.Status)
}

// faultException gives a fault the class that this door does not name. An
// unforeseen exception comes as a traceback, whose last line is "class: words".
func faultException(code int, text string) exception {
	switch code {
	case faultAccessDenied:
		return exception{"odoo.exceptions.AccessDenied", text}
	case faultAccessError:
		return exception{"odoo.exceptions.AccessError", text}
	case faultWarning:
		if strings.HasPrefix(text, "Record does not exist") {
			return exception{"odoo.exceptions.MissingError", text}
		}
		return exception{"odoo.exceptions.UserError", text}
	}
	last := lastLine(text)
	class, words, ok := strings.Cut(last, ": ")
	if !ok || strings.ContainsAny(class, " '\"") {
		return exception{"", last}
	}
	if strings.HasPrefix(class, "psycopg2.") && databaseMissing.MatchString(text) {
		words = text[strings.LastIndex(text, class):]
	}
	return exception{class, words}
}

func writeCall(method string, args []any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("<?xml version='1.0'?>\n<methodCall><methodName>")
	b.WriteString(method)
	b.WriteString("</methodName><params>")
	for _, arg := range args {
		encoded, err := json.Marshal(arg)
		if err != nil {
			return nil, err
		}
		dec := json.NewDecoder(bytes.NewReader(encoded))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			return nil, err
		}
		b.WriteString("<param>")
		writeValue(&b, v)
		b.WriteString("</param>")
	}
	b.WriteString("</params></methodCall>")
	return b.Bytes(), nil
}

func writeValue(b *bytes.Buffer, v any) {
	b.WriteString("<value>")
	switch v := v.(type) {
	case nil:
		b.WriteString("<nil/>")
	case bool:
		fmt.Fprintf(b, "<boolean>%d</boolean>", map[bool]int{true: 1}[v])
	case json.Number:
		if _, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			fmt.Fprintf(b, "<int>%s</int>", v)
		} else {
			fmt.Fprintf(b, "<double>%s</double>", v)
		}
	case string:
		b.WriteString("<string>")
		_ = xml.EscapeText(b, []byte(v)) // a buffer never fails
		b.WriteString("</string>")
	case []any:
		b.WriteString("<array><data>")
		for _, item := range v {
			writeValue(b, item)
		}
		b.WriteString("</data></array>")
	case map[string]any:
		b.WriteString("<struct>")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b.WriteString("<member><name>")
			_ = xml.EscapeText(b, []byte(name))
			b.WriteString("</name>")
			writeValue(b, v[name])
			b.WriteString("</member>")
		}
		b.WriteString("</struct>")
	}
	b.WriteString("</value>")
}

var errXML = errors.New("not an XML-RPC response")

// readResponse gives the value of a response, or of its fault, as JSON.
func readResponse(body []byte) (value jsontext.Value, isFault bool, err error) {
	dec := xml.NewDecoder(bytes.NewReader(body))
	inResponse := false
	for {
		token, err := dec.Token()
		if err != nil {
			return nil, false, errXML
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch name := start.Name.Local; {
		case name == "methodResponse":
			inResponse = true
		case !inResponse:
			return nil, false, errXML
		case name == "fault":
			isFault = true
		case name == "value":
			v, err := readValue(dec, 0)
			if err != nil {
				return nil, false, err
			}
			encoded, err := json.Marshal(v)
			return encoded, isFault, err
		}
	}
}

// maxDepth bounds nesting in an answer.
const maxDepth = 64

// readValue reads up to the end of a value whose start was read.
func readValue(dec *xml.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errXML
	}
	var text strings.Builder
	var value any
	typed := false
	for {
		token, err := dec.Token()
		if err != nil {
			return nil, errXML
		}
		switch t := token.(type) {
		case xml.CharData:
			text.Write(t)
		case xml.StartElement:
			typed = true
			if value, err = readTyped(dec, t.Name.Local, depth); err != nil {
				return nil, err
			}
		case xml.EndElement:
			if !typed {
				return text.String(), nil // a bare value is a string
			}
			return value, nil
		}
	}
}

func readTyped(dec *xml.Decoder, kind string, depth int) (any, error) {
	switch kind {
	case "array":
		return readArray(dec, depth)
	case "struct":
		return readStruct(dec, depth)
	}
	text, err := readText(dec)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "int", "i4", "i8", "double":
		text = strings.TrimSpace(text)
		if !jsontext.Value(text).IsValid() {
			f, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, errXML
			}
			return f, nil
		}
		return json.Number(text), nil
	case "boolean":
		return strings.TrimSpace(text) == "1", nil
	case "nil":
		return nil, nil
	}
	return text, nil // string, dateTime.iso8601, base64
}

func readText(dec *xml.Decoder) (string, error) {
	var text strings.Builder
	for {
		token, err := dec.Token()
		switch t := token.(type) {
		case nil:
			return "", errors.Join(errXML, err)
		case xml.CharData:
			text.Write(t)
		case xml.EndElement:
			return text.String(), nil
		case xml.StartElement:
			return "", errXML
		}
	}
}

func readArray(dec *xml.Decoder, depth int) (any, error) {
	list := []any{}
	for {
		token, err := dec.Token()
		if err != nil {
			return nil, errXML
		}
		switch t := token.(type) {
		case xml.StartElement:
			if t.Name.Local != "value" {
				continue // data
			}
			v, err := readValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		case xml.EndElement:
			if t.Name.Local == "array" {
				return list, nil
			}
		}
	}
}

func readStruct(dec *xml.Decoder, depth int) (any, error) {
	members := map[string]any{}
	name := ""
	for {
		token, err := dec.Token()
		if err == io.EOF || err != nil {
			return nil, errXML
		}
		switch t := token.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "name":
				if name, err = readText(dec); err != nil {
					return nil, err
				}
			case "value":
				if members[name], err = readValue(dec, depth+1); err != nil {
					return nil, err
				}
			}
		case xml.EndElement:
			if t.Name.Local == "struct" {
				return members, nil
			}
		}
	}
}
