package agent

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/work"
)

var (
	//go:embed spawn_ephemeral.sql
	spawnEphemeralSQL string
	//go:embed spawn_ephemeral_may.sql
	spawnEphemeralMaySQL string
)

// maxEphemerals is how many ephemeral agents of one agent are there at once.
const maxEphemerals = 32

// maxEphemeralTools is how many tools one of them may have.
const maxEphemeralTools = 64

type spawnEphemeralArgs struct {
	Instruction string   `json:"instruction" doc:"Who it is" maxlen:"16000"`
	Context     string   `json:"context" doc:"What to do, with what it needs to know" maxlen:"100000"`
	Tools       []string `json:"tools" doc:"Some of yours"`
	Tier        string   `json:"tier,omitempty" doc:"standard if left out" enum:"cheap,standard,preferred"`
}

var exactTool = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// Validate checks what needs no database.
func (a spawnEphemeralArgs) Validate() error {
	switch {
	case strings.TrimSpace(a.Instruction) == "":
		return fault.Invalid("instruction", "instruction must not be empty")
	case len(a.Tools) == 0 || len(a.Tools) > maxEphemeralTools:
		return fault.Invalid("tools", "tools must name 1 to %d tools", maxEphemeralTools)
	}
	for _, name := range a.Tools {
		if !exactTool.MatchString(name) {
			return fault.Invalid("tools", "%q is no tool's name; give exact names, without patterns", name)
		}
	}
	return nil
}

// spawnEphemeral makes an agent for one piece of work and queues that. The
// agent has the caller's restrictions and the tools named, which the caller
// must be allowed; an hour after its work it is archived. It fails with
// fault.Denied for a tool that the caller may not call, whether or not there is
// one of that name, and with work.Runaway for too many at once.
func (c agent) spawnEphemeral(ctx context.Context, who caller.Caller, a spawnEphemeralArgs) (queuedResult, error) {
	id := "eph-" + hex.EncodeToString(random(6))
	var queued work.Queued
	err := postgres.InTx(ctx, c.db, func(tx pgx.Tx) error {
		if err := mayMake(ctx, tx, who, a.Tools); err != nil {
			return err
		}
		_, err := postgres.Exec(ctx, tx, spawnEphemeralSQL, pgx.StrictNamedArgs{"agent": who.Agent, "id": id, "tools": a.Tools})
		if err != nil {
			return fmt.Errorf("write agent: %w", err)
		}
		queued, err = enqueue(ctx, tx, who, work.Item{Source: "spawn_ephemeral", Agent: id, NarrowedBy: []string{who.Agent},
			Payload: work.Prompt{System: a.Instruction, Prompt: a.Context, Tier: a.Tier}})
		return err
	})
	if err != nil {
		return queuedResult{}, err
	}
	c.tell(ctx)
	return receipt(queued, id), nil
}

// mayMake locks the caller's row, so that its ephemeral agents are counted
// truly, and asks whether it may call each of the tools.
func mayMake(ctx context.Context, tx pgx.Tx, who caller.Caller, tools []string) error {
	may, err := postgres.One[struct {
		Live    int
		Missing []string
	}](ctx, tx, spawnEphemeralMaySQL, pgx.StrictNamedArgs{"agent": who.Agent, "tools": tools})
	switch {
	case err != nil:
		return fmt.Errorf("read maker: %w", err)
	case len(may.Missing) > 0:
		return fault.New(fault.Denied, "you may not call %s yourself, so an agent of yours may not either", strings.Join(may.Missing, ", "))
	case may.Live >= maxEphemerals:
		return fault.New(work.Runaway, "%d ephemeral agents of yours are there, which is the most; wait for their answers", may.Live)
	}
	return nil
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return b
}
