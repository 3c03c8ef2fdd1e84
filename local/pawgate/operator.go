package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/user"
	"slices"
	"time"

	"pawgate/internal/fault"
	"pawgate/internal/operator"
	"pawgate/internal/postgres/migrate"
	"pawgate/internal/settings"
	"pawgate/internal/tool"
	"pawgate/local/server"
)

// row says how one operator's command looks on the command line. Its flags
// come from its schema.
type row struct {
	name     string
	operands []operand
	examples []string
	view     view
	// local are arguments that the command line acts on itself; filled are
	// those of the command that run gives and nobody types.
	local  []tool.Property
	filled []string
	// run replaces the usual way, which is to send the arguments and show the
	// result.
	run func(ctx context.Context, a *app, p parsed, r row) error
}

// The operands that several commands share.
var (
	anAgent    = operand{word: "AGENT", argument: "agent_id"}
	maybeAgent = operand{word: "AGENT", argument: "agent_id", optional: true}
)

func operatorRows() []row {
	return slices.Concat(migrateRows(), agentRows(), soulRows(), peopleRows(), keyRows(), approvalRows(), stopRows(), auditRows(), oauthRows(), memoryRows(), odooRows(), workRows(), channelRows(), costRows(), skillRows())
}

// schema is what may stand on the command line.
func (r row) schema(of *tool.Schema) *tool.Schema {
	s := *of
	s.Properties = slices.DeleteFunc(slices.Concat(s.Properties, r.local), func(p tool.Property) bool { return slices.Contains(r.filled, p.Name) })
	return &s
}

// operatorCommands joins the rows with the commands they stand for.
func operatorCommands() []command {
	rows := operatorRows()
	definitions := operator.Commands()
	list := make([]command, 0, len(rows))
	for _, r := range rows {
		i := slices.IndexFunc(definitions, func(d tool.Definition) bool { return d.Name == r.name })
		d := definitions[i] // a test holds rows and commands together
		schema := r.schema(d.Args)
		list = append(list, command{
			name: r.name, usage: usageLine(schema, r.operands), about: d.About,
			detail: describe(schema, r.operands), examples: r.examples,
			run: func(ctx context.Context, a *app, line []string) error {
				p, err := parse(schema, r.operands, line)
				if err != nil {
					return err
				}
				if r.run != nil {
					err = r.run(ctx, a, p, r)
				} else {
					err = a.perform(ctx, p, r)
				}
				return asTyped(err, schema, r.operands)
			},
		})
	}
	return list
}

// perform runs the command and shows its result.
func (a *app) perform(ctx context.Context, p parsed, r row) error {
	return a.performAndJudge(ctx, p, r, func(json.RawMessage) error { return nil })
}

// performAndJudge fails also for a result that is none to be content with.
func (a *app) performAndJudge(ctx context.Context, p parsed, r row, judge func(json.RawMessage) error) error {
	run, leave, err := a.runner(ctx, p.stack)
	if err != nil {
		return err
	}
	defer leave()
	result, err := run(ctx, r.name, p.args)
	if err != nil {
		return err
	}
	if err := a.show(result, p.json, r.view); err != nil {
		return err
	}
	return judge(result)
}

// runner runs operator's commands somewhere.
type runner func(ctx context.Context, command string, args map[string]any) (json.RawMessage, error)

// runner finds the database, or the deployment, that commands run on.
func (a *app) runner(ctx context.Context, stack string) (runner, func(), error) {
	if stack != "" {
		run, err := stackRunner(ctx, stack)
		return run, func() {}, err
	}
	return a.localRunner(ctx)
}

// localRunner runs commands in this process. The private cluster is migrated
// on the way, because nobody else looks after it; a database of one's own is
// left to "pawgate migrate".
func (a *app) localRunner(ctx context.Context) (runner, func(), error) {
	var s server.Settings
	if err := settings.Load(ctx, &s); err != nil {
		return nil, nil, err
	}
	private := s.URL == ""
	url, leave, err := server.Database(ctx, s, a.log)
	if err != nil {
		return nil, nil, err
	}
	s.URL = url
	if private {
		if _, err := migrate.Up(ctx, url); err != nil {
			leave()
			return nil, nil, err
		}
	}
	o, closeDB, err := operator.Open(ctx, operator.Settings{Config: s.Config, Env: s.Env, Licence: s.Licence, Embeddings: s.Embeddings}, "local:"+userName(), time.Now)
	if err != nil {
		leave()
		return nil, nil, err
	}
	run := func(ctx context.Context, command string, args map[string]any) (json.RawMessage, error) {
		encoded, err := json.Marshal(args)
		if err != nil {
			return nil, fmt.Errorf("encode arguments: %w", err)
		}
		result, err := o.Run(ctx, "", command, encoded)
		if err != nil {
			return nil, asError(operator.AsFault(err))
		}
		return result, nil
	}
	return run, func() { closeDB(); leave() }, nil
}

// userName is who the record names.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}

// asError makes a broken argument a wrong use of the command line.
func asError(f *fault.Fault) error {
	if f.Reason == operator.InvalidArgument {
		return usageError{f.Message}
	}
	return f
}
