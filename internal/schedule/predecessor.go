package schedule

import (
	"regexp"
	"strconv"
	"strings"
)

var weekday = regexp.MustCompile(`[0-9]+`)

// FromDuDuClaw rewrites an expression of DuDuClaw, whose weekdays count from
// 1, Sunday, to 7, Saturday, and reports whether anything changed. Steps and
// the n of #n are no weekdays and stay. What it cannot read it leaves alone, for
// Parse to refuse.
func FromDuDuClaw(expression string) (converted string, changed bool) {
	list := strings.Fields(expression)
	if len(list) == 7 && (list[6] == "*" || list[6] == "?") {
		list = list[:6] // any year
	}
	if len(list) != 5 && len(list) != 6 {
		return expression, false
	}
	last := len(list) - 1
	parts := strings.Split(list[last], ",")
	for i, part := range parts {
		days, rest := part, ""
		if cut := strings.IndexAny(part, "/#"); cut >= 0 {
			days, rest = part[:cut], part[cut:]
		}
		parts[i] = weekday.ReplaceAllStringFunc(days, func(day string) string {
			n, err := strconv.Atoi(day)
			if err != nil || n < 1 || n > 7 {
				return day
			}
			return strconv.Itoa(n - 1)
		}) + rest
	}
	list[last] = strings.Join(parts, ",")
	for i, field := range list {
		if field == "?" {
			list[i] = "*"
		}
	}
	converted = strings.Join(list, " ")
	return converted, converted != strings.Join(strings.Fields(expression), " ")
}
