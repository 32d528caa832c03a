#!/usr/bin/env bash
# Builds the engine for this Python and puts it beside the sources, for development. The wheel is made by build.sh.
set -euo pipefail
cd "$(dirname "$0")"
target=${CARGO_TARGET_DIR:-target}
cargo build "$@"
case " $* " in *" --release "*) kind=release ;; *) kind=debug ;; esac
for library in "$target/$kind/lib_acpdb.so" "$target/$kind/lib_acpdb.dylib"; do
  if [ -f "$library" ]; then cp "$library" python/acpdb/_acpdb.abi3.so; fi
done
