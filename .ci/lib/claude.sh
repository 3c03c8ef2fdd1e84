#!/usr/bin/env bash
# Installs the pinned Claude Code releases under .cache and prints the paths of
# their binaries, separated by colons:
#   CLAUDE_BIN=$(.ci/lib/claude.sh)
set -euo pipefail
# shellcheck source=.ci/lib/node22.sh
. "$(dirname "${BASH_SOURCE[0]}")/node22.sh"

# npm puts the platform's binary of one release beside the wrapper package and
# that of the other, whose version differs, inside its wrapper.
binary() {
	first_file "$1"/node_modules/@anthropic-ai/claude-code-linux-*/claude \
		"$modules"/@anthropic-ai/claude-code-linux-*/claude
}

modules=$(npm_pinned claude)
handshake=$(binary "$modules/claude-handshake")
newest=$(binary "$modules/claude-newest")
echo "$handshake:$newest"
