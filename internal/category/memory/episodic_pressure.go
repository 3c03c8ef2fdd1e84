package memory

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
)

//go:embed episodic_pressure.sql
var episodicPressureSQL string

// highPressure is the pressure from which an agent should reflect on what
// happened and store what it learned.
const highPressure = 10

type episodicPressureArgs struct {
	HoursAgo float64 `json:"hours_ago,omitempty" doc:"Or 24" min:"0.01" max:"8760"`
}

type episodicPressureResult struct {
	// Pressure is a tenth of the importance of all episodes together.
	Pressure float64   `json:"pressure"`
	Episodes int       `json:"episodes"`
	Since    time.Time `json:"since"`
	High     bool      `json:"high"`
	Advice   string    `json:"advice,omitzero"`
}

// episodicPressure says how much has happened lately.
func (m memory) episodicPressure(ctx context.Context, who caller.Caller, a episodicPressureArgs) (episodicPressureResult, error) {
	since := m.now().Add(-time.Duration(cmp.Or(a.HoursAgo, 24) * float64(time.Hour)))
	row, err := postgres.One[struct {
		Importance float64
		Episodes   int
	}](ctx, m.db, episodicPressureSQL, pgx.StrictNamedArgs{"agent": who.Agent, "since": since})
	if err != nil {
		return episodicPressureResult{}, fmt.Errorf("measure episodic pressure: %w", err)
	}
	result := episodicPressureResult{Pressure: row.Importance / 10, Episodes: row.Episodes, Since: since}
	if result.High = result.Pressure > highPressure; result.High {
		result.Advice = "Much has happened: look it through and store what holds in general with layer semantic."
	}
	return result, nil
}
