#!/usr/bin/env bash
# Every test of every crate but the Redis tier's (ci/redis.sh) and the HTTP layer's (ci/tower.sh), and the core's without std.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test --workspace --exclude tollgate-redis --exclude tollgate-tower
cargo test -p tollgate --features tokio --test waiting
cargo test -p tollgate --features tokio --doc waiting
cargo test -p tollgate --features metrics --test metrics
cargo test -p tollgate --features shared --test shared
cargo test -p tollgate --features shared --doc -- shared Readme
cargo test -p tollgate --no-default-features --lib
cargo test -p tollgate --no-default-features --features keyed --lib

# What the README says of the sale, to the figure; and a file that is followed.
diff <(sed -n '/attempts, 1000 in stock$/,/^scripts/p' README.md) <(cargo run --quiet --example flash_sale)
diff <(printf 'admitted %s of 10\n' 3 5 0) <(cargo run --quiet --example live_toml | grep admitted)
