package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/schedule"
)

type scheduleImportArgs struct {
	Source   string `json:"source" doc:"The tasks, as JSON objects or one array of them: name, cron, task, agent_id, cron_timezone, enabled, notify_channel, notify_chat_id, notify_thread_id" maxlen:"1000000"`
	AgentID  string `json:"agent_id,omitempty" doc:"Whose they are, where a task names no agent" maxlen:"64"`
	Timezone string `json:"timezone,omitempty" doc:"IANA zone of tasks that name none: DuDuClaw took its host's; UTC if left out" maxlen:"64"`
}

// importedTask is a task as DuDuClaw has it.
type importedTask struct {
	Name     string `json:"name"`
	Cron     string `json:"cron"`
	Task     string `json:"task"`
	AgentID  string `json:"agent_id"`
	Timezone string `json:"cron_timezone"`
	Enabled  *bool  `json:"enabled"`
	Channel  string `json:"notify_channel"`
	ChatID   string `json:"notify_chat_id"`
	ThreadID string `json:"notify_thread_id"`
}

type scheduleImportLine struct {
	Name     string   `json:"name"`
	AgentID  string   `json:"agent_id"`
	ID       string   `json:"id,omitzero"`
	Cron     string   `json:"cron"`
	NextRuns []string `json:"next_runs,omitzero"`
	Note     string   `json:"note,omitzero"`  // what was changed
	Error    string   `json:"error,omitzero"` // why it was not taken over
}

type scheduleImportResult struct {
	Imported int                  `json:"imported"`
	Refused  int                  `json:"refused"`
	Tasks    []scheduleImportLine `json:"tasks"`
}

// scheduleImport takes over the scheduled tasks of DuDuClaw, whose weekdays
// count from 1, Sunday: they are rewritten, and each line says so. A task that
// cannot be taken over is told of and keeps none of the others back.
func (s *session) scheduleImport(ctx context.Context, who caller.Caller, a scheduleImportArgs) (scheduleImportResult, error) {
	tasks, err := readTasks(a.Source)
	if err != nil {
		return scheduleImportResult{}, err
	}
	result := scheduleImportResult{Tasks: []scheduleImportLine{}}
	for _, t := range tasks {
		if t.AgentID == "" || t.AgentID == "default" && a.AgentID != "" { // DuDuClaw's word for the main agent
			t.AgentID = a.AgentID
		}
		line, err := s.importTask(ctx, who, t, a.Timezone)
		if err != nil {
			return scheduleImportResult{}, err
		}
		if line.Error != "" {
			result.Refused++
		} else {
			result.Imported++
		}
		result.Tasks = append(result.Tasks, line)
	}
	return result, nil
}

func (s *session) importTask(ctx context.Context, who caller.Caller, t importedTask, zone string) (scheduleImportLine, error) {
	cron, changed := schedule.FromDuDuClaw(t.Cron)
	line := scheduleImportLine{Name: t.Name, AgentID: t.AgentID, Cron: cron}
	if changed {
		line.Note = fmt.Sprintf("%s is written %s here, where 0 and 7 are Sunday and 1 is Monday", t.Cron, cron)
	}
	if t.AgentID == "" {
		line.Error = "it names no agent; say whose it is with --agent-id"
		return line, nil
	}
	args := map[string]any{"cron": cron, "task": t.Task, "name": t.Name, "agent_id": t.AgentID}
	for name, value := range map[string]string{"cron_timezone": t.Timezone, "notify_channel": t.Channel, "notify_chat_id": t.ChatID, "notify_thread_id": t.ThreadID} {
		if value != "" {
			args[name] = value
		}
	}
	if t.Timezone == "" && zone != "" {
		args["cron_timezone"] = zone
	}
	owner := caller.Caller{Agent: t.AgentID, Credential: who.Credential, Scopes: []string{caller.ScopeAll}, RequestID: who.RequestID}
	made, err := ask[struct {
		ID       string   `json:"id"`
		NextRuns []string `json:"next_runs"`
	}](ctx, s, owner, "schedule_task", args)
	if err == nil && t.Enabled != nil && !*t.Enabled {
		_, err = ask[struct{}](ctx, s, owner, "pause_cron_task", map[string]any{"id": made.ID})
	}
	line.ID, line.NextRuns = made.ID, made.NextRuns
	if invalid, ok := fault.InvalidOf(err); ok {
		line.Error = invalid.Message
		return line, nil
	}
	if f, ok := fault.Of(err); ok && f.Reason != fault.Internal && f.Reason != fault.Unavailable {
		line.Error = f.Message
		return line, nil
	}
	return line, err
}

// readTasks reads JSON objects, one after another or in an array.
func readTasks(source string) ([]importedTask, error) {
	bad := fault.Invalid("source", "source must be JSON: objects with name, cron and task, or an array of them")
	if strings.HasPrefix(strings.TrimSpace(source), "[") {
		var tasks []importedTask
		if json.Unmarshal([]byte(source), &tasks) != nil {
			return nil, bad
		}
		return tasks, nil
	}
	var tasks []importedTask
	for dec := json.NewDecoder(strings.NewReader(source)); ; {
		var t importedTask
		err := dec.Decode(&t)
		if errors.Is(err, io.EOF) && len(tasks) > 0 {
			return tasks, nil
		}
		if err != nil {
			return nil, bad
		}
		tasks = append(tasks, t)
	}
}
