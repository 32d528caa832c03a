#!/usr/bin/env bash
# Builds the wheel, installs it into an empty environment, and runs all tests from there: not from the sources.
#
#   build.sh           the wheel is in target/wheels/
#   PYTHON=python3.12  another interpreter; one wheel serves 3.10 and later. One without the interpreter's lock (python3.14t) gets its own
#   GLIBC=2.28         for systems with that version of glibc or a later one; zig, which comes with maturin, links then
#   TARGET=TRIPLE      only builds, for another platform, such as aarch64-unknown-linux-musl
#   SDIST=1            also builds a wheel from the sources that are published, as pip does where there is none
#   BARE=1             only the package's own tests, without frameworks (they are many megabytes)
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-python3}
wheel_bytes_max=$((12 << 20))

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m venv "$scratch/build"
links=(--interpreter "$scratch/build/bin/python")
maturin=maturin
if [ -n "${TARGET:-}${GLIBC:-}" ]; then
  maturin='maturin[zig]'
  if [ -n "${TARGET:-}" ]; then links=(--target "$TARGET"); fi
  links+=(--zig ${GLIBC:+--compatibility "manylinux_${GLIBC/./_}"})
  case ${TARGET:-} in *-musl) links+=(--compatibility musllinux_1_2) ;; esac
fi
"$scratch/build/bin/pip" install -q "$maturin>=1.9,<2"
rm -rf target/wheels target/sdist
# What is linked asks for its notices; they are not kept in the repository, since each new version of a crate changes them.
notices=$PWD/NOTICES
trap 'rm -rf "$scratch" "$notices"' EXIT
"$python" ../../.ci/notices.py Cargo.toml --target "${TARGET:-}" >"$notices"
"$scratch/build/bin/maturin" build --release --locked --out target/wheels "${links[@]}"
"$scratch/build/bin/maturin" sdist --out "$scratch"
# The lock file names what the package for Node alone needs. Without that package a build with `--locked` would refuse it.
source=$(basename "$scratch"/acpdb-*.tar.gz .tar.gz)
tar -xzf "$scratch/$source.tar.gz" -C "$scratch"
(
  cd "$scratch/$source/bindings"
  cp Cargo.lock "$scratch/lock"
  cargo update --workspace --quiet
  if diff "$scratch/lock" Cargo.lock | grep '^> '; then echo "the sources would be built with other crates" >&2 && exit 1; fi
  cargo metadata --locked --format-version 1 >/dev/null
)
mkdir -p target/sdist
tar -czf "target/sdist/$source.tar.gz" -C "$scratch" "$source"
if [ "${SDIST:-0}" != 0 ]; then
  "$scratch/build/bin/pip" wheel -q --no-deps --wheel-dir "$scratch/from-sources" --config-settings=build-args=--locked "target/sdist/$source.tar.gz"
  "$python" -m venv "$scratch/sources"
  "$scratch/sources/bin/pip" install -q "$scratch"/from-sources/*.whl
  (cd "$scratch" && "$scratch/sources/bin/python" -c 'import acpdb; acpdb.open("sources").close()')
fi

wheel=$(ls target/wheels/*.whl)
bytes=$(wc -c <"$wheel")
printf '%s: %s bytes\n' "$wheel" "$bytes"
if [ "$bytes" -gt "$wheel_bytes_max" ]; then
  echo "the wheel is larger than $wheel_bytes_max bytes" >&2
  exit 1
fi

"$python" - "$wheel" target/sdist/*.tar.gz <<'END'
import sys, tarfile, zipfile
names = zipfile.ZipFile(sys.argv[1]).namelist()
for held, all in ((sys.argv[1], names), (sys.argv[2], tarfile.open(sys.argv[2]).getnames())):
    for name in ("LICENSE-MIT", "LICENSE-APACHE", "NOTICES"):
        assert any(one.endswith("/" + name) for one in all), f"{held} has no {name}"
END
if [ -n "${TARGET:-}" ]; then
  echo "$wheel was not tried: it is for $TARGET"
  exit
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
