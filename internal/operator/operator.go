// Package operator holds the commands of the person who runs an installation:
// agents with their lists, rules, limits and personas, people, keys, approvals and grants, what
// agents remember, the emergency stop, the audit trail, OAuth subjects, migrations and upkeep. The command line runs them on the local database and the admin
// function on the deployed one; there is one implementation for both.
//
// A command is declared like a tool, by a row in the table below: its argument
// struct is its schema and, on the command line, its flags. It is not a tool,
// though: no agent can reach it, whatever its lists and scopes say. Who may run
// it is decided by whoever lets the request in: the operating system and the
// database's password, or IAM's right to invoke the admin function.
//
// Every command but migrate and maintain runs in one transaction together with
// its audit row, so a change that is not on record was not made. A key is shown once, in the
// answer that creates it; only its SHA-256 is stored. The package never prints
// or logs a key, and no answer but that of "agent export" carries the text of
// an imported file.
package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/category/memory"
	"pawgate/internal/fault"
	"pawgate/internal/licence"
	"pawgate/internal/near"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/migrate"
	"pawgate/internal/tool"
)

// Operator runs commands.
type Operator struct {
	// DB holds the agents.
	DB postgres.DB
	// Migrate applies missing migrations.
	Migrate func(context.Context) ([]migrate.Applied, error)
	// Embedder gives memories their vectors; nil for none.
	Embedder memory.Embedder
	// Catalog has the names that lists may hold.
	Catalog *catalog.Catalog
	// Env is part of every key: local, staging, prod.
	Env string
	// Licence is what was paid for. LicenceError is what is wrong with the one
	// that is configured: it keeps agents from being made, and nothing else,
	// because an emergency stop must not wait for a licence.
	Licence      licence.Licence
	LicenceError error
	// By names who runs the commands, for the record: "local:alice".
	By string
	// Now is the clock.
	Now func() time.Time
}

// session is one command under way, in its transaction.
type session struct {
	Operator
	db postgres.DB
	// about is the agent that the command was about, for the record.
	about string
}

// commands is the table. A name's underscores are spaces to the reader: the
// command key_create is "key create".
func (s *session) commands() tool.Category {
	return tool.Category{Name: "operator", Tools: append([]tool.Tool{
		tool.Write("migrate", "Bring the database to the schema of this version.", s.migrate, tool.Idempotent),

		tool.Write("agent_create", "Make an agent. It may call nothing until a tool is allowed.", s.agentCreate),
		tool.Write("agent_import", "Make an agent from a DuDuClaw agent.toml, and say what was changed.", s.agentImport, tool.Secret("source")),
		tool.Read("agent_export", "Give the agent.toml of an agent, as it was imported where nothing changed, or its SOUL.md.", s.agentExport),
		tool.Read("agent_list", "List the agents.", s.agentList),
		tool.Read("agent_show", "Show one agent with its lists and stops.", s.agentShow),
		tool.Read("agent_status", "Tell how the agents are doing: calls, errors, queue, cost.", s.agentStatus),
		tool.Write("agent_set", "Change who an agent is: name, role, superior, state.", s.agentSet, tool.Idempotent),
		tool.Destroy("agent_archive", "Put an agent away, and say what becomes of its keys, approvals and reports.", s.agentArchive),
		tool.Write("agent_restore", "Bring an archived agent back.", s.agentRestore),
		tool.Write("agent_allow", "Add patterns to an agent's allowed_tools, or remove them.", s.agentAllow, tool.Idempotent),
		tool.Write("agent_deny", "Add patterns to an agent's denied_tools, or remove them. Denied always wins.", s.agentDeny, tool.Idempotent),
		tool.Write("agent_ask", "Add patterns to an agent's approval_required_tools, or remove them.", s.agentAsk, tool.Idempotent),
		tool.Write("agent_scoped", "Add patterns to an agent's scoped_tools, which need a grant, or remove them.", s.agentScoped, tool.Idempotent),
		tool.Write("agent_rules", "Show an agent's argument rules, or set them from TOML or JSON.", s.agentRules, tool.Idempotent),
		tool.Write("agent_limits", "Show how often an agent may call, or set it for one class of tools.", s.agentLimits, tool.Idempotent),
		tool.Read("agent_explain", "Tell whether an agent may call a tool, step by step, and what would change it.", s.agentExplain),

		tool.Read("approval_list", "List what waits for a person, or what was decided.", s.approvalList),
		tool.Write("approve", "Approve a call or a grant that an agent waits for.", s.approve, tool.Idempotent),
		tool.Write("deny", "Deny it.", s.deny, tool.Idempotent),
		tool.Read("grant_list", "List the grants and approvals that are alive.", s.grantList),
		tool.Destroy("grant_revoke", "Revoke a grant, or an approval that was not used yet.", s.grantRevoke, tool.Idempotent),

		tool.Write("key_create", "Make a key for an agent. It is shown once.", s.keyCreate),
		tool.Read("key_list", "List the keys, without their secret part.", s.keyList),
		tool.Destroy("key_revoke", "Revoke a key at once and for good.", s.keyRevoke, tool.Idempotent),

		tool.Destroy("stop", "Halt one agent, or all of them, at once.", s.stop, tool.Idempotent),
		tool.Write("resume", "Lift an emergency stop.", s.resume, tool.Idempotent),
		tool.Read("status", "Show the emergency stops in force.", s.status),

		tool.Read("audit_list", "List calls, refusals and operator commands, newest first.", s.auditList),
		tool.Read("audit_verify", "Look for edited, removed or reordered rows of the audit trail.", s.auditVerify),
		tool.Destroy("audit_prune", "Drop whole months of the audit trail; the rest stays verifiable.", s.auditPrune),

		tool.Write("oauth_map", "Let the access tokens of a subject act as an agent.", s.oauthMap, tool.Idempotent),
		tool.Destroy("oauth_unmap", "Let them act no longer.", s.oauthUnmap, tool.Idempotent),
		tool.Read("oauth_list", "List the subjects and the agents they act as.", s.oauthList),

		tool.Write("maintain", "Remove what is of no use any more and prepare the coming months.", s.maintain, tool.Idempotent),
	}, slices.Concat(s.soulCommands(), s.peopleCommands(), s.memoryCommands(), s.odooCommands(), s.workCommands(), s.channelCommands(), s.costCommands(), s.skillCommands())...)}
}

// env is what may stand in a key.
var env = regexp.MustCompile(`^[a-z0-9]{1,16}$`)

// Commands describes every command: its name with spaces, what it does, and
// its arguments.
func Commands() []tool.Definition {
	tools := new(session).commands().Tools
	list := make([]tool.Definition, len(tools))
	for i, t := range tools {
		list[i] = t.Definition
		list[i].Name = strings.ReplaceAll(t.Name, "_", " ")
	}
	return list
}

// errUndone rolls a failed command back.
var errUndone = errors.New("command failed")

// Run runs a command, such as "key create", with JSON arguments, and returns
// its JSON result. The error is a *fault.Fault, a *fault.InvalidArgument, or
// an accident. requestID ties the record to the log; "" makes one.
func (o Operator) Run(ctx context.Context, requestID, command string, arguments []byte) (json.RawMessage, error) {
	if !env.MatchString(o.Env) {
		return nil, fmt.Errorf("PAWGATE_ENV must be 1 to 16 lower-case letters and digits")
	}
	if requestID == "" {
		requestID = uuid.NewString()
	}
	r := record{requestID: requestID, by: o.By, method: strings.ReplaceAll(command, " ", "."), started: o.Now()}
	var out tool.Outcome
	run := func(db postgres.DB) error {
		s := &session{Operator: o, db: db}
		out = s.call(ctx, requestID, command, arguments, &r)
		if out.OK == nil {
			return errUndone
		}
		return r.write(ctx, db, out, o.Now())
	}
	var err error
	switch command {
	case migrateCommand: // a transaction begun before the migrations may not see their tables
		err = run(o.DB)
	case maintainCommand: // what is tidied stays so, should the time be up before the rest
		err = run(o.DB)
	default:
		err = postgres.InTx(ctx, o.DB, func(tx pgx.Tx) error { return run(tx) })
	}
	if errors.Is(err, errUndone) {
		if err := r.write(ctx, o.DB, out, o.Now()); err != nil && !errors.Is(err, errNoSchema) {
			return nil, errors.Join(err, failure(out))
		}
		return nil, failure(out)
	}
	if err != nil {
		return nil, err
	}
	return out.OK, nil
}

// call finds the command and runs it.
func (s *session) call(ctx context.Context, requestID, command string, arguments []byte, r *record) tool.Outcome {
	table := s.commands()
	name := strings.ReplaceAll(command, " ", "_")
	for _, t := range table.Tools {
		if t.Name != name {
			continue
		}
		r.arguments = recorded(t.Definition, arguments)
		if err := s.checkSchema(ctx, name); err != nil {
			return tool.Failed(err, requestID)
		}
		who := caller.Caller{Credential: s.By, Scopes: []string{caller.ScopeAll, caller.ScopeOperator}, RequestID: requestID}
		out := tool.Assemble(table).Call(ctx, who, name, arguments)
		r.agent = s.about
		return out
	}
	r.unknown = true
	var names []string
	for _, c := range Commands() {
		names = append(names, c.Name)
	}
	return tool.Outcome{Fault: fault.New(fault.NotFound, "unknown command %q%s", short(command), near.DidYouMean(command, names))}
}

// failure is the error of an outcome that is not OK.
func failure(out tool.Outcome) error {
	if out.Invalid != nil {
		return out.Invalid
	}
	return out.Fault
}
