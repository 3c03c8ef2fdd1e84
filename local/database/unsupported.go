//go:build !linux && !darwin

package database

import (
	"context"
	"fmt"
	"runtime"
)

// Cluster is a running private cluster. This operating system has none.
type Cluster struct{}

// Start fails: sharing one server between processes rests on flock and on Unix process rights.
func Start(context.Context, Config) (*Cluster, error) {
	return nil, fmt.Errorf("start database: no private PostgreSQL on %s; set DATABASE_URL to a PostgreSQL 15 or newer", runtime.GOOS)
}

// URL is empty.
func (*Cluster) URL() string { return "" }

// Close does nothing.
func (*Cluster) Close(context.Context) error { return nil }
