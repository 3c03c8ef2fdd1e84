// Package people keeps who is behind an account of a channel, and which
// accounts may reach an agent.
//
// Persons are written by operators only. An account gets in only by a person's
// word: an approval, or a code that a person gave away. Codes live minutes,
// are good once and for few tries, and are stored so that the database alone
// does not tell them.
package people

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"pawgate/internal/fault"
)

// channels are those that people come by.
var channels = []string{"telegram", "line", "discord", "slack", "whatsapp", "feishu", "googlechat", "teams", "wecom", "dingtalk", "webchat", "email"}

// email is the channel whose accounts are addresses, which have no case.
const email = "email"

// maxAccount is the longest name of an account, in code points.
const maxAccount = 200

// plain reports whether a text has 1 to so many letters, digits and what else
// is allowed. It is no regular expression: one with Unicode's letters repeated
// costs a cold start tens of milliseconds.
func plain(text string, most int, also string) bool {
	return text != "" && utf8.RuneCountInString(text) <= most && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune(also, r)
	})
}

// marks are those of ASCII, without the space.
const marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// Account checks an account of a channel and gives both in the form in which
// they are stored: channels and e-mail addresses in lower case. parameter names
// the argument that holds the account, in the error.
func Account(channel, id, parameter string) (string, string, error) {
	channel, id = strings.ToLower(strings.TrimSpace(channel)), strings.TrimSpace(id)
	if !slices.Contains(channels, channel) {
		return "", "", fault.Invalid("channel", "channel must be one of %s", strings.Join(channels, ", "))
	}
	if !plain(id, maxAccount, marks) {
		return "", "", fault.Invalid(parameter, "%s must be the account as the channel names it: 1 to 200 characters without spaces", parameter)
	}
	if channel == email {
		id = strings.ToLower(id)
	}
	return channel, id, nil
}
