#!/usr/bin/env bash
# The plan's page in a browser, as people see it: nothing on the console, nothing from the network, on a telephone, on a
# desk and in the dark; every picture valid XML. The screenshots stay in target/pictures, to be looked at.
#   ci/pictures.sh
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --quiet -p tollgate-cli
target=${CARGO_TARGET_DIR:-target}
pictures=$(realpath -m "$target/pictures")
tool=$(realpath "$target/debug/tollgate")
rm -rf "$pictures"
mkdir -p "$pictures"

"$tool" plan examples/access.log.gz --refuse-at-most 6% --html "$pictures/plan.html" --plot "$pictures/plan.svg" >/dev/null
"$tool" plan - --format epoch --html "$pictures/empty.html" >/dev/null </dev/null
"$tool" replay examples/access.log.gz --key client --plot "$pictures/replay.svg" >/dev/null
"$tool" simulate --arrivals edge-attack:500/1s --seconds 12 --limit 500 --plot "$pictures/edge.svg" >/dev/null

python3 ci/pictures-check.py "$pictures"
