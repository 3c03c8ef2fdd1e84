#!/usr/bin/env bash
# Prints the path of pgbouncer, the transaction pooler that stands in for RDS
# Proxy:
#   PGBOUNCER_BIN=$(.ci/lib/pgbouncer.sh)
# It installs Debian's package when there is none. The service that comes with
# the package is not used: tests start a pooler of their own, on the loopback
# interface, in front of a cluster of their own.
set -euo pipefail
# shellcheck source=.ci/lib/apt.sh
. "$(dirname "${BASH_SOURCE[0]}")/apt.sh"

# Installing must not start the service. A policy of the machine's own stays.
policy=/usr/sbin/policy-rc.d
if ! PATH=$PATH:/usr/sbin:/sbin command -v pgbouncer >/dev/null && [ "$(id -u)" = 0 ] && [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
	trap 'rm -f "$policy"' EXIT
fi
need pgbouncer pgbouncer >/dev/null
PATH=$PATH:/usr/sbin:/sbin command -v pgbouncer
