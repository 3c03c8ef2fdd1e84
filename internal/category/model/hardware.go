package model

import (
	"context"

	"pawgate/internal/caller"
	"pawgate/internal/client/llama/hardware"
)

type hardwareArgs struct{}

type hardwareResult struct {
	hardware.Info
	Backend string `json:"backend"` // what would compute: cuda, rocm, metal or cpu
	// Room is null when no memory size could be found out.
	Room *hardware.Budget `json:"room_for_model"`
}

// hardware tells what the host offers. It does not fail: what cannot be found
// out is null, "unknown", and a note.
func (m model) hardware(ctx context.Context, _ caller.Caller, _ hardwareArgs) (hardwareResult, error) {
	info := m.host.Hardware.Read(ctx)
	r := hardwareResult{Info: info, Backend: info.Backend()}
	if room, ok := info.Budget(); ok {
		r.Room = &room
	}
	return r, nil
}
