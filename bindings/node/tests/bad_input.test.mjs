// What cannot be used is refused, with an error's class, its code, and what to do; nothing hangs, and the store goes on.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";

import { blake3 } from "@noble/hashes/blake3.js";
import * as acpdb from "acpdb";
import { anywhere, folder, opened, played } from "./help.mjs";

const { Entry, Part } = acpdb;
const half = "half a pair: \ud800";
const cycle = {};
cycle.self = cycle;

const made = {
  "a number as role": [() => Entry.message(7, "x"), TypeError, /role is a string, not number/],
  "an unknown role": [(session) => session.append(Entry.message("usr", "x")), acpdb.InvalidError, /role: unknown variant `usr`/],
  "no text": [() => Entry.message("user"), TypeError, /text is a string, a Uint8Array or a list of Part, not undefined/],
  "null as text": [() => Entry.message("user", null), TypeError, /not null/],
  "a list of strings": [() => Entry.message("user", ["x"]), TypeError, /list of Part, not string/],
  "half a surrogate pair": [() => Entry.message("user", half), acpdb.InvalidError, /half of a surrogate pair.*toWellFormed/],
  "half a pair in JSON": [() => Entry.toolStarted("c", "t", { deep: [half] }), acpdb.InvalidError, /half of a surrogate/],
  "half a pair as a key": [() => Entry.toolStarted("c", "t", { [half]: 1 }), acpdb.InvalidError, /half of a surrogate/],
  "half a pair as session": [(_, store) => store.session(half), acpdb.InvalidError, /half of a surrogate/],
  "NaN in JSON": [() => Entry.toolStarted("c", "t", { x: NaN }), acpdb.InvalidError, /x is NaN; give a number/],
  "infinity in JSON": [() => Entry.todos([{ content: -Infinity }]), acpdb.InvalidError, /content is -Infinity/],
  "a Map in JSON": [() => Entry.toolStarted("c", "t", { x: new Map([["a", 1]]) }), acpdb.InvalidError, /x is a Map; give Object.fromEntries/],
  "a Set as JSON": [() => Entry.toolStarted("c", "t", new Set([1])), acpdb.InvalidError, /it is a Set; give a list/],
  "a BigInt in JSON": [() => Entry.toolStarted("c", "t", { x: 2n ** 90n }), acpdb.InvalidError, /x is a BigInt/],
  "a function in JSON": [() => Entry.toolStarted("c", "t", { x() {} }), acpdb.InvalidError, /x is a function/],
  "a cycle in JSON": [() => Entry.toolStarted("c", "t", cycle), acpdb.InvalidError, /circular/i],
  "undefined as JSON": [() => Entry.toolStarted("c", "t", undefined), TypeError, /a value that JSON has a form for/],
  "text that is no JSON": [
    (session) => session.append(Entry.toolStarted("c", "t", "{")), acpdb.InvalidError, /params is no JSON: .*give an object/,
  ],
  "an exception in toJSON": [
    () => Entry.todos([{ toJSON() { throw new Error("from the callback"); } }]), acpdb.InvalidError, /from the callback/,
  ],
  "output and error": [() => Entry.toolFinished("c", "x", { error: "y" }), acpdb.InvalidError, /not with both/],
  "no confidence": [() => Entry.memory("v", { confidence: NaN }), acpdb.InvalidError, /confidence is from 0 to 1/],
  "much confidence": [(session) => session.remember(Entry.memory("v", { confidence: 7 })), acpdb.InvalidError, /confidence/],
  "an empty memory": [(session) => session.remember(Entry.memory("")), acpdb.InvalidError, /nothing to remember/],
  "no memory": [(session) => session.remember(Entry.message("user", "x")), acpdb.InvalidError, /made by Entry.memory/],
  "a misspelt option": [() => Entry.message("user", "x", { orgin: "o" }), acpdb.InvalidError, /no option "orgin"; there are key, origin/],
  "an option of the wrong type": [(session) => session.search("x", { limit: "9" }), TypeError, /limit is a number, not string/],
  "text as options": [() => Entry.message("user", "x", "key"), TypeError, /options is an object, not string/],
  "an entry by hand": [() => new Entry(), acpdb.InvalidError, /made by Entry.message/],
  "a part by hand": [() => new Part(), acpdb.InvalidError, /made by Part.text/],
  "something else appended": [(session) => session.append({ fact: "message" }), TypeError, /an Entry, not Object/],
  "a list appended": [(session) => session.append([Entry.step()]), TypeError, /spread a list: append\(\.\.\.entries\)\) is an Entry, not Array/],
  "a huge BigInt as time": [(session) => session.view(2n ** 80n), acpdb.InvalidError, /from 1 to 18446744073709551615/],
  "a fraction as time": [(session) => session.view(1.5), acpdb.InvalidError, /whole number/],
  "NaN as time": [(session) => session.view(NaN), acpdb.InvalidError, /whole number/],
  "a Date that is none": [(session) => session.view(new Date("x")), acpdb.InvalidError, /no time/],
  "yes as time": [(session) => session.view(true), TypeError, /at is a seq/],
  "words as time": [(session) => session.view("the other day"), acpdb.InvalidError, /the other day.*; give 812/],
  "no such item": [(session) => session.explain("#999999"), acpdb.NotFoundError, /999999/],
  "no such session": [(_, store) => store.session("never").context(), acpdb.NotFoundError, /never/],
  "an empty key": [(_, store) => store.session(""), acpdb.InvalidError, /key is empty/],
  "no such format": [(session) => session.export("docx"), acpdb.InvalidError, /no format "docx"; there are anthropic.*html, otlp$/],
  "nothing to look for": [(session) => session.search(""), acpdb.InvalidError, /give a text/],
  "a filter that is none": [(session) => session.search("x", { filter: "tool:" }), acpdb.InvalidError, /./],
  "no targets": [(session) => session.discard(), acpdb.InvalidError, /nothing to discard/],
  "an unknown target": [(session) => session.discard("#999999"), acpdb.AcpdbError, /999999/],
  "a negative seq": [(_, store) => store.subscribe(-1), acpdb.InvalidError, /after is a whole number from 0/],
  "NaN seconds": [(_, store) => store.subscribe(0, { timeout: NaN }), acpdb.InvalidError, /0 seconds or more/],
  "a huge rewind": [(session) => session.rewind(2n ** 70n), acpdb.InvalidError, /whole number/],
  "no policy": [(_, store) => store.setPolicy("nonsense"), acpdb.InvalidError, /no policy "nonsense"; there are/],
  "an unknown price": [(_, store) => store.simulate({ price: "free" }), acpdb.InvalidError, /free/],
  "exporting a store as a page": [(_, store) => store.export("html"), acpdb.InvalidError, /'jsonl'/],
  "exporting a store as what has no form": [(_, store) => store.export(10n), acpdb.InvalidError, /'jsonl'/],
  "a URL that has no form": [() => acpdb.openRemote(Object.create(null), "s", "f"), TypeError, /^url is a string/],
  "linting a transcript": [() => acpdb.lint("{}", "markdown"), acpdb.InvalidError, /for people/],
  "linting no JSON": [() => acpdb.lint("{", "anthropic"), acpdb.InvalidError, /body is no JSON/],
  "a path that is a number": [() => acpdb.open(7), TypeError, /path is a string or a file URL/],
  "a path with a NUL": [() => acpdb.open("a\0b"), acpdb.InvalidError, /NUL/],
  "a durability of its own": [() => acpdb.open(folder(), { durability: "maybe" }), acpdb.InvalidError, /'sync' or 'os'/],
  "a negative wait": [() => acpdb.open(folder(), { lockWait: -1 }), acpdb.InvalidError, /0 seconds or more/],
  "no store": [() => acpdb.open(join(folder(), "none"), { ...anywhere, create: false }), acpdb.NotAStoreError, /./],
};

for (const [name, [act, kind, says]] of Object.entries(made)) {
  test(`${name} is refused`, async () => {
    const store = await opened();
    const session = await played(store);
    const refused = await (async () => act(session, store))().then(() => assert.fail("it was taken"), (error) => error);
    assert.ok(refused instanceof kind, `${refused?.name}: ${refused?.message}`);
    assert.match(refused.message, says);
    assert.equal(typeof refused.code, "string");
    await session.append(Entry.message("user", "it goes on"));
    assert.equal((await store.verify()).verdict, "sound");
    await store.close();
  });
}

test("a closed handle says so, whatever it is asked", async () => {
  const store = await opened();
  const session = await played(store);
  const view = await session.view();
  const feed = store.subscribe();
  await store.close();
  const calls = [
    () => session.append(Entry.message("user", "x")), () => session.context(), () => session.step(), () => session.resume(),
    () => store.head(), () => store.session("x"), () => store.search("x"), () => store.subscribe(), () => store.export(),
    () => view.context(), () => view.export("anthropic"), () => feed.next(), () => store.setPolicy("acp"),
  ];
  for (const call of calls) await assert.rejects(async () => call(), { code: "closed", message: /open it again/ });
  await store.close();
});

test("an exception in the body of a loop ends the loop and not the store", async () => {
  const store = await opened();
  await played(store);
  const loop = async () => {
    for await (const _ of store.subscribe()) throw new RangeError("from the loop");
  };
  await assert.rejects(loop(), RangeError);
  assert.equal((await store.verify()).verdict, "sound");
  await store.close();
});

test("a store of a newer format is refused by name", async () => {
  const store = await opened();
  await played(store);
  await store.close();
  const file = join(store.path, "acpdb.json");
  const [checked] = readFileSync(file, "utf8").split(',\n  "check": "');
  const newer = checked.replace(/"acpdb": \d+,/, '"acpdb": 1001,');
  const check = Buffer.from(blake3(Buffer.from(newer))).toString("hex");
  writeFileSync(file, `${newer},\n  "check": "${check}"\n}\n`);
  await assert.rejects(acpdb.open(store.path, anywhere), (error) => {
    assert.ok(error instanceof acpdb.NewerFormatError, `${error.code}: ${error.message}`);
    assert.match(error.message, /update acpdb/);
    return true;
  });
});

test("worker threads open the store themselves; a handle is not sent to them", async () => {
  const store = await opened();
  const session = await played(store);
  const code = `
    const { parentPort, workerData } = require("node:worker_threads");
    const acpdb = require(workerData.module);
    (async () => {
      const store = await acpdb.open(workerData.path, { anyFileSystem: true });
      for (let number = 0; number < 20; number++) {
        await store.session(workerData.key).append(acpdb.Entry.message("user", "from a worker"));
      }
      if (workerData.leave) { store.session("left").append(acpdb.Entry.message("user", "unawaited")); process.exit(0); }
      await store.close();
      parentPort.postMessage("done");
    })();`;
  const module = fileURLToPath(import.meta.resolve("acpdb"));
  const ended = (key, leave) =>
    new Promise((resolve, reject) => {
      const worker = new Worker(code, { eval: true, workerData: { module, path: store.path, key, leave } });
      worker.on("error", reject).on("exit", resolve);
    });
  await Promise.all([ended("w1", false), ended("w2", false), ended("w3", true)]);
  for (const key of ["w1", "w2", "w3"]) assert.equal((await store.session(key).context()).items.length, 20);
  const sent = structuredClone({ ...session });
  assert.equal(sent.append, undefined);
  assert.equal((await store.verify({ deep: true })).verdict, "sound");
  await store.close();
});

test("a process ends by itself with an open store, a pending commit and a subscription", () => {
  const path = join(folder(), "store");
  const code = `
    const acpdb = require(${JSON.stringify(fileURLToPath(import.meta.resolve("acpdb")))});
    (async () => {
      const store = await acpdb.open(${JSON.stringify(path)}, { anyFileSystem: true });
      store.subscribe();
      store.session("s1").append(acpdb.Entry.message("user", "hello"));
    })();`;
  execFileSync(process.execPath, ["-e", code], { timeout: 20_000 });
  const program = `
    const acpdb = require(${JSON.stringify(fileURLToPath(import.meta.resolve("acpdb")))});
    (async () => {
      const store = await acpdb.open(${JSON.stringify(path)}, { anyFileSystem: true });
      console.log((await store.session("s1").context()).items.length);
    })();`;
  assert.equal(String(execFileSync(process.execPath, ["-e", program], { timeout: 20_000 })).trim(), "1");
});

test("Ctrl-C ends a wait, with and without a handler, and what was told is there", { skip: process.platform === "win32" }, async () => {
  for (const handled of [false, true]) {
    const path = join(folder(), "store");
    const code = `
      const acpdb = require(${JSON.stringify(fileURLToPath(import.meta.resolve("acpdb")))});
      (async () => {
        const store = await acpdb.open(${JSON.stringify(path)}, { anyFileSystem: true });
        const session = store.session("s1");
        await session.append(acpdb.Entry.message("user", "hello"));
        const feed = store.subscribe(await store.head());
        if (${handled}) process.once("SIGINT", () => session.append(acpdb.Entry.message("user", "interrupted")));
        setTimeout(() => process.kill(process.pid, "SIGINT"), 100);
        const kept = setInterval(() => {}, 1000);
        for await (const commit of feed) { clearInterval(kept); break; }
      })();`;
    const ended = spawnSync(process.execPath, ["-e", code], { timeout: 20_000 });
    assert.deepEqual([ended.signal, ended.status], handled ? [null, 0] : ["SIGINT", null], String(ended.stderr));
    const store = await acpdb.open(path, anywhere);
    assert.equal((await store.session("s1").context()).items.length, handled ? 2 : 1);
    assert.equal((await store.verify({ deep: true })).verdict, "sound");
    await store.close();
  }
});

test("two copies of the package in one process share a store", async () => {
  // Each has an engine of its own: what keeps one copy's handles apart says nothing to the other, so locks of files have to.
  const copy = folder();
  const main = dirname(fileURLToPath(import.meta.resolve("acpdb/package.json")));
  const modules = dirname(main);
  cpSync(main, join(copy, "node_modules", "acpdb"), { recursive: true, dereference: true });
  if (existsSync(join(modules, "@acpdb"))) {
    cpSync(join(modules, "@acpdb"), join(copy, "node_modules", "@acpdb"), { recursive: true, dereference: true });
  }
  const two = createRequire(join(copy, "any.cjs"))("acpdb");
  assert.notEqual(two.Entry, Entry);
  const store = await opened({ lockWait: 60 });
  const other = await two.open(store.path, { ...anywhere, lockWait: 60 });
  const said = (from, entry) => Promise.all(Array.from({ length: 40 }, (_, n) => from.session("s1").append(entry(`${n}`))));
  await Promise.all([
    said(store, (text) => Entry.message("user", text)),
    said(other, (text) => two.Entry.message("user", text)),
  ]);
  assert.equal((await store.session("s1").context()).items.length, 80);
  await assert.rejects(async () => store.session("s1").append(two.Entry.message("user", "x")), { name: "TypeError", message: /an Entry/ });
  const closed = await other.close().then(() => other.head()).catch((error) => error);
  assert.ok(closed instanceof two.ClosedError && !(closed instanceof acpdb.AcpdbError));
  assert.equal((await store.verify({ deep: true })).verdict, "sound");
  await store.close();
});
