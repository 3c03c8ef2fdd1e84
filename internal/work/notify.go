package work

import (
	"slices"
	"strings"

	"pawgate/internal/fault"
)

// Channels are those that can be sent to, sorted. They are those of package
// outbox, which would cost whoever only names one the start of ten clients.
var Channels = []string{"dingtalk", "discord", "feishu", "googlechat", "line", "slack", "teams", "telegram", "wecom", "whatsapp"}

// CheckChannel refuses a channel that there is not, at once and not when
// something is to be sent there. The error is a *fault.InvalidArgument.
func CheckChannel(parameter, name string) error {
	if !slices.Contains(Channels, name) {
		return fault.Invalid(parameter, "%s must be one of %s", parameter, strings.Join(Channels, ", "))
	}
	return nil
}

// CheckNotify checks where a result is to be told: nowhere, or a channel and a
// chat. The error is a *fault.InvalidArgument for notify_channel.
func CheckNotify(n Notify) error {
	switch {
	case n == Notify{}:
		return nil
	case n.Channel == "" || n.ChatID == "":
		return fault.Invalid("notify_channel", "notify_channel and notify_chat_id go together; give both or neither")
	}
	return CheckChannel("notify_channel", n.Channel)
}
