package outbox

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pawgate/internal/client/channel"
	"pawgate/internal/client/dingtalk"
	"pawgate/internal/client/discord"
	"pawgate/internal/client/feishu"
	"pawgate/internal/client/googlechat"
	"pawgate/internal/client/line"
	"pawgate/internal/client/slack"
	"pawgate/internal/client/teams"
	"pawgate/internal/client/telegram"
	"pawgate/internal/client/wecom"
	"pawgate/internal/client/whatsapp"
	"pawgate/internal/safehttp"
)

// platform is a row of the table of platforms.
type platform struct {
	// open makes one with an account. It does no I/O.
	open func(channel.Account, ...safehttp.Option) (channel.Platform, error)
	// bare has no account; it knows the platform's limits and forms.
	bare channel.Platform
	// account and second say what else an account needs besides its secret.
	account, second string
	optional        string // a second secret that an account may have
}

// platforms are those that can be sent to, by the name in the argument channel.
var platforms = map[string]platform{
	"dingtalk":   {open: dingtalk.New, bare: dingtalk.Robot{}, optional: "signing secret"},
	"discord":    {open: discord.New, bare: discord.Bot{}},
	"feishu":     {open: feishu.New, bare: feishu.App{}, account: "app id"},
	"googlechat": {open: googlechat.New, bare: googlechat.Webhook{}},
	"line":       {open: line.New, bare: line.Bot{}},
	"slack":      {open: slack.New, bare: slack.App{}},
	"teams":      {open: teams.New, bare: teams.Webhook{}},
	"telegram":   {open: telegram.New, bare: telegram.Bot{}},
	"wecom":      {open: wecom.New, bare: wecom.Robot{}},
	"whatsapp":   {open: whatsapp.New, bare: whatsapp.Phone{}, account: "phone number id"},
}

// Platforms are the names of the platforms, sorted.
func Platforms() []string { return slices.Sorted(maps.Keys(platforms)) }

// Known says in a sentence that there is no such platform; nil: there is.
func Known(name string) error {
	if _, ok := platforms[name]; !ok {
		return fmt.Errorf("there is no channel %s; it is one of %s", short(name), strings.Join(Platforms(), ", "))
	}
	return nil
}

// CheckAccount says in a sentence what an account of a platform lacks.
func CheckAccount(name string, a Account) error {
	if err := Known(name); err != nil {
		return err
	}
	p := platforms[name]
	switch {
	case p.account != "" && a.Account == "":
		return fmt.Errorf("%s needs its %s as --account", name, p.account)
	case p.second != "" && a.SecondSecret == "":
		return fmt.Errorf("%s needs its %s as --second-secret", name, p.second)
	case p.second == "" && p.optional == "" && a.SecondSecret != "":
		return fmt.Errorf("%s has no second secret", name)
	}
	return nil
}

// CheckTarget says in a sentence why a chat's id can be none of a platform's.
func CheckTarget(name, id string) error {
	switch {
	case Known(name) != nil:
		return Known(name)
	case id == anywhere:
		return nil
	case id == "":
		return errors.New("the chat's id is empty")
	}
	return platforms[name].bare.CheckTarget(id)
}
