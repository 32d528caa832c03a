// The pages of the book: their JavaScript runs, block after block, in an empty folder. A failed assertion fails the page.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { folder } from "./help.mjs";

const pages = ["bindings/node/README.md", "docs/NODE.md"];
/** Pages that need a framework. */
const adapters = ["docs/adapters/CLAUDE.md", "docs/adapters/LANGGRAPH.md", "docs/adapters/OPENAI.md", "docs/adapters/VERCEL_AI.md"];
const root = ["../../..", "../../"].map((path) => new URL(`${path}/`, import.meta.url)).find((path) => existsSync(new URL("docs/NODE.md", path)));
const here = fileURLToPath(new URL("..", import.meta.url));

for (const page of [...pages, ...(process.env.BARE === "1" ? [] : adapters)]) {
  test(`what ${page} shows runs`, () => {
    const text = readFileSync(new URL(page, root), "utf8");
    const blocks = [...text.matchAll(/```js\n(.*?)```/gs)].map((found) => found[1]);
    assert.ok(blocks.length > 0, `${page} shows no JavaScript`);
    // Imports are found from the package; all else happens in an empty folder.
    const check = "console.assert = (yes) => { if (!yes) throw new Error('an assertion of the page failed'); };";
    const code = `process.chdir(${JSON.stringify(folder())});\n${check}\n${blocks.join("\n")}`;
    execFileSync(process.execPath, ["--input-type=module", "-e", code], { cwd: here, timeout: 60_000, stdio: "pipe" });
  });
}
