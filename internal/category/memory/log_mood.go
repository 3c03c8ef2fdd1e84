package memory

import (
	"context"
	"strings"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
)

// moodImportance keeps moods from crowding out what matters more.
const moodImportance = 3

type logMoodArgs struct {
	Mood string `json:"mood" doc:"Such as calm or 焦慮" maxlen:"40"`
	Note string `json:"note,omitempty" doc:"-" maxlen:"1000"`
}

func (a logMoodArgs) Validate() error {
	if strings.TrimSpace(a.Mood) == "" {
		return fault.Invalid("mood", "mood must not be blank")
	}
	return nil
}

// logMood keeps a mood as an episode of the caller. The same mood later is a
// mood of its own, so its time is part of the content.
func (m memory) logMood(ctx context.Context, who caller.Caller, a logMoodArgs) (storeResult, error) {
	mood := strings.TrimSpace(a.Mood)
	content := "[mood] " + mood
	if note := strings.TrimSpace(a.Note); note != "" {
		content += ": " + note
	}
	content += " (" + m.now().UTC().Format("2006-01-02 15:04:05 UTC") + ")"
	return m.keep(ctx, draft{
		agent: who.Agent, content: content, tags: cleanTags([]string{"mood", mood}), marks: []string{},
		layer: episodic, importance: moodImportance, origin: originAgent, trust: trust(who, originAgent, 1), sourceEvent: "agent_mood",
	})
}
