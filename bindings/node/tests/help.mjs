// What tests share: stores in folders that go away with the test.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";

import * as acpdb from "acpdb";

export const anywhere = { anyFileSystem: true };

const folders = [];
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function folder() {
  const made = mkdtempSync(join(tmpdir(), "acpdb-node-"));
  folders.push(made);
  return made;
}

export const opened = (options = {}) => acpdb.open(join(folder(), "store"), { ...anywhere, ...options });

/** A session with a file that is read twice, todos and memory. */
export async function played(store, key = "s1") {
  const { Entry } = acpdb;
  const session = store.session(key, { project: "shop" });
  await session.append(Entry.message("user", "why is the build red?", { key: "m1" }));
  for (const number of [1, 2]) {
    await session.append(
      Entry.step(`step-${number}`),
      Entry.toolStarted(`call-${number}`, "read", { filePath: "src/main.rs" }),
      Entry.toolFinished(`call-${number}`, "fn main() {}\n".repeat(50), { origin: `call-${number}:end` }),
    );
  }
  await session.append(Entry.todos([{ content: "mend the build", status: "in_progress" }]));
  await session.remember(Entry.memory("pnpm", { kind: "preference", key: "package_manager" }));
  return session;
}
