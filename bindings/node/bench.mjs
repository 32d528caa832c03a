// What the package costs beside the library: the same appends and contexts from Node and from Rust, in one run.
//
//   cargo build --release -p acpdb-python --example append; node bench.mjs PATH-OF-THAT-EXAMPLE [COUNT]

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";

import { Entry, open } from "acpdb";

const [program, given = "20000"] = process.argv.slice(2);
const count = Number(given);
const micros = async (times, work) => {
  const begun = process.hrtime.bigint();
  for (let number = 0; number < times; number++) await work();
  return Number(process.hrtime.bigint() - begun) / 1000 / times;
};
const middle = (values) => values.sort((left, right) => left - right)[Math.floor(values.length / 2)];

/** Microseconds of an append that is awaited, of one among many that are on their way, and of a context of a megabyte. */
async function ours(folder) {
  const store = await open(folder, { durability: "os", index: false, anyFileSystem: true });
  const session = store.session("s1");
  const text = "x".repeat(200);
  await session.append(Entry.message("user", text));
  const awaited = await micros(count, () => session.append(Entry.message("user", text)));
  const together = await micros(count / 100, () =>
    Promise.all(Array.from({ length: 100 }, () => session.append(Entry.message("user", text)))),
  );
  const large = store.session("large");
  await large.append(...Array.from({ length: 64 }, () => Entry.message("user", "y".repeat(16 << 10))));
  const view = await large.view();
  await view.export("anthropic");
  const context = await micros(20, () => view.export("anthropic"));
  await store.close();
  return [awaited, together / 100, context];
}

const folder = () => mkdtempSync(join(tmpdir(), "acpdb-bench-"));
const [node, rust] = [[], []];
for (let run = 0; run < 3; run++) {
  for (const [rows, work] of [
    [node, ours],
    [rust, (path) => String(execFileSync(program, [path, given])).trim().split("\n").map((line) => Number(line) / 1000)],
  ]) {
    const path = folder();
    rows.push(await work(path));
    rmSync(path, { recursive: true });
  }
}
const [awaited, together, context] = [0, 1, 2].map((place) => middle(node.map((row) => row[place])));
const [append, body] = [0, 1].map((place) => middle(rust.map((row) => row[place])));
const shown = (value) => value.toFixed(2);
console.log(`append, each awaited: ${shown(awaited)} us in Node, ${shown(append)} us in Rust`);
console.log(`append, 100 on their way: ${shown(together)} us in Node, ${shown(append)} us in Rust`);
console.log(`context of 1 MiB: ${shown(context)} us in Node, ${shown(body)} us in Rust, ${shown(context / body)}x`);

const path = folder();
const store = await open(path, { durability: "os", index: false, anyFileSystem: true });
const before = process.memoryUsage().rss;
for (let number = 0; number < 10_000; number++) await Promise.all(Array.from({ length: 100 }, () => store.event(1)));
console.log(`memory after 10^6 calls: ${process.memoryUsage().rss - before} bytes more; load ${shown(loadavg()[0])}`);
await store.close();
rmSync(path, { recursive: true });
