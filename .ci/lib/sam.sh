#!/usr/bin/env bash
# Installs the pinned AWS SAM CLI, with cfn-lint beside it, under .cache and
# prints the path of its binary:
#   SAM_BIN=$(.ci/lib/sam.sh)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=.ci/lib/apt.sh
. "$here/apt.sh"

venv=$(cd "$here/../.." && pwd)/.cache/venv
if ! cmp -s "$here/sam-requirements.txt" "$venv/installed.txt"; then
	need python3 python3
	python3 -c 'import ensurepip' 2>/dev/null || apt_install python3-venv
	python3 -m venv --clear "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/sam-requirements.txt" >&2
	cp "$here/sam-requirements.txt" "$venv/installed.txt"
fi
need make make # sam build runs it
echo "$venv/bin/sam"
