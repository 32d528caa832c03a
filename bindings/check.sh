#!/usr/bin/env bash
# Builds the packages for Python and Node, installs each into an empty environment, runs their tests from there, and then the
# law that both and the program write one history.
#
#   BARE=1       without frameworks, which are many megabytes
#   PROGRAM=PATH the program; else it is built
set -euo pipefail
cd "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cargo fmt --all --check
# Tests of targets that have some: the crates that another language loads have none, and their macros make nothing for tests.
cargo clippy --locked --lib --examples --tests -- -D warnings
cargo test --locked -p acpdb-bindings
python/build.sh
KEEP=$scratch/doors/node_modules node/build.sh

program=${PROGRAM:-}
if [ -z "$program" ]; then
  (cd .. && cargo build --release --bin acpdb)
  program=${CARGO_TARGET_DIR:-../target}/release/acpdb
fi
"${PYTHON:-python3}" -m venv "$scratch/python"
"$scratch/python/bin/pip" install -q python/target/wheels/*.whl
"$scratch/python/bin/python" doors/law.py "$(realpath "$program")" "$scratch/doors/any.cjs"
