#!/usr/bin/env bash
# Sourced by the scripts beside it, for what a machine may lack. Nothing is
# printed on standard output, which carries the answer of those scripts.

# need COMMAND PACKAGE installs a Debian package when the command is missing.
need() {
	PATH=$PATH:/usr/sbin:/sbin
	command -v "$1" >/dev/null || apt_install "$2"
}

# apt_install PACKAGE installs it, or says who should and fails.
apt_install() {
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "missing: install the Debian package $1, or its like" >&2
		return 1
	fi
	echo "installing $1" >&2
	# The lists of packages may be missing, or older than the packages.
	apt_get "$1" || { apt-get update -q >&2 && apt_get "$1"; }
}

apt_get() {
	# Another step may be installing something at the moment.
	DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends "$1" </dev/null >&2
}
