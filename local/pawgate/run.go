package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/client/chat"
	"pawgate/internal/loop"
	"pawgate/internal/plural"
	"pawgate/internal/postgres"
	"pawgate/internal/router"
	"pawgate/internal/settings"
	"pawgate/local/server"
)

//go:embed run_agent.sql
var runAgentSQL string

func runCommands() []command {
	return []command{
		{name: "run", usage: "[flags] PROMPT", about: "Let a model answer a prompt with an agent's tools.",
			detail: "The model's server is PAWGATE_CHAT_URL; every tool call passes the gate. What happens\n" +
				"goes to stderr, the answer to stdout. PROMPT - is read from standard input.\n\n" +
				"  --agent NAME         in whose name (default)\n" +
				"  --model NAME         instead of the agent's own, or PAWGATE_CHAT_MODEL\n" +
				"  --system TEXT        what the model is told first; else the agent's soul\n" +
				"  --tools PATTERNS     only these of the agent's tools, such as memory_*,web_search\n" +
				"  --session NAME       in usage rows; runs of one name belong together\n" +
				"  --max-rounds N       completions (20)\n" +
				"  --max-tokens N       read and written, over all rounds (no limit)\n" +
				"  --max-cost DOLLARS   such as 0.50; needs a price for the model (no limit)\n" +
				"  --timeout DURATION   from start to end (10m)\n" +
				"  --quiet              say nothing on stderr\n" +
				"  --json               print the whole result\n\n" +
				"Exit status 3: a limit ended the run, or its answer was cut or withheld.\n",
			examples: []string{`run --agent researcher "What do we know about the backup?"`, `run --tools memory_* --max-cost 0.10 --json "Sum up this week"`}, run: runRun},
	}
}

// runFlags are a command line of run.
type runFlags struct {
	agent, model, system, tools, session, cost string
	rounds                                     int
	tokens                                     int64
	wall                                       time.Duration
	quiet, json                                bool
	prompt                                     string
}

func (a *app) parseRun(args []string) (runFlags, error) {
	var f runFlags
	set := flag.NewFlagSet("run", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.agent, "agent", "default", "")
	set.StringVar(&f.model, "model", "", "")
	set.StringVar(&f.system, "system", "", "")
	set.StringVar(&f.tools, "tools", "", "")
	set.StringVar(&f.session, "session", "", "")
	set.StringVar(&f.cost, "max-cost", "", "")
	set.IntVar(&f.rounds, "max-rounds", 0, "")
	set.Int64Var(&f.tokens, "max-tokens", 0, "")
	set.DurationVar(&f.wall, "timeout", 0, "")
	set.BoolVar(&f.quiet, "quiet", false, "")
	set.BoolVar(&f.json, "json", false, "")
	words, err := interspersed(set, args)
	switch {
	case err != nil:
		return f, flagError(set, err)
	case len(words) != 1:
		return f, usagef("run takes one prompt, in quotes, or - to read it from standard input")
	case f.rounds < 0 || f.tokens < 0 || f.wall < 0:
		return f, usagef("limits must not be negative")
	}
	if f.prompt = words[0]; f.prompt == "-" {
		text, err := io.ReadAll(io.LimitReader(a.stdin, maxPrompt))
		if err != nil {
			return f, fmt.Errorf("read prompt: %w", err)
		}
		f.prompt = string(text)
	}
	if strings.TrimSpace(f.prompt) == "" {
		return f, usagef("the prompt is empty")
	}
	return f, nil
}

// maxPrompt is how much of standard input is read, in bytes.
const maxPrompt = 4 << 20

// limits are those of the flags; a zero is the loop's default.
func (f runFlags) limits() (loop.Limits, error) {
	l := loop.Limits{Rounds: f.rounds, Tokens: f.tokens, Wall: f.wall}
	if f.cost == "" {
		return l, nil
	}
	var dollars float64
	if _, err := fmt.Sscanf(f.cost, "%g", &dollars); err != nil || dollars <= 0 || dollars > 1e6 || math.IsNaN(dollars) {
		return l, usagef("--max-cost must be a number of dollars, such as 0.50")
	}
	l.Micros = max(1, int64(math.Round(dollars*1e6)))
	return l, nil
}

func runRun(ctx context.Context, a *app, args []string) error {
	f, err := a.parseRun(args)
	if err != nil {
		return err
	}
	limits, err := f.limits()
	if err != nil {
		return err
	}
	var s server.Settings
	if err := settings.Load(ctx, &s); err != nil {
		return err
	}
	a.logTo(max(s.LogLevel, slog.LevelWarn))
	model, err := chat.New(s.Chat) // before the database is started
	if err != nil {
		return err
	}
	local, err := server.Open(ctx, s, a.log)
	if err != nil {
		return err
	}
	defer local.Close()
	agent, err := postgres.One[struct{ Model, Soul string }](ctx, local.DB, runAgentSQL, pgx.StrictNamedArgs{"agent_id": f.agent})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("read agent: %w", err)
	}
	if err := local.CheckAgent(ctx, f.agent); err != nil {
		return err
	}
	q := loop.Request{Agent: f.agent, Session: f.session, Model: cmp.Or(f.model, agent.Model, s.Chat.Model),
		System: cmp.Or(f.system, agent.Soul, fmt.Sprintf("You are agent %s. %s", f.agent, router.Instructions)), Prompt: f.prompt, Limits: limits}
	if q.Model == "" {
		return usagef("which model? --model, PAWGATE_CHAT_MODEL or the agent's own say it")
	}
	as := router.Identity{Agent: f.agent, Credential: "local"}
	if f.tools != "" {
		as.Tools = strings.Split(f.tools, ",")
	}
	gate := local.Router.LoopDoor(as)
	if listed, err := gate.List(ctx); err == nil && len(listed) == 0 && f.tools != "" { // another failure is the loop's to tell
		return usagef("no tool that agent %s may call matches --tools %s; pawgate agent show %s says what it may call", f.agent, f.tools, f.agent)
	}
	o := loop.Options{Gate: gate, Model: model, Meter: loop.Ledger{DB: local.DB}}
	if !f.quiet {
		o.Notify = a.tell
	}
	result, err := loop.New(o).Run(ctx, q)
	return a.showRun(result, err, f)
}

// showRun prints what a run came to, and says how it ended.
func (a *app) showRun(result loop.Result, failed error, f runFlags) error {
	if f.json {
		shown := struct {
			loop.Result
			Error string `json:"error,omitempty"`
		}{Result: result}
		if failed != nil {
			shown.Error = failed.Error()
		}
		encoded, err := json.Marshal(shown)
		if err != nil {
			return fmt.Errorf("encode result: %w", err)
		}
		if err := a.show(encoded, true, view{}); err != nil {
			return err
		}
	} else if result.Answer != "" {
		fmt.Fprintln(a.stdout, prose(result.Answer))
	}
	switch {
	case failed != nil && result.End == loop.Cancelled:
		return errors.New("the run was interrupted")
	case failed != nil:
		return failed
	case result.End == loop.Answered:
		return nil
	}
	return limitError{"the run ended early: " + ends[result.End]}
}

var ends = map[loop.End]string{
	loop.Rounds:   "it had its number of rounds (--max-rounds)",
	loop.Tokens:   "it had its number of tokens (--max-tokens)",
	loop.Money:    "it spent what it may (--max-cost)",
	loop.Time:     "its time was up (--timeout)",
	loop.Cut:      "the answer is cut at the most tokens of one completion",
	loop.Filtered: "the model or its provider would not answer",
}

// tell says on stderr what happens.
func (a *app) tell(e loop.Event) {
	line := func(format string, args ...any) {
		fmt.Fprintf(a.stderr, "%2d  %s\n", e.Round, fmt.Sprintf(format, args...))
	}
	switch e.Kind {
	case loop.Completed:
		line("%s read, %d written%s", plural.Of(e.Usage.Prompt(), "token"), e.Usage.Output, dollars(e.Micros))
	case loop.Said:
		line("“%s”", brief(e.Text))
	case loop.Called:
		line("→ %s %s", printable(e.Tool), brief(e.Text))
	case loop.Returned:
		mark := "←"
		if e.Failed {
			mark = "✗"
		}
		line("%s %s %s (%s)", mark, printable(e.Tool), brief(e.Text), e.Took.Round(time.Millisecond))
	case loop.Waited:
		line("%s; asking again in %s", printable(e.Text), e.Took.Round(100*time.Millisecond))
	}
}

func dollars(micros int64) string {
	if micros == 0 {
		return ""
	}
	return fmt.Sprintf(", $%.6f", float64(micros)/1e6)
}

// brief is the beginning of a text, on one line.
func brief(text string) string {
	const most = 160
	runes := []rune(printable(strings.Join(strings.Fields(text), " ")))
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(runes)
}

// prose is a text of several lines without what steers a terminal: control
// characters, and those that turn the direction of writing.
func prose(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, text)
}
