package memory

import (
	"regexp"
	"strconv"
	"strings"
)

// attitudes are the beginnings of traits that say what a user likes or not,
// how strongly, and whether they are meant.
var attitudes = []struct {
	words    []string
	likes    bool
	strength float64
}{
	{[]string{"loves", "love", "favorite", "favourite", "最愛", "最爱", "熱愛"}, true, 1},
	{[]string{"hates", "hate", "討厭", "讨厌", "痛恨"}, false, 1},
	{[]string{"prefers", "prefer", "preferred", "preference", "偏好", "較喜歡"}, true, 0.7},
	{[]string{"dislikes", "dislike", "不喜歡", "不喜欢"}, false, 0.7},
	{[]string{"likes", "like", "enjoys", "enjoy", "喜歡", "喜欢"}, true, 0.5},
}

// forbidding are the beginnings of traits that say what must not be done.
var forbidding = []string{"must_not", "never", "avoid", "do_not", "dont", "forbid", "禁止", "不要", "避免"}

// quietHours are traits that say when a user is not to be written to.
var quietHours = []string{"quiet_hours", "do_not_disturb", "dnd", "sleep_hours", "night_mode", "勿擾時段", "勿扰时段", "休息時間", "休息时间"}

// proactive is the action that quiet hours forbid.
const proactive = "proactive_message"

// hours is a part of the day, in the user's own time; From after To passes
// midnight, equal ends are the whole day.
type hours struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// compileTrait understands one trait. What it does not understand stays a
// fact.
func compileTrait(r traitRow) rule {
	out := rule{Kind: "fact", MemoryID: r.ID, Trait: r.Predicate, Value: r.Object}
	if oneOf(quietHours, r.Predicate) {
		if h, ok := parseHours(r.Object); ok {
			return rule{Kind: "constraint", MemoryID: r.ID, Trait: r.Predicate, Action: proactive, Hours: &h}
		}
		return out
	}
	if rest, ok := begins(forbidding, r.Predicate); ok {
		action := strings.TrimSpace(strings.ReplaceAll(rest, "_", " ") + " " + r.Object)
		return rule{Kind: "constraint", MemoryID: r.ID, Trait: r.Predicate, Action: action}
	}
	for _, a := range attitudes {
		if topic, ok := begins(a.words, r.Predicate); ok {
			likes := a.likes
			out.Kind, out.Topic, out.Likes, out.Strength = "preference", topic, &likes, a.strength
			return out
		}
	}
	return out
}

// begins reports whether a trait is one of the words, or such a word and what
// it is about: "prefers_language" is about language.
func begins(words []string, trait string) (rest string, ok bool) {
	for _, w := range words {
		if trait == w {
			return "", true
		}
		if rest, ok := strings.CutPrefix(trait, w+"_"); ok {
			return rest, true
		}
	}
	return "", false
}

func oneOf(words []string, trait string) bool {
	_, ok := begins(words, trait)
	return ok
}

var hourRange = regexp.MustCompile(`(\d{1,2})(?::(\d{2}))?\s*(?:時|时|點|点|h)?\s*(?:-|–|~|～|to|bis|到|至)\s*(\d{1,2})(?::(\d{2}))?`)

// parseHours reads "22-8", "22:00~08:00", "22時到8時", "night".
func parseHours(text string) (hours, bool) {
	lower := strings.ToLower(text)
	for _, night := range []string{"night", "深夜", "夜間", "晚上"} {
		if strings.Contains(lower, night) && !strings.ContainsAny(lower, "0123456789") {
			return hours{From: 22, To: 8}, true
		}
	}
	match := hourRange.FindStringSubmatch(lower)
	if match == nil {
		return hours{}, false
	}
	from, _ := strconv.Atoi(match[1])
	to, _ := strconv.Atoi(match[3])
	if from > 24 || to > 24 {
		return hours{}, false
	}
	return hours{From: from % 24, To: to % 24}, true
}
