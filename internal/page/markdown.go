package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
)

// Markdown writes a tree as CommonMark with GFM tables. Links and images keep
// their absolute addresses; images without a description are left out, for
// they say nothing to a model.
func Markdown(n *html.Node) (string, error) {
	root := &html.Node{Type: html.ElementNode, Data: "div"}
	root.AppendChild(clone(n))
	tidy(root)
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithHeadingStyle(commonmark.HeadingStyleATX)),
		strikethrough.NewStrikethroughPlugin(),
		table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal), table.WithHeaderPromotion(true),
			table.WithNewlineBehavior(table.NewlineBehaviorPreserve), table.WithSkipEmptyRows(true)),
	))
	b, err := c.ConvertNode(root)
	if err != nil {
		return "", fmt.Errorf("write markdown: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// tidy removes what would be noise in markdown.
func tidy(root *html.Node) {
	for _, n := range elements(root, func(*html.Node) bool { return true }) {
		switch n.Data {
		case "a":
			tidyLink(n)
		case "img":
			if strings.TrimSpace(attr(n, "alt")) == "" || attr(n, "src") == "" {
				detach(n)
			}
		case "svg", "button", "input", "select", "textarea":
			if !within(n, func(n *html.Node) bool { return n.Data == "pre" }) {
				detach(n)
			}
		case "dt": // CommonMark has no definition lists
			n.Data, n.DataAtom = "p", 0
		case "dd":
			n.Data, n.DataAtom = "div", 0
		}
	}
}

// permalinks are the texts of links from a heading to itself.
var permalinks = []string{"", "¶", "#", "§", "🔗", "\u200b"}

func tidyLink(n *html.Node) {
	text := strings.TrimSpace(textOf(n))
	image := first(n, "img") != nil
	switch {
	case slices.Contains(permalinks, text) && !image:
		detach(n)
	case attr(n, "href") == "" || strings.HasPrefix(attr(n, "href"), "#"): // leads nowhere outside the page
		unwrap(n)
	}
}

// unwrap replaces an element by its children.
func unwrap(n *html.Node) {
	if n.Parent == nil {
		return
	}
	for c := n.FirstChild; c != nil; c = n.FirstChild {
		n.RemoveChild(c)
		n.Parent.InsertBefore(c, n)
	}
	detach(n)
}
