package scan

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// secretText is a credential in its known form, as it is written.
// Like the table it is compiled with the first scan, not when a function starts.
var secretText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(secretForms) })

var secretForms = strings.Join([]string{
	`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`,                                      // AWS
	`\bgh[pousr]_[A-Za-z0-9]{36,}\b`, `\bgithub_pat_[A-Za-z0-9_]{40,}\b`, // GitHub
	`\bglpat-[A-Za-z0-9_-]{20,}\b`,                                               // GitLab
	`\bxox[abeprs]-[0-9A-Za-z-]{20,}\b`,                                          // Slack
	`\bsk-(?:ant|proj|or|svcacct)-[A-Za-z0-9_-]{24,}`, `\bsk-[A-Za-z0-9]{40,}\b`, // model providers
	`\b[rs]k_live_[0-9A-Za-z]{20,}\b`,                // Stripe
	`\bAIza[0-9A-Za-z_-]{35}\b`,                      // Google
	`\bSG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{30,}\b`, // SendGrid
	`\bnpm_[A-Za-z0-9]{36}\b`, `\bpypi-[A-Za-z0-9_-]{60,}\b`, `\bhf_[A-Za-z0-9]{30,}\b`,
	`\b\d{8,10}:AA[A-Za-z0-9_-]{33}\b`, // Telegram
	`-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----`,
}, "|")

var secretHints = sync.OnceValue(func() []string { return hints(secretForms) })

// assigned is a value given to something that is named like a secret.
var assigned = lazily(`(?i)\b[\w-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)["']?\s*(?:=|:|=>)\s*["']([^"'\s]{12,})["']`)

var namedHints = []string{"passw", "secret", "token", "key"}

func hasAny(text string, hints []string) bool {
	return slices.ContainsFunc(hints, func(h string) bool { return strings.Contains(text, h) })
}

// placeholder is what stands for a secret in an example.
var placeholder = lazily(`(?i)example|x{4,}|\.\.\.|…|your|placeholder|changeme|dummy|sample|test|fake|redacted|<[^>]*>|\$\{|\$\(|\{\{|process\.env|os\.environ|getenv|0{8,}|1234567|abcdef`)

// secrets finds credentials. What is an example by its look is none.
func (d document) secrets() []Finding {
	var all []Finding
	add := func(rule string, s Severity, line int, message, evidence string) {
		if len(all) < 4*maxPerRule {
			all = append(all, Finding{Rule: rule, Severity: s, Path: d.path, Line: line, Message: message, Evidence: evidence})
		}
	}
	for i, line := range d.raw {
		if !hasAny(line, secretHints()) && !hasAny(strings.ToLower(line), namedHints) {
			continue
		}
		for _, found := range secretText().FindAllString(line, -1) {
			if placeholder().MatchString(found) || entropy(found) < 3 && !strings.HasPrefix(found, "-----") {
				continue
			}
			if strings.HasPrefix(found, "-----") && !keyFollows(d.raw, i, line) {
				continue
			}
			add("secret.credential", Critical, i+1, "a credential stands in the file; whoever gets the skill has it", mask(found))
		}
		for _, m := range assigned().FindAllStringSubmatch(line, -1) {
			value := m[1]
			if !placeholder().MatchString(m[0]) && entropy(value) >= 3.5 && strings.ContainsAny(value, "0123456789") && !strings.ContainsAny(value, " /()[]") && !secretText().MatchString(value) {
				add("secret.assigned", High, i+1, "what looks like a secret is written into the file", mask(value))
			}
		}
	}
	return all
}

// keyFollows tells a private key from a text about one: base64 comes after it.
func keyFollows(lines []string, at int, line string) bool {
	_, rest, _ := strings.Cut(line, "PRIVATE KEY-----")
	next := ""
	if at+1 < len(lines) {
		next = lines[at+1]
	}
	for _, text := range []string{rest, next} {
		if keyLine().MatchString(text) {
			return true
		}
	}
	return false
}

var keyLine = lazily(`[A-Za-z0-9+/]{40,}`)

// mask keeps the beginning of a secret, to know it again by.
func mask(secret string) string {
	if strings.HasPrefix(secret, "-----") {
		return secret
	}
	return secret[:min(6, len(secret)/3)] + "…"
}

// entropy is Shannon's, in bits a character.
func entropy(s string) float64 {
	count := map[rune]float64{}
	n := 0.0
	for _, r := range s {
		count[r]++
		n++
	}
	sum := 0.0
	for _, c := range count {
		sum -= c / n * math.Log2(c/n)
	}
	return sum
}

// fetched is a file that a command writes from the network.
var fetched = lazily(`\b(?:curl|wget|invoke-webrequest|iwr)\b[^\n;&|]*?\s(?:-o|--output|-outfile|--output-document|>)[= ]?\s*["']?([\w./~${}-]{2,80})`)

// fetchedAs is the same where the file keeps the name that its address ends in.
var fetchedAs = lazily(`\b(?:wget|curl\s+(?:-\w+\s+)*-\w*o\w*)\s+(?:-\S+\s+)*["']?https?://[^\s"']*/([\w.-]{2,80})`)

// run is a file that a command runs or makes executable, whichever it is.
var run = lazily(`(?:\b(?:ba|z|k|da|fi)?sh|\bpython[23]?|\bnode|\bperl|\bruby|\bphp|\bsource|\bsudo|\bopen|\bstart|\bstart-process|\bmsiexec|[\n;&|(]\s*\.)\s+(?:-[\w-]+\s+)*(?:<\s*)?["']?(?:\./)?` + ran +
	`|\bchmod\s+(?:a?\+|u\+|[0-7]*[1357])\S*\s+["']?(?:\./)?` + ran +
	`|(?:\n|&&|;)\s*(?:\./)?` + ran +
	`|\bcat\s+["']?(?:\./)?` + ran + `["']?\s*\|\s*` + sink)

const ran = `([\w./~${}-]{2,80})`

// fetchedThenRun finds a download that is run later in the same file.
func (d document) fetchedThenRun() []Finding {
	first := map[string]int{} // where a name was first written to
	for _, w := range d.windows([]string{"curl", "wget", "invoke-webrequest", "iwr"}) {
		text := d.folded[w[0]:w[1]]
		for _, m := range slices.Concat(fetched().FindAllStringSubmatchIndex(text, -1), fetchedAs().FindAllStringSubmatchIndex(text, -1)) {
			name := strings.TrimPrefix(text[m[2]:m[3]], "./")
			if at, ok := first[name]; name != "/dev/null" && name != "-" && (!ok || w[0]+m[0] < at) {
				first[name] = w[0] + m[0]
			}
		}
	}
	if len(first) == 0 {
		return nil
	}
	var all []Finding
	told := map[string]bool{}
	text := "\n" + d.folded // a command is what follows a line break, on the first line too
	for from := 0; from < len(text); {
		m := run().FindStringSubmatchIndex(text[from:])
		if m == nil {
			break
		}
		next := from + m[1]
		for i := 2; i < len(m); i += 2 {
			if m[i] < 0 {
				continue
			}
			next = from + m[i] // the name may itself be a command: sudo bash x
			name := strings.TrimPrefix(text[from+m[i]:from+m[i+1]], "./")
			at, ok := first[name]
			if !ok || at >= from+m[i]-1 || told[name] || len(all) == maxPerRule {
				continue
			}
			told[name] = true
			line := d.line(at)
			all = append(all, Finding{Rule: "download.then_run", Severity: High, Path: d.path, Line: line,
				Message: "a file is fetched from the network and then run", Evidence: d.excerpt(line)})
		}
		from = next
	}
	return all
}
