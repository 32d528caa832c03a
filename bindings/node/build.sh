#!/usr/bin/env bash
# Builds the packages, installs them into an empty folder, and runs all tests from there: not from the sources.
#
#   build.sh   the packages are in target/: `acpdb`, and the engine for this platform
#   BARE=1     only the package's own tests, without frameworks
#   GLIBC=2.28 for systems with that version of glibc or a later one; zig, which Python's registry has, links then
#   TARGET=TRIPLE  only the engine, for another platform, such as aarch64-unknown-linux-musl
#   KEEP=DIR   leaves the folder that they were installed into in DIR
set -euo pipefail
cd "$(dirname "$0")"
package_bytes_max=$((12 << 20))
here=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Also when the lock file is newer than what was installed.
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --legacy-peer-deps --ignore-scripts --silent
rm -rf dist target && mkdir -p target
npx tsc
platform=$(node platform.cjs)
built=${CARGO_TARGET_DIR:-../target}/release
if [ -n "${TARGET:-}${GLIBC:-}" ]; then
  "${PYTHON:-python3}" -m venv "$scratch/zig"
  "$scratch/zig/bin/pip" install -q cargo-zigbuild ziglang
  triple=${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
  case $triple in
    x86_64-*-musl) platform=linux-x64-musl ;;
    aarch64-*-musl) platform=linux-arm64-musl ;;
    *) [ -z "${TARGET:-}" ] || { echo "there is no package for $TARGET" >&2 && exit 1; } ;;
  esac
  # What another program loads cannot hold a libc of its own.
  case $triple in *-musl) export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=-crt-static" ;; esac
  (cd .. && PATH=$scratch/zig/bin:$PATH cargo zigbuild --release --locked -p acpdb-node --target "$triple${GLIBC:+.$GLIBC}")
  built=${CARGO_TARGET_DIR:-../target}/$triple/release
else
  (cd .. && cargo build --release --locked -p acpdb-node)
fi
mkdir -p "$scratch/engine" "$scratch/acpdb"
for library in "$built"/libacpdb_node.so "$built"/libacpdb_node.dylib; do
  if [ -f "$library" ]; then cp "$library" "$scratch/engine/acpdb.node"; fi
done
cp -r dist README.md "$scratch/acpdb/"
# Here they are links, which npm leaves out.
cp LICENSE-MIT LICENSE-APACHE "$scratch/acpdb/"
cp LICENSE-MIT LICENSE-APACHE "$scratch/engine/"
"${PYTHON:-python3}" ../../.ci/notices.py Cargo.toml --target "${TARGET:-}" >"$scratch/engine/NOTICES"
# What is published names its engines as optional dependencies, and nothing that is for development.
node -e '
  const { readFileSync, writeFileSync } = require("node:fs");
  const [, platform, scratch] = process.argv;
  const source = JSON.parse(readFileSync("package.json", "utf8"));
  const { devDependencies, scripts, ...kept } = source;
  const { version, license, repository, homepage, bugs, author, engines } = source;
  // Those that the release workflow builds.
  const all = ["darwin-arm64", "darwin-x64", "linux-arm64-gnu", "linux-arm64-musl", "linux-x64-gnu", "linux-x64-musl"];
  kept.optionalDependencies = Object.fromEntries(all.map((one) => [`@acpdb/${one}`, version]));
  writeFileSync(`${scratch}/acpdb/package.json`, JSON.stringify(kept, null, 2));
  const [os, cpu, libc] = platform.split("-");
  const engine = {
    name: `@acpdb/${platform}`, version, description: `The engine of acpdb for ${platform}`, license, repository, engines,
    homepage, bugs, author, main: "acpdb.node", files: ["acpdb.node", "LICENSE-*", "NOTICES"], os: [os], cpu: [cpu],
    ...(os === "linux" && { libc: [libc === "gnu" ? "glibc" : "musl"] }),
  };
  writeFileSync(`${scratch}/engine/package.json`, JSON.stringify(engine, null, 2));
' "$platform" "$scratch"
(cd "$scratch/engine" && npm pack --silent --pack-destination "$here/target" >/dev/null)
(cd "$scratch/acpdb" && npm pack --silent --pack-destination "$here/target" >/dev/null)
for package in target/*.tgz; do
  bytes=$(wc -c <"$package")
  for name in LICENSE-MIT LICENSE-APACHE; do
    tar -tzf "$package" "package/$name" >/dev/null || { echo "$package has no $name" >&2 && exit 1; }
  done
  printf '%s: %s bytes\n' "$package" "$bytes"
  if [ "$bytes" -gt "$package_bytes_max" ]; then
    echo "$package is larger than $package_bytes_max bytes" >&2
    exit 1
  fi
done

if [ -n "${TARGET:-}" ]; then
  rm target/acpdb-[0-9]*.tgz
  echo "the engine was not tried: it is for $TARGET"
  exit
fi

# Without anything else installed it has to work, and nothing is run at install.
empty=$scratch/bindings/node
mkdir -p "$empty"
echo '{"private": true}' >"$empty/package.json"
(cd "$empty" && npm install --silent --ignore-scripts --no-audit --no-fund --omit=optional "$here"/target/*.tgz)
(cd "$empty" && node -e 'require("acpdb").open("store", { anyFileSystem: true }).then((store) => store.close())')
cp -r tests "$empty/"
cp ../surface.toml "$scratch/bindings/"
cp -r ../../docs ../../README.md "$scratch/"
cp README.md "$empty/"
# Frameworks, the checker of types and the suites come from the sources' folder, as the lock file has them.
for name in node_modules/* node_modules/.bin; do
  [ -e "$empty/$name" ] || ln -s "$here/$name" "$empty/$name"
done
cd "$empty"
BARE=${BARE:-0} node --test tests/*.test.mjs
node_modules/.bin/tsc -p tests
if [ "${BARE:-0}" = 0 ]; then
  # Frameworks find the package that was installed, and the package finds the frameworks: neither through a link.
  node --preserve-symlinks --test tests/adapters/*.test.mjs
  node_modules/.bin/tsc -p tests/adapters
fi
if [ -n "${KEEP:-}" ]; then mkdir -p "$KEEP" && cp -r "$empty/node_modules/acpdb" "$empty/node_modules/@acpdb" "$KEEP/"; fi
