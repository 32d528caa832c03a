// What the package costs beside the library: the same appends and contexts from Node and from Rust, in one run, in time of the
// processor of all threads. Other work of the machine makes the time of a clock longer.
//
//   cargo build --release -p acpdb-python --example append; TMPDIR=/dev/shm node bench.mjs PATH-OF-THAT-EXAMPLE [ROUNDS]
//
// In memory, where no sync of a disk comes between.

import { execFileSync } from "node:child_process";
import { randomFill } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";

import { Entry, open } from "acpdb";

const [program, given = "40"] = process.argv.slice(2);
const rounds = Number(given);
const micros = async (times, work) => {
  const before = process.cpuUsage();
  for (let number = 0; number < times; number++) await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / times;
};
const folder = () => mkdtempSync(join(tmpdir(), "acpdb-bench-"));
/** The best and the middle of many rounds. */
const shown = (values) => {
  const sorted = [...values].sort((left, right) => left - right);
  return [sorted[0], sorted[Math.floor(sorted.length / 2)]];
};
const told = (values) => shown(values).map((value) => value.toFixed(1)).join(", middle ");

const home = folder();
const store = await open(join(home, "node"), { durability: "os", index: false, anyFileSystem: true });
const session = store.session("s1");
const text = "x".repeat(200);
const append = () => session.append(Entry.message("user", text));
const large = store.session("large");
await large.append(...Array.from({ length: 64 }, () => Entry.message("user", "y".repeat(16 << 10))));
await store.sync();
const view = await large.view();
await micros(2000, append);
await micros(20, () => view.export("anthropic"));

/** What no promise can be without: a thread of Node's pool is woken, and wakes the main thread. */
const trip = () => new Promise((resolve) => randomFill(Buffer.alloc(8), resolve));
await micros(2000, trip);

const rust = { append: [], context: [] };
const node = { trip: [], append: [], together: [], question: [], context: [] };
const count = 2000;
for (let round = 0; round < rounds; round++) {
  const path = join(home, `rust-${round}`);
  const lines = String(execFileSync(program, [path, String(count)])).trim().split("\n");
  const [one, context] = lines.map((line) => Number(line) / 1000);
  rust.append.push(one);
  rust.context.push(context);
  rmSync(path, { recursive: true });
  node.trip.push(await micros(count, trip));
  node.append.push(await micros(count, append));
  node.together.push(await micros(10, () => Promise.all(Array.from({ length: 100 }, append))) / 100);
  node.question.push(await micros(200, () => view.tokens()));
  node.context.push(await micros(20, () => view.export("anthropic")));
}
const ratio = (left, right) => shown(left).map((value, place) => (value / shown(right)[place]).toFixed(2)).join(", middle ");
console.log(`an append in Rust: ${told(rust.append)} us`);
console.log(`a way to a thread of Node's pool and back: ${told(node.trip)} us`);
console.log(`an append, each awaited, in Node: ${told(node.append)} us`);
console.log(`an append of 100 that are called together, in Node: ${told(node.together)} us`);
console.log(`a question that asks for next to nothing, in Node: ${told(node.question)} us`);
console.log(`a context of 1 MiB in Rust: ${told(rust.context)} us; in Node: ${told(node.context)} us; ${ratio(node.context, rust.context)}x`);

const before = process.memoryUsage().rss;
for (let number = 0; number < 10_000; number++) await Promise.all(Array.from({ length: 100 }, () => store.event(1)));
console.log(`memory after 10^6 questions: ${process.memoryUsage().rss - before} bytes more; load ${loadavg()[0].toFixed(1)}`);
await store.close();
rmSync(home, { recursive: true });
