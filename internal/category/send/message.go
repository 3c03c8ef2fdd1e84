package send

import (
	"context"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/outbox"
	"pawgate/internal/tool"
)

// to is what every sending tool is told.
type to struct {
	Channel string  `json:"channel" doc:"See channel_status" maxlen:"20"`
	ChatID  tool.ID `json:"chat_id" doc:"Id or name" maxlen:"128"`
}

func (a to) Validate() error {
	if err := outbox.Known(a.Channel); err != nil {
		return fault.Invalid("channel", "%s", err.Error())
	}
	return nil
}

// once is what makes a repetition recognisable.
type once struct {
	Key string `json:"idempotency_key,omitempty" doc:"Same on retry" maxlen:"128"`
}

type messageArgs struct {
	to
	Text string `json:"text" doc:"Markdown" maxlen:"40000"`
	once
}

// message sends a text.
func (s send) message(ctx context.Context, who caller.Caller, a messageArgs) (outbox.Sent, error) {
	return s.outbox.Send(ctx, outbox.Message{Agent: who.Agent, Channel: a.Channel, Chat: string(a.ChatID), Key: a.Key, Text: a.Text})
}
