// A host's day with acpdb, for any runtime that speaks JavaScript: prints `held` if all of it held.
// Arguments: a folder that goes away with the caller.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

import * as acpdb from "acpdb";

const { Entry, Part } = acpdb;
const here = process.argv.at(-1);
const options = { anyFileSystem: true };
const path = join(here, "store");

let store = await acpdb.open(path, options);
const session = store.session("run-1", { project: "shop" });
const live = store.subscribe(await store.head());
const told = live.next();
for (const number of [1, 2]) {
  await session.append(
    Entry.step(`step-${number}`),
    Entry.message("user", [Part.text("größer 🙂"), Part.media(new Uint8Array([0, 255, 10]), "image/png")]),
    Entry.toolStarted(`call-${number}`, "read", { filePath: "src/main.rs" }),
    Entry.toolFinished(`call-${number}`, "fn main() {}\n".repeat(50), { origin: `call-${number}:end` }),
  );
}
assert.equal((await told).value.events.at(-1).session, "run-1");
await live.return();
const receipts = await Promise.all(Array.from({ length: 200 }, (_, n) => session.append(Entry.message("user", `message ${n}`))));
const seqs = receipts.map((receipt) => receipt.lastSeq);
assert.deepEqual(seqs, [...seqs].sort((left, right) => left - right), "in the order of the calls");
const ticket = await session.submit(Entry.message("assistant", "It is the linker."));
assert.equal((await ticket.wait()).lastSeq, ticket.lastSeq);

const [old, newer] = await session.history({ tool: "read" });
assert.deepEqual([old.rule, newer.rule], ["repeat", null]);
assert.equal(await (await session.view("t1")).isVisible(old.item), true);
const [, image] = await session.history();
assert.deepEqual([...(await (await session.view()).body(image.item))], [0, 255, 10]);
assert.equal((await store.search("linker")).items.length, 1);
const { body } = await (await session.step()).context("anthropic");
assert.equal(JSON.parse(new TextDecoder().decode(body)).messages[0].role, "user");
assert.deepEqual((await session.discard(newer.item)).hidden, [newer.item]);

for (const [call, kind] of [
  [() => session.explain("#999999"), acpdb.NotFoundError],
  [() => Entry.message("user", "half: \ud800"), acpdb.InvalidError],
  [() => Entry.toolStarted("c", "t", { x: NaN }), acpdb.InvalidError],
  [() => Entry.message("user", null), TypeError],
  [() => session.append({}), TypeError],
  [() => acpdb.open(join(here, "none"), { ...options, create: false }), acpdb.NotAStoreError],
]) {
  await assert.rejects(async () => call(), (error) => error instanceof kind);
}
const head = await store.head();
await store[Symbol.asyncDispose]();
await assert.rejects(async () => store.head(), { code: "closed" });

store = await acpdb.open(path, { ...options, readOnly: true });
assert.equal(await store.head(), head);
assert.equal((await store.session("run-1").context()).items.length, 207);
assert.equal((await acpdb.verify(path, { deep: true })).verdict, "sound");
await store.close();
assert.ok(!readFileSync(join(path, "acpdb.json"), "utf8").includes("linker"));
console.log("held");
