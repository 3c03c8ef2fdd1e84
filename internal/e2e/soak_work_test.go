//go:build e2e && soak

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
	"pawgate/internal/work"
)

// workSchedules is how many schedules the soak has, each due once a minute at a
// second of its own.
const workSchedules = 40

// TestSoakWork: work is queued and schedules are due for as long as asked, while
// two processes that do the work and three that tick (the two and one more) are
// killed with kill -9 at random. At the end every slot has one record and one
// piece of work, and every piece of work one result or one dead letter.
func TestSoakWork(t *testing.T) {
	length := soakFor(t)
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 2))
	t.Logf("seed %d", seed)
	db := startPostgres(t)
	model := startSlowModel(t)
	env := []string{"DATABASE_URL=" + db.URL, "PAWGATE_CHAT_URL=" + model.URL + "/v1", "PAWGATE_CHAT_MODEL=stub"}
	servers := []*instance{startInstance(t, env...), startInstance(t, env...), startInstance(t, append(env, "PAWGATE_WORKERS=0")...)}
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: db.URL, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s := &workSoak{t: t, pool: pool, url: db.URL}
	s.prepare()

	done := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() { s.ask(done) })
	kills := [3]int{}
	for end := time.Now().Add(length); time.Now().Before(end); {
		time.Sleep(time.Duration(1500+rng.IntN(4000)) * time.Millisecond)
		n := rng.IntN(len(servers))
		servers[n].kill(t)
		kills[n]++
		time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		servers[n].start(t)
	}
	close(done)
	asking.Wait()
	s.exec(`update schedules set enabled = false`)
	eventually(t, 5*time.Minute, "everything that was queued has an end", func() bool {
		return query[int](t, db.URL, `select count(*) from work where finished_at is null`) == 0
	})
	s.verify()
	t.Logf("in %s: kill -9 of the two workers %d and %d times, of the third ticker %d times; the model was asked %d times",
		length, kills[0], kills[1], kills[2], model.asked.Load())
}

type workSoak struct {
	t    *testing.T
	pool postgres.DB
	url  string

	asked []string // the ids that Enqueue promised
}

func (s *workSoak) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.pool.Exec(context.Background(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// askers are so many that none of them asks for more in a minute than the queue
// lets an agent ask for.
const askers = 40

// prepare makes agents and schedules.
func (s *workSoak) prepare() {
	s.exec(`insert into agents (id, model, allowed_tools) select 'asker' || n, 'stub', '{}' from generate_series(1, $1::int) n`, askers)
	s.exec(`insert into agents (id, model, allowed_tools) select 'doer' || n, 'stub', '{}' from generate_series(1, 10) n`)
	s.exec(`insert into schedules (id, agent_id, created_by, name, cron, timezone, task, next_slot, overlap, misfire, created_at)
		select 's' || n, 'doer' || 1 + n % 10, 'asker1', 's' || n, n || ' * * * * *', 'UTC', 'slot of s' || n,
		       date_trunc('minute', now()) + interval '1 minute' + n * interval '1 second', 'queue', 'all', now()
		from generate_series(1, $1::int) n`, workSchedules)
}

// ask queues prompts, in transactions of which one in ten is rolled back.
func (s *workSoak) ask(done <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		case <-time.After(150 * time.Millisecond):
		}
		undone := n%10 == 9
		var id string
		err := postgres.InTx(context.Background(), s.pool, func(tx pgx.Tx) error {
			queued, err := work.Enqueue(context.Background(), tx, work.Item{Kind: work.KindPrompt, Source: "soak", Agent: fmt.Sprint("doer", 1+n%10), From: fmt.Sprint("asker", 1+n%askers),
				Payload: work.Prompt{Prompt: fmt.Sprintf("prompt %d", n)}, Scopes: []string{"*"}})
			id = queued.ID.String()
			if err == nil && undone {
				err = io.ErrUnexpectedEOF
			}
			return err
		})
		switch {
		case err == nil:
			s.asked = append(s.asked, id)
		case !undone:
			s.t.Errorf("queue prompt %d: %v", n, err)
		}
	}
}

// verify holds what there is against what was promised.
func (s *workSoak) verify() {
	t := s.t
	t.Helper()
	count := func(sql string, args ...any) int { return query[int](t, s.url, sql, args...) }
	if n := count(`select count(*) from work where source = 'soak'`); n != len(s.asked) {
		t.Errorf("%d prompts were promised and %d are there", len(s.asked), n)
	}
	if n := count(`select count(*) from unnest($1::uuid[]) id where not exists (select from work w where w.id = id and w.state in ('done', 'dead'))`, s.asked); n != 0 {
		t.Errorf("%d promised prompts have no result and no dead letter", n)
	}
	if n := count(`select count(*) from work where state = 'done' and (result = '' or error <> '') or state = 'dead' and (result <> '' or error = '')`); n != 0 {
		t.Errorf("%d pieces of work have both a result and a failure, or neither", n)
	}
	if n := count(`select count(*) from work where state = 'done' and source = 'soak' and result <> 'answer to ' || (payload ->> 'prompt')`); n != 0 {
		t.Errorf("%d results are another's", n)
	}
	// Every minute of every schedule, from its first slot to where it stands now.
	due := count(`select sum(extract(epoch from next_slot - (created_minute + n * interval '1 second')) / 60)::int
		from (select s.*, substr(id, 2)::int as n, date_trunc('minute', created_at) + interval '1 minute' as created_minute from schedules s) s`)
	recorded := count(`select coalesce(sum(1 + missed), 0)::int from firings`)
	fired := count(`select count(*) from firings where state = 'queued'`)
	if recorded != due || fired != due {
		t.Errorf("%d slots were due, %d are recorded, %d fired", due, recorded, fired)
	}
	if n := count(`select count(*) from firings f where (select count(*) from work w where w.id = f.work_id) <> 1`); n != 0 {
		t.Errorf("%d slots have no piece of work of their own", n)
	}
	if n := count(`select count(*) from work where source = 'schedule'`); n != fired {
		t.Errorf("%d pieces of work for %d slots", n, fired)
	}
	t.Logf("%d prompts: %d results, %d dead letters; %d slots of %d schedules, each once: %d results, %d dead letters; %d attempts were lost and made again",
		len(s.asked), count(`select count(*) from work where source = 'soak' and state = 'done'`), count(`select count(*) from work where source = 'soak' and state = 'dead'`),
		fired, workSchedules, count(`select count(*) from work where source = 'schedule' and state = 'done'`), count(`select count(*) from work where source = 'schedule' and state = 'dead'`),
		count(`select coalesce(sum(attempts - 1), 0)::int from work`))
}

// slowModel answers after a while, and some prompts never.
type slowModel struct {
	URL   string
	asked atomic.Int64
}

func startSlowModel(t *testing.T) *slowModel {
	t.Helper()
	m := new(slowModel)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.asked.Add(1)
		var q struct{ Messages []struct{ Content string } }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(q.Messages) == 0 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		time.Sleep(time.Duration(100+rand.IntN(900)) * time.Millisecond)
		if strings.HasPrefix(q.Messages[len(q.Messages)-1].Content, "prompt ") && strings.HasSuffix(q.Messages[len(q.Messages)-1].Content, "77") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		answer, _ := json.Marshal(map[string]any{"model": "stub", "choices": []any{map[string]any{"finish_reason": "stop",
			"message": map[string]any{"role": "assistant", "content": "answer to " + q.Messages[len(q.Messages)-1].Content}}},
			"usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 5}})
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	}))
	t.Cleanup(server.Close)
	m.URL = server.URL
	return m
}
