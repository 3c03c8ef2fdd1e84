#!/usr/bin/env bash
# Installs the pinned releases of the MCP conformance suite under .cache and
# prints the folder that holds them (conformance-stable, conformance-next):
#   CONFORMANCE_DIR=$(.ci/lib/conformance.sh)
# It runs on Node 22: see node22.sh.
set -euo pipefail
# shellcheck source=.ci/lib/node22.sh
. "$(dirname "${BASH_SOURCE[0]}")/node22.sh"

modules=$(npm_pinned conformance)
first_file "$modules/conformance-stable/dist/index.js" >/dev/null
first_file "$modules/conformance-next/dist/index.js" >/dev/null
echo "$modules"
