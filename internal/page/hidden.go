package page

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// style is the declarations that decide whether an element is seen.
type style map[string]string

// styled are the properties that hides looks at.
var styled = []string{"display", "visibility", "content-visibility", "opacity", "font-size", "text-indent", "position", "left", "right",
	"top", "bottom", "clip", "clip-path", "width", "height", "max-width", "max-height", "overflow", "transform", "color", "background-color",
	"background", "margin-left", "margin-top", "line-height", "background-clip", "-webkit-background-clip"}

// hiddenClasses are the names that the common style sheets give to elements
// shown to nobody or to screen readers only. The sheets themselves are not
// fetched.
var hiddenClasses = []string{"sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text", "screen-reader-only", "screenreader-only",
	"u-hidden", "is-hidden", "d-none", "element-invisible", "hidden"}

// dropHidden removes elements that a reader does not see and counts their
// characters. A page may hide text from people and address it to a model.
func dropHidden(root *html.Node, sheets []rule) int {
	inline := cascade(root, sheets)
	hidden := elements(root, func(n *html.Node) bool {
		// Hiding all of the page hides nothing from its reader: it is how
		// pages wait for their scripts.
		return n.Data != "html" && n.Data != "body" && n.Data != "head" &&
			(hiddenByMarkup(n) || inline(n).hides())
	})
	chars := 0
	for _, n := range hidden {
		if n.Parent == nil || !attached(n, root) {
			continue // went with an element around it
		}
		chars += textLength(n)
		detach(n)
	}
	return chars
}

func attached(n, root *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if n == root {
			return true
		}
	}
	return false
}

func hiddenByMarkup(n *html.Node) bool {
	switch {
	case hasAttr(n, "hidden"), n.Data == "dialog" && !hasAttr(n, "open"),
		n.Data == "input" && strings.EqualFold(attr(n, "type"), "hidden"):
		return true
	}
	classes := strings.Fields(attr(n, "class"))
	shownAgain := func(c string) bool { // "hidden md:block", "d-none d-md-block"
		c = strings.ToLower(c)
		return strings.Contains(c, ":") || strings.HasPrefix(c, "d-") && c != "d-none" || strings.Contains(c, "focusable")
	}
	return slices.ContainsFunc(classes, func(c string) bool { return slices.Contains(hiddenClasses, strings.ToLower(c)) }) &&
		!slices.ContainsFunc(classes, shownAgain)
}

// hides reports whether an element with these declarations is not seen.
func (s style) hides() bool {
	switch {
	case len(s) == 0:
		return false
	case s["display"] == "none", s["visibility"] == "hidden", s["visibility"] == "collapse", s["content-visibility"] == "hidden":
		return true
	case s.below("opacity", 0.05), s.below("font-size", 2), s.below("line-height", 0.05) && s["overflow"] == "hidden":
		return true
	case s.distance("text-indent") >= 900:
		return true
	case s["position"] == "absolute" || s["position"] == "fixed":
		return s.offScreen() || s.clipped() || s.collapsed()
	}
	return s.collapsed() || s.shrunk() || s.camouflaged()
}

// offScreen: moved out of the window to where no scrolling leads.
func (s style) offScreen() bool {
	for _, side := range []string{"left", "top", "right", "bottom", "margin-left", "margin-top"} {
		if s.length(side) <= -900 {
			return true
		}
	}
	return s.shrunk()
}

func (s style) clipped() bool {
	clip := strings.NewReplacer(" ", "", ",", "", "px", "").Replace(s["clip"])
	path := strings.ReplaceAll(s["clip-path"], " ", "")
	return clip == "rect(0000)" || clip == "rect(1111)" || strings.HasPrefix(path, "inset(50%") ||
		strings.HasPrefix(path, "inset(100%") || strings.HasPrefix(path, "circle(0") || strings.HasPrefix(path, "polygon(00")
}

// collapsed: no room, and what does not fit is not shown.
func (s style) collapsed() bool {
	if s["overflow"] != "hidden" && s["overflow"] != "clip" {
		return false
	}
	for _, side := range []string{"width", "height", "max-width", "max-height"} {
		if s.below(side, 2) {
			return true
		}
	}
	return false
}

func (s style) shrunk() bool {
	t := strings.ReplaceAll(s["transform"], " ", "")
	return strings.Contains(t, "scale(0)") || strings.Contains(t, "scale(0,") || strings.Contains(t, "scalex(0)") ||
		strings.Contains(t, "scaley(0)") || strings.Contains(t, "(-999")
}

// camouflaged: transparent, or the colour of its own background.
func (s style) camouflaged() bool {
	color := colour(s["color"])
	background := colour(s["background-color"])
	if background == "" {
		background = colour(s["background"])
	}
	clippedToText := s["background-clip"] == "text" || s["-webkit-background-clip"] == "text" // a gradient shows through the letters
	return color == "transparent" && !clippedToText || color != "" && color == background
}

// colour brings the usual spellings of a colour to one form.
func colour(v string) string {
	v = strings.ReplaceAll(v, " ", "")
	switch v {
	case "white", "#fff", "#ffffff", "rgb(255,255,255)", "rgba(255,255,255,1)":
		return "#ffffff"
	case "black", "#000", "#000000", "rgb(0,0,0)", "rgba(0,0,0,1)":
		return "#000000"
	}
	if strings.HasPrefix(v, "rgba(") && (strings.HasSuffix(v, ",0)") || strings.HasSuffix(v, ",0.0)")) || v == "#0000" || v == "#00000000" {
		return "transparent"
	}
	if len(v) == 4 && v[0] == '#' {
		return "#" + strings.Repeat(v[1:2], 2) + strings.Repeat(v[2:3], 2) + strings.Repeat(v[3:4], 2)
	}
	return v
}

// length is a length in pixels, roughly; NaN when there is none.
func (s style) length(property string) float64 {
	v := s[property]
	i := strings.IndexFunc(v, func(r rune) bool { return !strings.ContainsRune("+-.0123456789", r) })
	unit := ""
	if i >= 0 {
		v, unit = v[:i], v[i:]
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return math.NaN()
	}
	scale := map[string]float64{"": 1, "px": 1, "pt": 4. / 3, "em": 16, "rem": 16, "%": 10, "vw": 10, "vh": 8, "cm": 38, "in": 96}[unit]
	if scale == 0 && n != 0 {
		return math.NaN()
	}
	return n * scale
}

func (s style) below(property string, limit float64) bool {
	n := s.length(property)
	return n < limit && n > -limit-1
}

func (s style) distance(property string) float64 { return math.Abs(s.length(property)) }
