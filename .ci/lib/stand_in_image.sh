#!/usr/bin/env bash
# Makes the image that the SAM CLI builds its containers from, for a machine
# without a container registry: a shell and two commands, to which the CLI adds
# its runtime emulator. Our functions are static and need no more.
#   DOCKER_HOST=… .ci/lib/stand_in_image.sh
# An image of that name which is there already is left alone. The name is asked
# of the installed CLI.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=.ci/lib/apt.sh
. "$here/apt.sh"

case $(uname -m) in
x86_64) arch=x86_64 ;;
aarch64 | arm64) arch=arm64 ;;
*) echo "no Lambda architecture is like $(uname -m)" >&2 && exit 1 ;;
esac
python=$(dirname "$("$here/sam.sh")")/python
image=$("$python" - "$arch" <<'PY'
import sys
from samcli.local.docker.lambda_image import LambdaImage, Runtime
print(f"{LambdaImage._INVOKE_REPO_PREFIX}/{Runtime.get_image_name_tag('provided.al2023', sys.argv[1])}")
PY
)
if docker image inspect "$image" >/dev/null 2>&1; then
	echo "$image is there" >&2
	exit
fi
need busybox busybox-static
busybox=$(command -v busybox)
if command -v ldd >/dev/null && ldd "$busybox" >/dev/null 2>&1; then # not static
	apt_install busybox-static
fi

base=$(mktemp -d)
trap 'rm -rf "$base"' EXIT
mkdir -p "$base"/{bin,etc,opt,root,var/task,var/runtime}
mkdir -m 1777 "$base/tmp"
cp "$busybox" "$base/bin/busybox"
for command in sh mv chmod; do
	ln -s busybox "$base/bin/$command"
done
echo 'root:x:0:0:root:/root:/bin/sh' >"$base/etc/passwd"
tar -C "$base" --owner 0 --group 0 -c . | docker import \
	--change 'ENV PATH=/bin LAMBDA_TASK_ROOT=/var/task' \
	--change 'LABEL pawgate.stand-in=true' - "$image" >/dev/null
echo "made $image" >&2
