package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pawgate/internal/client/search"
	"pawgate/internal/safehttp"
)

// Settings are what an operator decides.
type Settings struct {
	// AllowHosts, Ports, Timeout, MaxBytes and UserAgent are those of
	// safehttp.Policy.
	AllowHosts []string      `envconfig:"WEB_ALLOW_HOSTS" desc:"private hosts that may be fetched, as host or host:port, separated by commas"`
	Ports      []int         `envconfig:"WEB_PORTS" desc:"ports that may be fetched from; unset: 80, 443, 8080, 8443"`
	Timeout    time.Duration `envconfig:"WEB_TIMEOUT" desc:"longest time for one fetch; unset: 20s"`
	MaxBytes   int64         `envconfig:"WEB_MAX_BYTES" desc:"most bytes of one page; unset: 10485760"`
	UserAgent  string        `envconfig:"WEB_USER_AGENT" desc:"User-Agent of fetches; unset: pawgate/1.0"`
	// ObeyRobots makes every fetch obey robots.txt; else a caller may ask for it.
	ObeyRobots bool `envconfig:"WEB_OBEY_ROBOTS" desc:"obey robots.txt in every fetch"`

	CacheAge   time.Duration `envconfig:"WEB_CACHE_AGE" desc:"longest time a page is kept; unset: 168h"`
	AgentBytes int64         `envconfig:"WEB_CACHE_AGENT_BYTES" desc:"most bytes of pages kept for one agent; unset: 67108864"`
	CacheBytes int64         `envconfig:"WEB_CACHE_BYTES" desc:"most bytes of pages kept in all; unset: 1073741824"`

	Engines      []string `envconfig:"WEB_SEARCH_ENGINES" desc:"search engines in the order they are tried; unset: those configured, in the order searxng, brave, tavily, google, bing"`
	SearXNGURL   string   `envconfig:"SEARXNG_URL" desc:"a SearXNG instance that answers in JSON"`
	BraveURL     string   `envconfig:"BRAVE_URL" desc:"address of Brave's Search API, if not its own"`
	BraveKey     string   `envconfig:"BRAVE_API_KEY" desc:"key of Brave's Search API"`
	TavilyURL    string   `envconfig:"TAVILY_URL" desc:"address of Tavily's API, if not its own"`
	TavilyKey    string   `envconfig:"TAVILY_API_KEY" desc:"key of Tavily's API"`
	GoogleURL    string   `envconfig:"GOOGLE_CSE_URL" desc:"address of Google's Custom Search JSON API, if not its own"`
	GoogleKey    string   `envconfig:"GOOGLE_CSE_KEY" desc:"key of Google's Custom Search JSON API"`
	GoogleEngine string   `envconfig:"GOOGLE_CSE_ID" desc:"id of the Programmable Search Engine to ask"`
	BingURL      string   `envconfig:"BING_URL" desc:"address of a service that answers like Bing's Web Search API v7"`
	BingKey      string   `envconfig:"BING_API_KEY" desc:"key of that service"`
}

// The defaults of zero fields.
const (
	defaultMaxBytes   = 10 << 20 // papers in PDF are larger than pages
	defaultCacheAge   = 7 * 24 * time.Hour
	defaultAgentBytes = 64 << 20
	defaultCacheBytes = 1 << 30
)

func (s Settings) withDefaults() Settings {
	s.MaxBytes = cmp.Or(s.MaxBytes, defaultMaxBytes)
	s.CacheAge = cmp.Or(s.CacheAge, defaultCacheAge)
	s.AgentBytes = cmp.Or(s.AgentBytes, defaultAgentBytes)
	s.CacheBytes = cmp.Or(s.CacheBytes, defaultCacheBytes)
	return s
}

func (s Settings) policy() safehttp.Policy {
	return safehttp.Policy{AllowHosts: s.AllowHosts, Ports: s.Ports, Timeout: s.Timeout,
		MaxBytes: cmp.Or(s.MaxBytes, defaultMaxBytes), UserAgent: s.UserAgent}
}

// Validate says which setting is wrong, without its value.
func (s Settings) Validate() error {
	if err := s.policy().Validate(); err != nil {
		return fmt.Errorf("read WEB_ settings: %w", err)
	}
	if s.CacheAge < 0 || s.AgentBytes < 0 || s.CacheBytes < 0 {
		return fmt.Errorf("read WEB_CACHE_ settings: they must not be negative")
	}
	for _, name := range s.Engines {
		if !slices.Contains(engineNames, strings.TrimSpace(name)) {
			return fmt.Errorf("read WEB_SEARCH_ENGINES: there is no engine %q; there are %s", name, strings.Join(engineNames, ", "))
		}
	}
	for _, e := range s.engines() {
		if e.asker == nil && e.configured {
			return fmt.Errorf("read settings of %s: %s", e.name, e.missing)
		}
	}
	return nil
}

// engineNames are the engines in the order of preference: one's own first,
// then those whose answers are made for programs.
var engineNames = []string{"searxng", "brave", "tavily", "google", "bing"}

// engine is a place in the order. Without an asker, missing says what to set.
type engine struct {
	name       string
	asker      search.Engine
	configured bool // its settings are there, right or wrong
	missing    string
}

// engines are those to try, in order: those named in WEB_SEARCH_ENGINES, or
// those that are configured.
func (s Settings) engines(options ...search.Option) []engine {
	var list []engine
	for _, name := range cmpOr(s.Engines, engineNames) {
		e := s.engine(strings.TrimSpace(name), options)
		if len(s.Engines) > 0 || e.configured {
			list = append(list, e)
		}
	}
	return list
}

func cmpOr(given, otherwise []string) []string {
	if len(given) > 0 {
		return given
	}
	return otherwise
}

func (s Settings) engine(name string, options []search.Option) engine {
	var e search.Engine
	var err error
	needs := map[string][2]string{
		"searxng": {s.SearXNGURL, "SEARXNG_URL"}, "brave": {s.BraveKey, "BRAVE_API_KEY"}, "tavily": {s.TavilyKey, "TAVILY_API_KEY"},
		"google": {both(s.GoogleKey, s.GoogleEngine), "GOOGLE_CSE_KEY and GOOGLE_CSE_ID"}, "bing": {both(s.BingURL, s.BingKey), "BING_URL and BING_API_KEY"},
	}[name]
	if needs[0] == "" {
		return engine{name: name, missing: "the operator sets " + needs[1]}
	}
	switch name {
	case "searxng":
		e, err = search.NewSearXNG(s.SearXNGURL, options...)
	case "brave":
		e, err = search.NewBrave(cmp.Or(s.BraveURL, search.BraveURL), s.BraveKey, options...)
	case "tavily":
		e, err = search.NewTavily(cmp.Or(s.TavilyURL, search.TavilyURL), s.TavilyKey, options...)
	case "google":
		e, err = search.NewGoogle(cmp.Or(s.GoogleURL, search.GoogleURL), s.GoogleKey, s.GoogleEngine, options...)
	case "bing":
		e, err = search.NewBing(s.BingURL, s.BingKey, options...)
	}
	if err != nil {
		return engine{name: name, configured: true, missing: "the address in its settings is not one; write it as https://host"}
	}
	return engine{name: name, asker: e, configured: true}
}

// both is empty unless both settings are there.
func both(a, b string) string {
	if a == "" || b == "" {
		return ""
	}
	return a
}
