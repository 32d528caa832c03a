#!/usr/bin/env bash
# Builds the engine for this Node and compiles the TypeScript, for development: then `npm test`.
#
# The packages are made by build.sh.
set -euo pipefail
cd "$(dirname "$0")"
cargo build "$@" -p acpdb-node
case " $* " in *" --release "*) kind=release ;; *) kind=debug ;; esac
target=${CARGO_TARGET_DIR:-../target}
for library in "$target/$kind"/libacpdb_node.so "$target/$kind"/libacpdb_node.dylib; do
  if [ -f "$library" ]; then cp "$library" acpdb.node; fi
done
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --legacy-peer-deps --ignore-scripts
npx tsc
