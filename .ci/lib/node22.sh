#!/usr/bin/env bash
# Installs the pinned Node 22 under .cache and prints the path of its binary:
#   NODE22_BIN=$(.ci/lib/node22.sh)
# The other npm clients of the tests source this file for npm_pinned.
set -euo pipefail

# npm_pinned NAME installs what internal/e2e/testdata/npm/NAME locks, once, and
# prints the folder. Install scripts do not run: nothing is fetched beyond the
# locked packages, whose hashes the lock file holds.
npm_pinned() {
	local root from to
	root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
	from=$root/internal/e2e/testdata/npm/$1
	to=$root/.cache/npm/$1
	if ! command -v npm >/dev/null; then
		echo "npm is missing: install it with apt-get install npm" >&2
		return 1
	fi
	if ! cmp -s "$from/package-lock.json" "$to/installed.json"; then
		# Joined by &&, since a command substitution does not stop at an error.
		# npm itself may run on an older Node than the packages ask for.
		mkdir -p "$to" &&
			cp "$from/package.json" "$from/package-lock.json" "$to/" &&
			(cd "$to" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2) &&
			cp "$from/package-lock.json" "$to/installed.json" || return 1
	fi
	echo "$to/node_modules"
}

# The first file of those named that exists, or what is missing.
first_file() {
	local path
	for path in "$@"; do
		if [ -f "$path" ]; then
			echo "$path"
			return
		fi
	done
	echo "no release for $(uname -sm) among: $*" >&2
	return 1
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	modules=$(npm_pinned node22)
	first_file "$modules"/node-linux-*/bin/node
fi
