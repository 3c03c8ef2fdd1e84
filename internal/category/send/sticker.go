package send

import (
	"cmp"
	"context"

	"pawgate/internal/caller"
	"pawgate/internal/client/channel"
	"pawgate/internal/fault"
	"pawgate/internal/outbox"
	"pawgate/internal/tool"
)

type stickerArgs struct {
	ChatID    tool.ID `json:"chat_id" doc:"Id or name" maxlen:"128"`
	StickerID tool.ID `json:"sticker_id" doc:"Or file_id" maxlen:"200"`
	PackageID string  `json:"package_id,omitempty" doc:"LINE" maxlen:"20"`
	Channel   string  `json:"channel,omitempty" doc:"Default line" maxlen:"20"`
	once
}

// Validate asks for what LINE cannot do without.
func (a stickerArgs) Validate() error {
	if a.Channel != "" && a.Channel != "line" && a.Channel != "telegram" {
		return fault.Invalid("channel", "stickers are sent on line or telegram")
	}
	if a.Channel != "telegram" && a.PackageID == "" {
		return fault.Invalid("package_id", "a LINE sticker needs package_id and sticker_id; LINE publishes both in its list of available stickers")
	}
	return nil
}

// sticker sends a sticker.
func (s send) sticker(ctx context.Context, who caller.Caller, a stickerArgs) (outbox.Sent, error) {
	return s.outbox.Send(ctx, outbox.Message{Agent: who.Agent, Channel: cmp.Or(a.Channel, "line"), Chat: string(a.ChatID), Key: a.Key,
		Sticker: &channel.Sticker{Package: a.PackageID, ID: string(a.StickerID)}})
}
