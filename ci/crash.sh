#!/usr/bin/env bash
# Shared limiters whose processes are killed and stopped, and whose bytes are somebody hostile's; counts are printed.
#   ci/crash.sh                       all of it: seconds
#   ci/crash.sh --long --seconds 600  every stop and every order of two calls, and ten minutes of random kills
set -euo pipefail
cd "$(dirname "$0")/.."

crash=(cargo test --quiet --profile crash -p tollgate --features shared)
"${crash[@]}" --test shared
[ "$(uname -m)" = x86_64 ] || { echo "crash: processes are stepped on x86-64 alone"; exit 0; }
"${crash[@]}" --test crash -- "$@"
