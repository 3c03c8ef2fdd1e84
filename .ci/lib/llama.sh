#!/usr/bin/env bash
# Prepares what "make real" needs: a compiler, CMake and pip where they are
# missing, then the server and the model (see local/sidecar/llama-server.sh).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=.ci/lib/apt.sh
. "$here/apt.sh"

need cmake cmake
need ninja ninja-build
need c++ g++
need strip binutils
need python3 python3
python3 -m pip --version >/dev/null 2>&1 || apt_install python3-pip
"$here/../../local/sidecar/llama-server.sh"
