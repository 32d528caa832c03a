#!/usr/bin/env bash
# Builds the engine for this Python and lays the package out in target/dev, for development:
#
#   ./dev.sh && PYTHONPATH=target/dev python -m pytest
#
# The wheel is made by build.sh.
set -euo pipefail
cd "$(dirname "$0")"
built=${CARGO_TARGET_DIR:-../target}
cargo build -p acpdb-python "$@"
case " $* " in *" --release "*) kind=release ;; *) kind=debug ;; esac
rm -rf target/dev
mkdir -p target/dev
cp -r python/acpdb target/dev/
for library in "$built/$kind/lib_acpdb.so" "$built/$kind/lib_acpdb.dylib"; do
  if [ -f "$library" ]; then cp "$library" target/dev/acpdb/_acpdb.abi3.so; fi
done
