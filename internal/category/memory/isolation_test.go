package memory_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/caller"
	"pawgate/internal/category/memory"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool/tooltest"
)

// step is one call.
type step struct{ tool, args string }

// life is what an agent does and looks at in the test below; $N is the memory
// that the call number N, from 0, has made.
var life = []step{
	{"memory_store", `{"content":"Robert Smith signed the harbour contract","importance":9,"tags":["deal"]}`},
	{"memory_store", `{"content":"a rumour about the harbour","origin":"web:bad.example"}`},
	{"memory_store", `{"content":"so the harbour closes","derived_from":["$1"]}`},
	{"memory_store", `{"content":"always greet the harbour master","layer":"semantic","derived_from":["$0"]}`},
	{"memory_store", `{"content":"TODO: call the harbour master"}`},
	{"memory_store", `{"content":"the harbour opens at nine"}`},
	{"memory_store", `{"content":"the harbour opens at ten","supersedes":"$5"}`},
	{"memory_store", `{"content":"Ann team: Platform","subject":"Ann","predicate":"team","object":"Platform"}`},
	{"memory_store", `{"content":"the repair of the crane was a success"}`},
	{"memory_alias_add", `{"canonical":"Robert","alias":"Bob"}`},
	{"memory_alias_add", `{"canonical":"Bobby","alias":"Robert"}`},
	{"user_profile_record", `{"user_id":"u1","predicate":"timezone","value":"Asia/Taipei"}`},
	{"log_mood", `{"mood":"calm","note":"by the harbour"}`},
	{"memory_alias_list", `{}`},
	{"memory_search", `{"query":"bob harbour","explain":true}`},
	{"memory_search", `{"query":"harbour","tags":["deal"],"explain":true}`},
	{"memory_search", `{"query":""}`},
	{"memory_search_by_layer", `{"query":"harbour","layer":"semantic"}`},
	{"memory_read", `{"memory_id":"$5"}`},
	{"memory_fetch_batch", `{"ids":["$0","$3"],"include_metadata":true}`},
	{"memory_get_history", `{"subject":"Ann","predicate":"team"}`},
	{"memory_get_at", `{"subject":"Ann","predicate":"team","at":"2026-12-31"}`},
	{"memory_successful_conversations", `{"topic":"crane"}`},
	{"memory_episodic_pressure", `{}`},
	{"memory_consolidation_status", `{}`},
	{"memory_improve", `{"topic":"harbour"}`},
	{"user_profile_get", `{"user_id":"u1"}`},
	{"user_code_profile", `{}`},
	{"session_restore_context", `{"query":"harbour"}`},
	{"memory_invalidate_by_origin", `{"origin":"web:bad.example","dry_run":true}`},
	{"memory_invalidate_by_origin", `{"origin":"web:bad.example"}`},
	{"memory_read", `{"memory_id":"$2"}`},
	{"memory_search", `{"query":"harbour"}`},
}

var (
	memoryID  = regexp.MustCompile(`m_[0-9a-zA-Z]+`)
	reference = regexp.MustCompile(`\$\d+`)
)

// live lives it at a time and gives the answers, with the ids as numbers in the
// order in which they came up.
func live(t *testing.T, who caller.Caller, at time.Time, c func(time.Time) call, steps []step) []string {
	t.Helper()
	made, names := map[int]string{}, map[string]string{}
	var answers []string
	for i, step := range steps {
		args := reference.ReplaceAllStringFunc(step.args, func(ref string) string {
			var n int
			_, _ = fmt.Sscanf(ref, "$%d", &n)
			return made[n]
		})
		answer := c(at.Add(time.Duration(i)*time.Minute))(who, step.tool, args)
		if step.tool == "memory_store" {
			made[i] = memoryID.FindString(answer)
		}
		answers = append(answers, step.tool+" "+memoryID.ReplaceAllStringFunc(answer, func(id string) string {
			if names[id] == "" {
				names[id] = fmt.Sprint("m#", len(names))
			}
			return names[id]
		}))
	}
	return answers
}

// takenBack is where in it something is taken back.
var takenBack = slices.IndexFunc(life, func(s step) bool { return s.tool == "memory_invalidate_by_origin" })

// call makes a call and gives its answer.
type call func(who caller.Caller, tool, args string) string

// TestMEM13NothingOfAnotherShows: whatever another agent has lived through, the
// same names and origins and texts, an agent's answers are those that it gets
// alone in the world, and the other's memories stay as they were.
func TestMEM13NothingOfAnotherShows(t *testing.T) {
	t.Parallel()
	world := func(others ...string) (answers []string, exported map[string]string) {
		db := postgrestest.Clone(t)
		addAgent(t, db, "a", "b")
		at := func(when time.Time) call {
			c := memory.New(db, func() time.Time { return when })
			return func(who caller.Caller, tool, args string) string {
				out := tooltest.Call(t, c, who, tool, args)
				if out.OK == nil {
					t.Fatalf("%s %s: %+v", tool, args, out)
				}
				return string(out.OK)
			}
		}
		for _, other := range others {
			live(t, tooltest.Who(other), noon, at, life[:takenBack]) // what is there must be what could show
		}
		before := export(t, db, "b")
		answers = live(t, tooltest.Who("a"), noon.Add(10*time.Minute), at, life)
		if after := export(t, db, "b"); after != before {
			t.Errorf("of b there was\n%s\nand is\n%s", before, after)
		}
		return answers, map[string]string{"a": export(t, db, "a")}
	}
	alone, _ := world()
	crowded, exported := world("b")
	if diff := cmp.Diff(alone, crowded); diff != "" {
		t.Errorf("what another lived through shows (-alone +with another):\n%s", diff)
	}
	if strings.Contains(exported["a"], `"agent_id":"b"`) {
		t.Error("the export has memories of another")
	}
}
