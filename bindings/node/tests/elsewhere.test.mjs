// Other runtimes: what Node's suite asks, asked in short, of the same packages.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { folder } from "./help.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const require = createRequire(import.meta.url);

/** The program of a runtime, as its package for this platform has it. Nothing is run at install, so its link may point nowhere. */
function program(name, packages) {
  for (const place of packages) {
    try {
      return require.resolve(place);
    } catch {
      // Another platform's.
    }
  }
  return assert.fail(`${name} is among the packages for development; npm ci`);
}

const { platform, arch } = process;
const end = platform === "win32" ? ".exe" : "";
const runtimes = {
  Node: [() => process.execPath, []],
  Bun: [
    () => program("Bun", [`@oven/bun-${platform}-${arch === "arm64" ? "aarch64" : arch}/bin/bun${end}`]),
    ["run"],
  ],
  Deno: [
    () => program("Deno", [`@deno/${platform}-${arch}-glibc/deno`, `@deno/${platform}-${arch}/deno${end}`]),
    ["run", "--no-lock", "--no-remote", "--node-modules-dir=manual", "--allow-all"],
  ],
};

for (const [name, [found, options]] of Object.entries(runtimes)) {
  if (process.env.BARE === "1" && name !== "Node") continue;
  test(`${name} runs a host's day`, () => {
    const script = fileURLToPath(new URL("elsewhere/host.mjs", import.meta.url));
    const ran = { cwd: root, timeout: 120_000, encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } };
    const told = execFileSync(found(), [...options, script, folder()], { ...ran, stdio: ["ignore", "pipe", "pipe"] });
    assert.equal(told.trim().split("\n").at(-1), "held");
  });
}
