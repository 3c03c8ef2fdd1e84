// Package server puts pawgate together on one machine: database, migrations,
// every category in this process, the router over them. The HTTP server and
// the stdio shim are two doors to the same assembly.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawgate/internal/catalog"
	"pawgate/internal/category"
	"pawgate/internal/category/inference"
	"pawgate/internal/category/odoo"
	"pawgate/internal/category/send"
	"pawgate/internal/category/skill"
	"pawgate/internal/category/web"
	"pawgate/internal/client/chat"
	"pawgate/internal/client/embed"
	"pawgate/internal/client/hub"
	"pawgate/internal/client/llama"
	"pawgate/internal/operator"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/migrate"
	"pawgate/internal/router"
	"pawgate/internal/tool"
	"pawgate/internal/worker"
	"pawgate/local/database"
)

// Settings are what the local programs read from their environment.
type Settings struct {
	router.Settings
	Addr       string `envconfig:"PAWGATE_ADDR" default:"127.0.0.1:8080" desc:"address that serve listens on"`
	Data       string `envconfig:"PAWGATE_DATA" desc:"folder of the private cluster; unset: a per-user folder"`
	Models     llama.Config
	Hub        hub.Config
	Inference  inference.Settings
	Odoo       odoo.Settings
	Send       send.Settings
	Embeddings embed.Config
	Web        web.Settings
	Skill      skill.Settings
	Chat       chat.Config
	Tiers      worker.Models
	Workers    int `envconfig:"PAWGATE_WORKERS" default:"4" desc:"pieces of queued work that serve does at once; 0: none"`
}

// localConns is how many connections serve may hold.
const localConns = 16

// Local is the assembly: everything a door needs.
type Local struct {
	Router *router.Router
	DB     *pgxpool.Pool
	// FirstKey is the key of the first agent, set only by the start that made
	// it. It cannot be shown again.
	FirstKey string

	closers []func()
}

// Open starts or joins the database, migrates it, makes the first agent and
// assembles the router. Whatever it started, Close stops.
func Open(ctx context.Context, s Settings, log *slog.Logger) (*Local, error) {
	l := new(Local)
	if err := l.open(ctx, s, log); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Local) open(ctx context.Context, s Settings, log *slog.Logger) error {
	if err := l.openDatabase(ctx, &s, log); err != nil {
		return err
	}
	key, err := operator.EnsureDefault(ctx, l.DB, s.Env)
	if err != nil {
		return fmt.Errorf("make the first agent: %w", err)
	}
	l.FirstKey = key
	backends, err := l.backends(s)
	if err != nil {
		return err
	}
	tools, err := catalog.Load()
	if err != nil {
		return err
	}
	cfg, err := s.Settings.Router(router.Version, tools, backends, l.DB, log)
	if err != nil {
		return err
	}
	l.Router = router.New(cfg)
	return nil
}

// openDatabase uses DATABASE_URL, or else the private cluster.
func (l *Local) openDatabase(ctx context.Context, s *Settings, log *slog.Logger) error {
	url, leave, err := Database(ctx, *s, log)
	if err != nil {
		return err
	}
	s.URL = url
	l.closers = append(l.closers, leave)
	applied, err := migrate.Up(ctx, s.URL)
	if unreached := new(pgconn.ConnectError); errors.As(err, &unreached) {
		return fmt.Errorf("the database cannot be reached: %s; check DATABASE_URL, or leave it unset for a private database", lastLine(unreached))
	} else if err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	if len(applied) > 0 {
		log.Info("database migrated", "migrations", len(applied))
	}
	s.MaxConns = cmp.Or(s.MaxConns, localConns)
	if l.DB, err = postgres.Open(ctx, s.Config); err != nil {
		return err
	}
	l.closers = append(l.closers, l.DB.Close)
	return nil
}

// lastLine is what became of the last of the addresses that were tried.
func lastLine(err error) string {
	text := strings.TrimSpace(err.Error())
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// Database gives the URL of the database to use and a function that leaves
// it: the private cluster stops when its last user has left.
func Database(ctx context.Context, s Settings, log *slog.Logger) (url string, leave func(), err error) {
	if s.URL != "" {
		return s.URL, func() {}, nil
	}
	dir := s.Data
	if dir == "" {
		if dir, err = database.DefaultDir(); err != nil {
			return "", nil, err
		}
	}
	cluster, err := database.Start(ctx, database.Config{Dir: dir, Log: log})
	if err != nil {
		return "", nil, fmt.Errorf("start private database: %w", err)
	}
	return cluster.URL(), func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		if err := cluster.Close(ctx); err != nil {
			log.Warn("leave private database", "error", err)
		}
	}, nil
}

// backends are the categories in this process, except those that the settings
// place elsewhere.
func (l *Local) backends(s Settings) (map[string]router.Backend, error) {
	paid, err := s.Licence.Check(time.Now())
	if err != nil {
		return nil, err
	}
	deps := category.Deps{DB: l.DB, Now: time.Now, Licence: paid, Edition: paid.EditionAt, Embeddings: s.Embeddings,
		Inference: s.Inference, Odoo: s.Odoo, Send: s.Send, Web: s.Web, Skill: s.Skill}
	if s.SidecarURL == "" { // otherwise the models are the sidecar's
		if err := l.openModels(s, &deps); err != nil {
			return nil, err
		}
	}
	backends := map[string]router.Backend{}
	for _, c := range category.All(deps) {
		backends[c.Name] = router.InProcess{Table: tool.Assemble(c)}
	}
	remote, err := s.RemoteBackends(l.DB)
	if err != nil {
		return nil, err
	}
	maps.Copy(backends, remote)
	return backends, nil
}

// openModels makes this machine the host of the local models.
func (l *Local) openModels(s Settings, deps *category.Deps) error {
	models, err := llama.Open(s.Models)
	if err != nil {
		return err
	}
	l.closers = append(l.closers, func() { _ = models.Close() })
	client, err := hub.New(s.Hub)
	if err != nil {
		return err
	}
	downloads := hub.NewDownloads(client, models.Models.Root())
	l.closers = append(l.closers, downloads.Close)
	deps.Models, deps.Downloads = models, downloads
	return nil
}

// CheckAgent says clearly, before a client waits for an answer, that an agent
// does not exist.
func (l *Local) CheckAgent(ctx context.Context, agent string) error {
	var exists bool
	err := l.DB.QueryRow(ctx, `select exists (select from agents where id = $1 and state <> 'archived')`, agent).Scan(&exists)
	switch {
	case err != nil:
		return fmt.Errorf("look for agent: %w", err)
	case !exists:
		return fmt.Errorf("no agent %s; pawgate agent list shows those there are, pawgate agent create makes one", agent)
	}
	return nil
}

// Close stops what Open started, the last first.
func (l *Local) Close() {
	for i := len(l.closers) - 1; i >= 0; i-- {
		l.closers[i]()
	}
	l.closers = nil
}

// LoopbackHosts are the Host headers that a server on loopback answers; any
// other is a web page that tries DNS rebinding.
func LoopbackHosts(addr string) []string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return []string{"localhost", "127.0.0.1", "[::1]"}
	}
	return nil
}
