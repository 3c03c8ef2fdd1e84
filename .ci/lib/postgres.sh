#!/usr/bin/env bash
# Prints the URL of a throw-away PostgreSQL cluster on the loopback interface:
#   TEST_DATABASE_URL=$(.ci/lib/postgres.sh)
# It installs Debian's PostgreSQL when there is none and starts a cluster, also
# as root; a second call finds the first one's. `.ci/lib/postgres.sh stop` ends
# and removes it.
set -euo pipefail
# shellcheck source=.ci/lib/apt.sh
. "$(dirname "${BASH_SOURCE[0]}")/apt.sh"

cache=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/.cache
# POSTGRES_BIN names other programs than the newest of the machine's, for a
# cluster of its own.
note=$cache/postgres${POSTGRES_BIN:+-$(echo "$POSTGRES_BIN" | cksum | cut -d' ' -f1)}.dir # names the cluster's folder

newest_bin() {
	local dir newest=
	for dir in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V); do
		[ -x "$dir/initdb" ] && newest=$dir
	done
	echo "${newest:-$(dirname "$(command -v initdb)" 2>/dev/null)}"
}

# The server refuses to run as root.
as_owner() {
	if [ "$(id -u)" = 0 ]; then
		(cd / && setpriv --reuid postgres --regid postgres --clear-groups env HOME=/ "$@")
	else
		"$@"
	fi
}

free_port() {
	local port
	while port=$((20000 + RANDOM % 20000)) && (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
	echo "$port"
}

bin=${POSTGRES_BIN:-$(newest_bin)}
dir=$(cat "$note" 2>/dev/null || true)
if [ "${1:-}" = stop ]; then
	if [ -n "$dir" ]; then
		as_owner "$bin/pg_ctl" -D "$dir/data" -m immediate -w stop >/dev/null 2>&1 || true
		rm -rf "$dir" "$note"
	fi
	exit
fi
if [ -n "$dir" ] && as_owner "$bin/pg_ctl" -D "$dir/data" status >/dev/null 2>&1; then
	cat "$dir/url"
	exit
fi

if [ -z "$bin" ] || [ ! -x "$bin/initdb" ]; then
	apt_install postgresql
	bin=$(newest_bin)
fi
mkdir -p "$cache"
dir=$(mktemp -d "${TMPDIR:-/tmp}/pawgate-postgres.XXXXXX") # short, for the socket's path
[ "$(id -u)" != 0 ] || chown postgres:postgres "$dir"
as_owner "$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --no-sync >/dev/null
port=$(free_port)
as_owner "$bin/pg_ctl" -D "$dir/data" -w -l "$dir/log" -o \
	"-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$dir -c fsync=off -c max_connections=200" \
	start >/dev/null || { cat "$dir/log" >&2 && exit 1; }
echo "postgres://postgres@127.0.0.1:$port/postgres?sslmode=disable" >"$dir/url"
echo "$dir" >"$note"
cat "$dir/url"
