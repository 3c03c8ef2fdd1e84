#!/usr/bin/env bash
# Installs the pinned Lambda Runtime Interface Emulator under .cache and prints
# the path of its binary:
#   RIE_BIN=$(.ci/lib/rie.sh)
#
# It listens on every interface unless told otherwise. One function:
#   (cd FOLDER && $RIE_BIN --log-level error \
#     --runtime-interface-emulator-address 127.0.0.1:9101 \
#     --runtime-api-address 127.0.0.1:9102 ./bootstrap)
# Several run side by side when each has both addresses for itself. Whatever
# the function's name, its path is /2015-03-31/functions/function/invocations.
# It takes one invocation at a time, and SIGTERM ends it with its function.
set -euo pipefail
version=v0.0.0-20261030222936-bef5c4ba774d
module=github.com/aws/aws-lambda-runtime-interface-emulator

bin=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/.cache/bin
rie=$bin/aws-lambda-rie
if ! go version -m "$rie" 2>/dev/null | grep -q "$module.*$version"; then
	GOBIN=$bin GOFLAGS='' CGO_ENABLED=0 go install "$module/cmd/aws-lambda-rie@$version" >&2
fi
echo "$rie"
