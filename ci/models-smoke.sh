#!/usr/bin/env bash
# A share of the models: those of the last permit and of first use, with 2 preemptions. `ci/loom.sh` runs all.
set -euo pipefail
cd "$(dirname "$0")/.."

ci/loom.sh run --threads 2 "last permit"
ci/loom.sh run --threads 2 told waits
ci/loom.sh run --threads 2 keyed
