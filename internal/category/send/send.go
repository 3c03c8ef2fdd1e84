// Package send holds the tools that send messages to people, and those that
// say how a channel is set up and whether it works.
//
// No channel exists until an operator makes one (pawgate channel set), and no
// chat may be written to until an operator allows it (pawgate channel allow).
// An agent cannot choose an address, a secret or a file: pictures come from a
// public address, through package safehttp, or inside the call.
//
// Sending itself, with its promise to send once and to say so when that is not
// known, is package outbox, which other categories may use too.
package send

import (
	"context"
	"fmt"
	"time"

	"pawgate/internal/outbox"
	"pawgate/internal/postgres"
	"pawgate/internal/safehttp"
	"pawgate/internal/tool"
)

// Config is what the category reads from its environment.
type Config struct {
	postgres.Config
	Settings
}

// Settings are what an operator decides for every channel.
type Settings struct {
	AllowHosts []string `envconfig:"SEND_ALLOW_HOSTS" desc:"private hosts that photos may be fetched from, as host or host:port, separated by commas"`
}

// maxPhoto bounds a fetched photo, in bytes; platforms have limits below it.
const maxPhoto = 20 << 20

func (s Settings) policy() safehttp.Policy {
	return safehttp.Policy{AllowHosts: s.AllowHosts, MaxBytes: maxPhoto, Timeout: 15 * time.Second}
}

// Open is the category over the configured database. It connects to nothing.
func Open(ctx context.Context, cfg Config) (tool.Category, error) {
	if err := cfg.policy().Validate(); err != nil {
		return tool.Category{}, fmt.Errorf("read SEND_ALLOW_HOSTS: %w", err)
	}
	db, err := postgres.Open(ctx, cfg.Config)
	if err != nil {
		return tool.Category{}, fmt.Errorf("open send: %w", err)
	}
	c := New(db, cfg.Settings, time.Now)
	c.Close = db.Close
	return c, nil
}

// New is the category over an open database. It does no I/O. The options
// replace the network in tests.
func New(db postgres.DB, s Settings, now func() time.Time, options ...safehttp.Option) tool.Category {
	c := send{db: db, now: now, outbox: outbox.New(db, now, options...), http: safehttp.New(s.policy(), options...)}
	return tool.Category{Name: "send", Tools: []tool.Tool{
		tool.Write("send_message", "Send a text.", c.message, tool.OpenWorld, tool.Rate(tool.ClassSend)),
		tool.Write("send_photo", "Send a picture.", c.photo, tool.OpenWorld, tool.Rate(tool.ClassSend)),
		tool.Write("send_sticker", "Send a sticker.", c.sticker, tool.OpenWorld, tool.Rate(tool.ClassSend)),

		tool.Write("channel_config", "Read or set a setting.", c.config, tool.Idempotent),
		tool.Read("channel_config_list", "List settings.", c.configList),
		tool.Read("channel_status", "Check channels, list chats.", c.status, tool.OpenWorld, tool.Rate(tool.ClassExpensive)),
	}}
}

type send struct {
	db     postgres.DB
	now    func() time.Time
	outbox *outbox.Outbox
	http   *safehttp.Client
}
