#!/usr/bin/env bash
# The nginx module: built against the nginx that is installed, with the library as it is installed; its directives, answers and logs;
# four workers under wrk, killed and reloaded; a C program, a Rust program and nginx on one region, all killed again and again.
#   ci/nginx.sh                      all of it
#   ROUNDS=15 ci/nginx.sh speed      one step of nginx-check.py: so many rounds of the comparison with limit_req
#   LENGTH=60 ci/nginx.sh together   so many seconds of kills
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

PREFIX=$work/prefix ffi/install.sh
TOLLGATE_PREFIX=$work/prefix ffi/examples/nginx/build.sh "$work/module"
mkdir "$work/parties"
ffi/tests/together/build.sh "$work/parties"
ci/nginx-check.py "$work/module/objs/ngx_http_tollgate_module.so" "$work/parties" "$@"
