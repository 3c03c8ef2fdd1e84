package agentfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pawgate/internal/schedule"
)

// maxConcurrent is the most runs at once that are taken over.
const maxConcurrent = 100

// apiModes are the ways in which an agent can reach its model.
var apiModes = []string{"cli", "direct", "auto"}

// settings takes over what may be set of an agent besides who it is. A value
// that could not be set here is left out, with a note; the text keeps it.
func (p *parser) settings() {
	in, out := p.file, &p.agent
	out.FallbackModel = p.line("model.fallback", in.Model.Fallback)
	if out.APIMode = in.Model.APIMode; out.APIMode != nil && !slices.Contains(apiModes, *out.APIMode) {
		out.APIMode = nil
		p.note("model.api_mode", 0, "is none of %s; kept in the stored text only", strings.Join(apiModes, ", "))
	}
	if out.BudgetCents = in.Budget.MonthlyLimitCents; out.BudgetCents != nil && *out.BudgetCents < 0 {
		out.BudgetCents = nil
		p.note("budget.monthly_limit_cents", 0, "is less than nothing; kept in the stored text only")
	}
	out.SoftBudget = in.Budget.HardStop != nil && !*in.Budget.HardStop
	if n := in.Container.MaxConcurrent; n != nil && *n >= 1 && *n <= maxConcurrent {
		most := int(*n)
		out.MaxConcurrent = &most
	} else if n != nil {
		p.note("container.max_concurrent", 0, "is not between 1 and %d; kept in the stored text only", maxConcurrent)
	}
	out.HeartbeatEnabled = in.Heartbeat.Enabled
	p.heartbeat(p.line("heartbeat.cron", in.Heartbeat.Cron))
	p.evolution()
}

// line takes over a text that must be one line.
func (p *parser) line(key string, text *string) *string {
	if text == nil || IsText(*text) {
		return text
	}
	p.note(key, 0, "is not one line of at most %d characters; kept in the stored text only", maxText)
	return nil
}

// heartbeat takes over when the agent is woken, with the weekdays counted as
// everywhere else.
func (p *parser) heartbeat(cron *string) {
	if cron == nil {
		return
	}
	converted, changed := schedule.FromDuDuClaw(*cron)
	if changed {
		p.note("heartbeat.cron", 0, "weekdays counted from 1, Sunday, in DuDuClaw; it is %s here", converted)
	}
	p.agent.HeartbeatCron = &converted
}

// evolution takes over the plain values.
func (p *parser) evolution() {
	for name, value := range p.file.Evolution {
		switch value.(type) {
		case bool, int64, float64, string:
			if p.agent.Evolution == nil {
				p.agent.Evolution = map[string]string{}
			}
			p.agent.Evolution[name] = fmt.Sprint(value)
		}
	}
}

var number = regexp.MustCompile(`[0-9]+`)

// namedWeekdays writes the weekdays of an expression by name, which both ways of
// counting read alike.
func namedWeekdays(cron string) string {
	fields := strings.Fields(cron)
	if len(fields) != 5 && len(fields) != 6 {
		return cron
	}
	last := len(fields) - 1
	parts := strings.Split(fields[last], ",")
	for i, part := range parts {
		days, rest := part, ""
		if cut := strings.IndexAny(part, "/#"); cut >= 0 {
			days, rest = part[:cut], part[cut:]
		}
		parts[i] = number.ReplaceAllStringFunc(days, func(day string) string {
			if n, err := strconv.Atoi(day); err == nil && n <= 7 {
				return []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}[n%7]
			}
			return day
		}) + rest
	}
	fields[last] = strings.Join(parts, ",")
	return strings.Join(fields, " ")
}
