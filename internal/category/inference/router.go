package inference

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Router decides by the look of a prompt whether a small local model, a strong
// one, or a remote provider should answer it. Its rules are rough and cheap;
// that is why every one that applied is told.
type Router struct {
	Enabled         bool     `envconfig:"PAWGATE_ROUTE_ENABLED" default:"true" desc:"whether route_query looks at the prompt"`
	FastModel       string   `envconfig:"PAWGATE_ROUTE_FAST_MODEL" desc:"model of the tier local_fast"`
	StrongModel     string   `envconfig:"PAWGATE_ROUTE_STRONG_MODEL" desc:"model of the tier local_strong"`
	FastThreshold   float64  `envconfig:"PAWGATE_ROUTE_FAST" default:"0.7" desc:"least confidence for local_fast"`
	StrongThreshold float64  `envconfig:"PAWGATE_ROUTE_STRONG" default:"0.35" desc:"least confidence for local_strong"`
	MaxFastTokens   int      `envconfig:"PAWGATE_ROUTE_MAX_FAST_TOKENS" default:"1000" desc:"prompt beyond which a small model is a poor choice"`
	CloudKeywords   []string `envconfig:"PAWGATE_ROUTE_CLOUD_KEYWORDS" default:"refactor,architect,security audit,multi-step,重構,架構設計,安全稽核,リファクタリング" desc:"words of hard prompts"`
	FastKeywords    []string `envconfig:"PAWGATE_ROUTE_FAST_KEYWORDS" default:"translate,summarize,classify,format,explain,hello,hi,define,list,convert,count,extract,rewrite,翻譯,摘要,總結,分類,格式,解釋,你好,定義,列出,轉換,翻訳,要約" desc:"words of easy prompts"`
}

// Tier is the kind of model that a prompt should go to.
type Tier string

// The tiers.
const (
	Fast   Tier = "local_fast"
	Strong Tier = "local_strong"
	Cloud  Tier = "cloud_api"
)

// Reason is one rule that applied.
type Reason struct {
	Rule   string  `json:"rule"`
	Detail string  `json:"detail"`
	Effect float64 `json:"effect"` // on the confidence
}

// Decision is where a prompt should go.
type Decision struct {
	Tier       Tier
	Confidence float64
	Model      string // empty: the one that is loaded, or the provider's
	Reasons    []Reason
}

// startConfidence is that of a prompt nothing is known of.
const startConfidence = 0.5

// The sizes of prompts that the rules tell apart, in estimated tokens.
const (
	shortPrompt  = 50
	mediumPrompt = 200
	longSystem   = 500
)

// Decide applies the rules.
func (r Router) Decide(prompt, system string) Decision {
	if !r.Enabled {
		return Decision{Tier: Strong, Confidence: startConfidence, Model: r.StrongModel,
			Reasons: []Reason{{"router", "the router is off, so everything goes to the strong tier", 0}}}
	}
	d := Decision{Confidence: startConfidence, Reasons: []Reason{}}
	r.keywords(&d, strings.ToLower(system+"\n"+prompt))
	r.length(&d, prompt, system)
	shape(&d, prompt)
	d.Confidence = min(max(d.Confidence, 0), 1)
	switch {
	case d.Confidence >= r.FastThreshold:
		d.Tier, d.Model = Fast, r.FastModel
	case d.Confidence >= r.StrongThreshold:
		d.Tier, d.Model = Strong, r.StrongModel
	default:
		d.Tier = Cloud
	}
	return d
}

func (d *Decision) because(effect float64, rule, detail string, args ...any) {
	d.Confidence += effect
	d.Reasons = append(d.Reasons, Reason{rule, fmt.Sprintf(detail, args...), effect})
}

func (r Router) keywords(d *Decision, text string) {
	for _, word := range r.CloudKeywords {
		if mentions(text, word, false) {
			d.because(-0.3, "hard_keyword", "it says %q", word)
		}
	}
	for _, word := range r.FastKeywords {
		if mentions(text, word, true) {
			d.because(0.2, "easy_keyword", "it says %q", word)
		}
	}
}

// mentions looks for a keyword at the beginning of a word, and with whole also
// up to its end: "architect" is in "architecture", "hi" not in "this". Scripts
// without spaces have no such bounds.
func mentions(text, word string, whole bool) bool {
	word = strings.ToLower(strings.TrimSpace(word))
	if word == "" {
		return false
	}
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(word)
		if bounded(text[:start], word, true) && (!whole || bounded(text[end:], word, false)) {
			return true
		}
		at = end
	}
}

// bounded reports whether a keyword's edge is one of a word: the neighbour is
// no ASCII letter or digit, or the keyword itself does not end in one.
func bounded(rest, word string, before bool) bool {
	edge, neighbour := word[len(word)-1], byte(' ')
	switch {
	case before && rest != "":
		edge, neighbour = word[0], rest[len(rest)-1]
	case !before && rest != "":
		neighbour = rest[0]
	}
	return !alphanumeric(edge) || !alphanumeric(neighbour)
}

func alphanumeric(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

func (r Router) length(d *Decision, prompt, system string) {
	switch n := EstimateTokens(prompt); {
	case n <= shortPrompt:
		d.because(0.2, "length", "about %d tokens, which is short", n)
	case n <= mediumPrompt:
		d.because(0, "length", "about %d tokens, which is ordinary", n)
	case n <= r.MaxFastTokens:
		d.because(-0.1, "length", "about %d tokens, which is long", n)
	default:
		d.because(-0.25, "length", "about %d tokens, more than the %d that a small model should get", n, r.MaxFastTokens)
	}
	if n := EstimateTokens(system); n > longSystem {
		d.because(-0.1, "system_prompt", "about %d tokens of system prompt", n)
	}
}

// manyQuestions is how many question marks a simple prompt has at most.
const manyQuestions = 2

// shape looks for signs of code and of work in several steps.
func shape(d *Decision, prompt string) {
	if n := strings.Count(prompt, "?") + strings.Count(prompt, "？"); n > manyQuestions {
		d.because(-0.15, "questions", "%d questions in one", n)
	}
	if codeSign.MatchString(prompt) {
		d.because(-0.1, "code", "it holds code")
	}
	signs := map[string]bool{}
	for _, s := range stepSign.FindAllString(strings.ToLower(prompt), -1) {
		signs[strings.TrimSpace(s)] = true
	}
	if len(signs) >= 2 {
		d.because(-0.2, "steps", "it asks for several steps")
	}
}

var (
	codeSign = regexp.MustCompile("```|(?m)^\\s*(fn|def|func|class) \\w")
	stepSign = regexp.MustCompile(`\b(?:first|then|next|finally|step)\b|(?:^|\s)[123]\.\s|首先|然後|接著|最後|步驟|まず|次に|最後に`)
)

// EstimateTokens guesses the tokens of a text without a tokeniser: about one
// for four characters, and of Chinese, Japanese and Korean two for three. It
// is at least 1.
func EstimateTokens(text string) int {
	cjk, other := 0, 0
	for _, c := range text {
		if ideographic(c) {
			cjk++
		} else {
			other++
		}
	}
	return max((cjk*2+2)/3+other/4, 1)
}

func ideographic(c rune) bool {
	return unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo) ||
		c >= 0x3000 && c <= 0x303f || c >= 0xff00 && c <= 0xffef // punctuation and full-width forms
}
