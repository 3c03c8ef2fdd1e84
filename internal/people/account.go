// Package people keeps who is behind an account of a channel, and which
// accounts may reach an agent.
//
// Persons are written by operators only. An account gets in only by a person's
// word: an approval, or a code that a person gave away. Codes live minutes,
// are good once and for few tries, and are stored so that the database alone
// does not tell them.
package people

import (
	"regexp"
	"slices"
	"strings"

	"pawgate/internal/fault"
)

// channels are those that people come by.
var channels = []string{"telegram", "line", "discord", "slack", "whatsapp", "feishu", "googlechat", "teams", "wecom", "dingtalk", "webchat", "email"}

// email is the channel whose accounts are addresses, which have no case.
const email = "email"

// account is what a channel may call a user or a group: no white space, nothing
// invisible.
var account = regexp.MustCompile(`^[!-~\p{L}\p{N}]{1,200}$`)

// Account checks an account of a channel and gives both in the form in which
// they are stored: channels and e-mail addresses in lower case. parameter names
// the argument that holds the account, in the error.
func Account(channel, id, parameter string) (string, string, error) {
	channel, id = strings.ToLower(strings.TrimSpace(channel)), strings.TrimSpace(id)
	if !slices.Contains(channels, channel) {
		return "", "", fault.Invalid("channel", "channel must be one of %s", strings.Join(channels, ", "))
	}
	if !account.MatchString(id) {
		return "", "", fault.Invalid(parameter, "%s must be the account as the channel names it: 1 to 200 characters without spaces", parameter)
	}
	if channel == email {
		id = strings.ToLower(id)
	}
	return channel, id, nil
}
