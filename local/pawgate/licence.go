package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"pawgate/internal/licence"
	"pawgate/internal/settings"
	"pawgate/internal/tool"
)

// signingSettings are those of whoever sells licences.
type signingSettings struct {
	SigningKey string `envconfig:"PAWGATE_LICENCE_SIGNING_KEY" desc:"private key that licence make signs with; no installation needs it"`
}

func licenceCommands() []command {
	return []command{
		{name: "licence key", about: "Make a pair of keys to sign and check licences with.", run: makeLicenceKey, examples: []string{"licence key"},
			detail: "The private key signs (PAWGATE_LICENCE_SIGNING_KEY, best a reference such as\nfile://PATH). The public one is for the installations (PAWGATE_LICENCE_KEY).\n"},
		{name: "licence make", usage: "--customer NAME --edition pro|enterprise --expires 365d [--agents N]", about: "Sign a licence.", run: makeLicence,
			examples: []string{`licence make --customer "Example Ltd" --edition pro --expires 365d --agents 20`, "licence make --customer Example --edition enterprise --expires 2027-12-31"},
			detail:   "  --customer  Who it is for\n  --edition   community, pro or enterprise\n  --expires   When it ends: 365d, or a date\n  --agents    Most agents; any number if left out\n"},
		{name: "licence check", usage: "[LICENCE]", about: "Show what a licence is worth: the one given, or PAWGATE_LICENCE.", run: checkLicence,
			examples: []string{"licence check", "licence check eyJhbGciOiJFZERTQSJ9.e30.AAAA"}, detail: "It is checked with PAWGATE_LICENCE_KEY. Exit status 1: it counts as community.\n"},
	}
}

func makeLicenceKey(_ context.Context, a *app, args []string) error {
	if len(args) > 0 {
		return wrongArguments("licence key", args)
	}
	private, public, err := licence.NewKey()
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "private  %s\npublic   %s\n", private, public)
	return nil
}

func makeLicence(ctx context.Context, a *app, args []string) error {
	set := flag.NewFlagSet("licence make", flag.ContinueOnError)
	customer, edition, expires := set.String("customer", "", ""), set.String("edition", "", ""), set.String("expires", "", "")
	agents := set.Int("agents", 0, "")
	if err := parseFlags(set, args); err != nil {
		return err
	}
	var s signingSettings
	if err := settings.Load(ctx, &s); err != nil {
		return err
	}
	if s.SigningKey == "" {
		return errors.New("PAWGATE_LICENCE_SIGNING_KEY is not set; pawgate licence key makes a pair of keys")
	}
	key, err := licence.ParsePrivateKey(s.SigningKey)
	if err != nil {
		return fmt.Errorf("PAWGATE_LICENCE_SIGNING_KEY: %w", err)
	}
	end, err := licenceEnd(*expires, time.Now())
	if err != nil {
		return err
	}
	text, err := licence.Sign(licence.Licence{Customer: *customer, Edition: tool.Edition(*edition), Agents: *agents, Expires: end}, key, time.Now())
	if err != nil {
		return usageError{err.Error()}
	}
	fmt.Fprintln(a.stdout, text)
	return nil
}

// licenceEnd reads a number of days, or a date.
func licenceEnd(text string, now time.Time) (time.Time, error) {
	var days int
	if n, err := fmt.Sscanf(text, "%dd", &days); n == 1 && err == nil && text == fmt.Sprintf("%dd", days) && days > 0 && days <= 100*366 {
		return now.AddDate(0, 0, days), nil
	}
	if end, err := time.Parse(time.DateOnly, text); err == nil {
		return end, nil
	}
	return time.Time{}, usagef("--expires must be a number of days such as 365d, or a date such as 2027-12-31")
}

// errCommunity is a licence that is worth nothing now.
var errCommunity = errors.New("this counts as the community edition")

func checkLicence(ctx context.Context, a *app, args []string) error {
	if len(args) > 1 || len(args) == 1 && strings.HasPrefix(args[0], "-") {
		return wrongArguments("licence check", args[len(args)-1:])
	}
	var cfg licence.Config
	if err := settings.Load(ctx, &cfg); err != nil {
		return err
	}
	if len(args) == 1 {
		cfg.Token = args[0]
	}
	now := time.Now()
	l, err := cfg.Check(now)
	if err != nil {
		return err
	}
	state, left := l.State(now)
	fmt.Fprintf(a.stdout, "state     %s\n", state)
	if state != licence.None {
		agents := "any number"
		if l.Agents > 0 {
			agents = fmt.Sprint(l.Agents)
		}
		fmt.Fprintf(a.stdout, "customer  %s\nedition   %s\nagents    %s\nbegins    %s\nexpires   %s\ndays      %d\n", printable(l.Customer), l.Edition, agents,
			l.NotBefore.UTC().Format(time.DateOnly), l.Expires.UTC().Format(time.DateOnly), left)
	}
	if notice := l.Notice(now); notice != "" {
		fmt.Fprintln(a.stderr, "pawgate:", notice)
	}
	if cmp.Or(l.Edition, tool.Community) != tool.Community && l.EditionAt(now) == tool.Community {
		return errCommunity
	}
	return nil
}
