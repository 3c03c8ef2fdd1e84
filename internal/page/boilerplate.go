package page

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/html"
)

// Names that say what an element is for, as class, id, role or data attribute.
// They are matched against single words: "post-share-bar" has the words post,
// share and bar.
var boilerplateWords = []string{
	"nav", "navbar", "navigation", "menu", "submenu", "breadcrumb", "breadcrumbs", "pagination", "pager", "footer", "sidebar", "skip",
	"cookie", "cookies", "consent", "gdpr", "share", "sharing", "sharedaddy", "social", "addtoany", "addthis", "shariff",
	"related", "recommended", "recommendations", "recirc", "outbrain", "taboola", "newsletter",
	"comments", "respond", "disqus", "commentlist", "editsection", "advert", "advertisement", "adsense", "dfp", "werbung", "anzeige",
}

// weakWords say it of short elements only: they also name wrappers of content.
var weakWords = []string{
	"masthead", "rail", "toolbar", "cmp", "modal", "popup", "overlay", "paywall", "follow", "likes", "promo", "promoted",
	"sponsored", "subscribe", "subscription", "signup", "donate", "ad", "ads", "advertorial", "banner", "comment", "tags", "taglist", "tagcloud",
	"byline", "author", "authorbox", "vcard", "postmeta", "meta", "dateline", "timestamp", "print", "printonly", "rating", "feedback",
}

// linkedWords say it of short elements with a link: without one, a teaser is
// the article's own first paragraph.
var linkedWords = []string{"teaser", "teasers", "card", "tile", "widget", "widgets"}

// shortText is the length in characters below which weakWords count.
const shortText = 250

// boilerplatePairs are words that say it only together.
var boilerplatePairs = regexp.MustCompile(`(?i)(read|see|view|more|also|next|prev|previous|older|newer|jump|table|author|about|post|entry|article|story)[-_]?(more|also|next|posts?|articles?|stories|story|nav|navigation|contents|bio|box|info|footer|author|tags|links?|meta|date|time)\b`)

var boilerplateRoles = []string{"navigation", "menu", "menubar", "complementary", "banner", "contentinfo", "search", "alert", "alertdialog", "dialog", "toolbar", "tablist"}

// keepWords protect an element whatever else its name says.
var keepWords = []string{"content", "article", "body", "entry", "main", "text", "story", "page"}

// controls are elements for doing, not for reading.
var controls = []string{"nav", "aside", "button", "select", "input", "textarea", "svg", "dialog"}

// prune cuts what is around the content. strict also cuts by the words that
// say it of short elements only.
func prune(body *html.Node, strict bool) {
	m := measure(body)
	m.cut(body, func(n *html.Node) bool { return m.boilerplate(n, strict) })
	m = measure(body)
	m.dropCalls(body)
	m.cut(body, m.linkList)
}

func (m extents) boilerplate(n *html.Node, strict bool) bool {
	switch {
	case n.Data == "form":
		return m[n].text < 500 // some sites wrap the whole page in a form
	case n.Data == "header":
		return !m[n].headline && !within(n.Parent, isArticle)
	case n.Data == "footer", slices.Contains(controls, n.Data):
		return true
	case slices.Contains(boilerplateRoles, strings.ToLower(attr(n, "role"))):
		return true
	case n.Data == "body", n.Data == "main", n.Data == "article", n.Data == "label":
		return false
	}
	name := attr(n, "class") + " " + attr(n, "id")
	strong, weak := boilerplateName(name)
	weak = weak || m[n].links > 0 && !m[n].headline && hasWord(name, linkedWords)
	return strong || strict && weak && m[n].text < shortText
}

func hasWord(name string, words []string) bool {
	for word := range wordsOf(name) {
		if slices.Contains(words, word) {
			return true
		}
	}
	return false
}

// boilerplateName judges the words of a class and an id.
func boilerplateName(name string) (strong, weak bool) {
	for word := range wordsOf(name) {
		if slices.Contains(keepWords, word) {
			return false, false
		}
		strong = strong || slices.Contains(boilerplateWords, word)
		weak = weak || slices.Contains(weakWords, word)
	}
	return strong, weak || boilerplatePairs.MatchString(name)
}

// wordsOf yields the lower-case words of a name: by separators and by camel
// case.
func wordsOf(name string) func(func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for i := 0; i <= len(name); i++ {
			upper := i > start && i < len(name) && 'A' <= name[i] && name[i] <= 'Z' && 'a' <= name[i-1] && name[i-1] <= 'z'
			if i < len(name) && !upper && !strings.ContainsRune(" \t\n-_:./", rune(name[i])) {
				continue
			}
			if i > start && !yield(strings.ToLower(name[start:i])) {
				return
			}
			start = i + 1
			if upper {
				start = i
			}
		}
	}
}

func isArticle(n *html.Node) bool {
	return n.Data == "article" || n.Data == "main" || attr(n, "role") == "main" || attr(n, "itemprop") == "articleBody"
}

// linkList finds lists of links that lead elsewhere: nearly all of the text is
// inside links, and there are several.
func (m extents) linkList(n *html.Node) bool {
	e := m[n]
	return e.links >= 3 && e.text > 0 && e.linkText*100 > e.text*85 && isListElement(n)
}

// calls are the first words of lines that lead away from the text.
//
// It is compiled at first use: that takes half a millisecond, which a cold start
// that fetches nothing need not spend.
var calls = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^\s*[►→»•\-–]*\s*(related (articles?|coverage|stories|posts|content|reading)|related:?$|read (more|also|next)\b|see also:|you (may|might) (also )?(like|enjoy|be interested)|more (from|on|stories|news)\b|recommended (for you|stories|reading)|advertisement\b|share this|follow us|subscribe (to|now)|sign up (for|to)|don['’]t miss|mehr zum thema|mehr (informationen|dazu):?$|lesen sie (auch|hier|mehr)|auch interessant|das könnte (sie|dich)|schon gelesen|anzeige$|werbung$|artikel (teilen|gefallen)|(à )?lire aussi|sur le même sujet|(le|te) puede interesar|lea también|leer más|leggi anche|leia (também|mais)|czytaj (też|także|również)|zobacz (też|także|również)|читайте также|延伸閱讀|相關(文章|新聞|報導)|你可能(也)?(喜歡|会喜欢)|相关(文章|新闻|阅读|推荐)|推荐阅读|関連(記事|ニュース|リンク)|あわせて読みたい|관련\s?(기사|글))`)
})

// dropCalls cuts short lines that begin like one of calls, and after such a
// heading the links that follow it.
func (m extents) dropCalls(body *html.Node) {
	for _, n := range elements(body, func(n *html.Node) bool { return slices.Contains(callers, n.Data) }) {
		if m[n].text > maxCall || !calls().MatchString(textOf(n)) {
			continue
		}
		if isHeading(n) {
			for next := n.NextSibling; next != nil && !isHeading(next); next = n.NextSibling {
				if e := m[next]; e.text > 60 && e.linkText*2 < e.text {
					break
				}
				detach(next)
			}
		}
		detach(n)
	}
}

// maxCall is the longest line that is taken for one, in characters.
const maxCall = 160

var callers = []string{"h2", "h3", "h4", "h5", "h6", "p", "strong", "b", "div", "span", "li"}

func isHeading(n *html.Node) bool {
	return n.Type == html.ElementNode && len(n.Data) == 2 && n.Data[0] == 'h' && '1' <= n.Data[1] && n.Data[1] <= '6'
}
