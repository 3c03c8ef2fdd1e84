#!/usr/bin/env bash
# Prints the address of a Docker engine that runs:
#   DOCKER_HOST=$(.ci/lib/docker.sh)
# If there is none and this is root, it installs Debian's and starts one of its
# own, without systemd; `.ci/lib/docker.sh stop` ends that one. Where no engine
# can be had it says why and exits with 3, for a caller that then skips.
set -euo pipefail
# shellcheck source=.ci/lib/apt.sh
. "$(dirname "${BASH_SOURCE[0]}")/apt.sh"

run=/run/pawgate-docker
data=/var/lib/pawgate-docker
socket=unix://$run/docker.sock

cannot() {
	echo "no Docker engine: $*" >&2
	exit 3
}

running() { # ADDRESS
	command -v docker >/dev/null && DOCKER_HOST=$1 docker info >/dev/null 2>&1
}

# start OPTION… starts an engine and waits until it answers or has ended. It
# lets go of this script's output, or a command substitution would wait for it.
start() {
	setsid dockerd --data-root "$data" --exec-root "$run/exec" --pidfile "$run/pid" \
		--host "$socket" "$@" </dev/null >"$run/log" 2>&1 &
	local engine=$!
	for _ in $(seq 100); do
		if running "$socket"; then
			return
		fi
		alive "$engine" || return 1
		sleep 0.3
	done
	kill "$engine" 2>/dev/null || true
	wait "$engine" 2>/dev/null || true
	return 1
}

# alive PID: a process that ended and was not waited for has no program.
alive() {
	[ -n "$1" ] && [ -e "/proc/$1/exe" ]
}

# forget_dead removes what an engine that was killed left behind, which the next
# one would take for a running engine.
forget_dead() {
	local file
	for file in "$run/pid" "$run/exec/containerd/containerd.pid"; do
		alive "$(cat "$file" 2>/dev/null)" || rm -f "$file"
	done
}

stop() {
	local pid
	pid=$(cat "$run/pid" 2>/dev/null) || return 0
	kill "$pid" 2>/dev/null || true
	for _ in $(seq 100); do
		alive "$pid" || return 0
		sleep 0.1
	done
}

if [ "${1:-}" = stop ]; then
	stop
	exit
fi
for address in ${DOCKER_HOST:-} "$socket" unix:///var/run/docker.sock; do
	if running "$address"; then
		echo "$address"
		exit
	fi
done
[ "$(id -u)" = 0 ] || cannot "none answers, and only root can start one"
need dockerd docker.io || cannot "the package docker.io cannot be installed"
need docker docker-cli || cannot "the package docker-cli cannot be installed"
need iptables iptables || cannot "the package iptables cannot be installed"
mkdir -p "$run" "$data"
forget_dead
# The second form is for a kernel without address translation: containers and
# host still reach each other, which is all that is wanted. The vfs driver is
# for a file system that cannot be the base of an overlay.
for driver in overlay2 vfs; do
	for network in "" "--iptables=false --ip-masq=false"; do
		# shellcheck disable=SC2086 # two options
		if start --storage-driver "$driver" $network; then
			echo "$socket"
			exit
		fi
	done
done
cannot "dockerd does not start here: $(grep -E 'level=(fatal|error)|failed to start' "$run/log" | tail -1)"
