// The pages of the book: their JavaScript runs, block after block, in an empty folder. A failed assertion fails the page.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { folder } from "./help.mjs";

const pages = ["bindings/node/README.md", "docs/NODE.md"];
/** Pages that need a framework. */
const adapters = [
  "docs/adapters/CLAUDE.md", "docs/adapters/LANGCHAIN.md", "docs/adapters/LANGGRAPH.md", "docs/adapters/OPENAI.md", "docs/adapters/VERCEL_AI.md",
];
const root = ["../../..", "../../"].map((path) => new URL(`${path}/`, import.meta.url)).find((path) => existsSync(new URL("docs/NODE.md", path)));
const here = fileURLToPath(new URL("..", import.meta.url));

const shown = [...pages, ...(process.env.BARE === "1" ? [] : adapters)];
const blocksOf = (page) => [...readFileSync(new URL(page, root), "utf8").matchAll(/```js\n(.*?)```/gs)].map((found) => found[1]);

test("what the pages show is right to TypeScript, strictly", () => {
  // Packages are found from here.
  const place = mkdtempSync(join(here, "pages-"));
  try {
    for (const page of shown) writeFileSync(join(place, `${page.replace(/\W/g, "_")}.mts`), `${blocksOf(page).join("\n")}\nexport {};\n`);
    const compilerOptions = {
      strict: true, noEmit: true, skipLibCheck: true, target: "es2022", lib: ["es2024", "esnext.disposable"], types: ["node"], module: "nodenext",
    };
    writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.mts"] }));
    execFileSync(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "-p", place], { stdio: "pipe" });
  } catch (error) {
    assert.fail(String(error.stdout ?? error));
  } finally {
    rmSync(place, { recursive: true });
  }
});

for (const page of shown) {
  test(`what ${page} shows runs`, () => {
    const blocks = blocksOf(page);
    assert.ok(blocks.length > 0, `${page} shows no JavaScript`);
    // Imports are found from the package; all else happens in an empty folder.
    const check = "console.assert = (yes) => { if (!yes) throw new Error('an assertion of the page failed'); };";
    const code = `process.chdir(${JSON.stringify(folder())});\n${check}\n${blocks.join("\n")}`;
    execFileSync(process.execPath, ["--input-type=module", "-e", code], { cwd: here, timeout: 60_000, stdio: "pipe" });
  });
}
