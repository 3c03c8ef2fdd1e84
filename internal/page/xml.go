package page

import (
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// ParseXML reads decoded XML, such as a feed or a site map, into the same kind
// of document, so that selectors work on it. Names are lower case; a prefixed
// name keeps its prefix (dc:creator, written dc\:creator in a selector).
func ParseXML(text string, base *url.URL) (*Document, error) {
	root := &html.Node{Type: html.DocumentNode}
	dec := xml.NewDecoder(strings.NewReader(text))
	dec.Strict = false
	dec.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // decoded already
	at, depth, count := root, 0, 0
	for {
		token, err := dec.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.New("the XML is damaged")
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth++; depth > 512 {
				return nil, ErrTooDeep
			}
			count++
			child := &html.Node{Type: html.ElementNode, Data: xmlName(token.Name)}
			for _, a := range token.Attr {
				child.Attr = append(child.Attr, html.Attribute{Key: xmlName(a.Name), Val: visible(a.Value)})
			}
			at.AppendChild(child)
			at = child
		case xml.EndElement:
			if at.Parent != nil {
				at = at.Parent
				depth--
			}
		case xml.CharData:
			at.AppendChild(&html.Node{Type: html.TextNode, Data: visible(string(token))})
		}
	}
	if count == 0 {
		return nil, errors.New("there is no XML in it")
	}
	return &Document{root: root, base: base, elements: count}, nil
}

func xmlName(n xml.Name) string {
	if n.Space != "" {
		return strings.ToLower(n.Space + ":" + n.Local)
	}
	return strings.ToLower(n.Local)
}
