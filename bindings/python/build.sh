#!/usr/bin/env bash
# Builds the wheel, installs it into an empty environment, and runs all tests from there: not from the sources.
#
#   build.sh           the wheel is in target/wheels/
#   PYTHON=python3.12  another interpreter; one wheel serves 3.10 and later. One without the interpreter's lock (python3.14t) gets its own
#   BARE=1             only the package's own tests, without frameworks (they are many megabytes)
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-python3}
wheel_bytes_max=$((12 << 20))

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m venv "$scratch/build"
"$scratch/build/bin/pip" install -q 'maturin>=1.9,<2'
rm -rf target/wheels
"$scratch/build/bin/maturin" build --release --locked --out target/wheels --interpreter "$scratch/build/bin/python"

wheel=$(ls target/wheels/*.whl)
bytes=$(wc -c <"$wheel")
printf '%s: %s bytes\n' "$wheel" "$bytes"
if [ "$bytes" -gt "$wheel_bytes_max" ]; then
  echo "the wheel is larger than $wheel_bytes_max bytes" >&2
  exit 1
fi

"$python" -m venv "$scratch/empty"
"$scratch/empty/bin/pip" install -q "$wheel"
# Without anything else installed it has to work.
(cd "$scratch" && "$scratch/empty/bin/python" -c 'import acpdb; acpdb.open("store").close()')
"$scratch/empty/bin/pip" install -q -r tests/requirements.txt
if [ "${BARE:-0}" = 0 ]; then "$scratch/empty/bin/pip" install -q -r tests/adapters/requirements.txt; fi
# The sources stay behind: what is tested is what was installed.
mkdir -p "$scratch/bindings/python"
cp -r tests pyproject.toml README.md "$scratch/bindings/python/"
cp ../surface.toml "$scratch/bindings/"
cp -r ../../docs ../../README.md "$scratch/"
cd "$scratch/bindings/python"
BARE=${BARE:-0} "$scratch/empty/bin/python" -m pytest
