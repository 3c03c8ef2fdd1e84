//go:build linux || darwin

package database

import (
	"fmt"
)

// settings are the server's, given on its command line so that they always are this program's own and never a stale
// file's (https://www.postgresql.org/docs/15/runtime-config.html).
func (h home) settings(e endpoint) []string {
	listen := "" // A socket alone: no TCP port at all.
	if e.socket == "" {
		listen = "127.0.0.1"
	}
	values := [][2]string{
		{"port", fmt.Sprint(e.port)},
		{"listen_addresses", listen},
		{"unix_socket_directories", e.socket},
		{"unix_socket_permissions", "0700"},
		{"cluster_name", h.name()},

		// A guest on a laptop: little memory, few processes, durable all the same.
		{"max_connections", "200"},
		{"shared_buffers", "64MB"},
		{"max_wal_size", "256MB"},
		{"fsync", "on"},
		{"full_page_writes", "on"},
		{"jit", "off"},
		{"max_logical_replication_workers", "0"},
		{"max_parallel_workers_per_gather", "0"}, // Containers give /dev/shm too little room for parallel queries.

		{"timezone", "UTC"},
		{"log_timezone", "UTC"},
		{"lc_messages", "C"},

		// Errors are logged without the statement or the values in it, which may be secrets.
		{"logging_collector", "on"},
		{"log_destination", "stderr"},
		{"log_directory", h.path("log")},
		{"log_filename", "postgresql-%Y%m%d-%H%M%S.log"},
		{"log_file_mode", "0600"},
		{"log_rotation_size", "8MB"},
		{"log_rotation_age", "1d"},
		{"log_line_prefix", "%m [%p] "},
		{"log_min_messages", "warning"},
		{"log_min_error_statement", "panic"},
		{"log_error_verbosity", "terse"},
		{"log_checkpoints", "off"},
		{"log_statement", "none"},
	}
	args := make([]string, 0, 2*len(values))
	for _, v := range values {
		args = append(args, "-c", v[0]+"="+v[1])
	}
	return args
}
