// The makers' suite, run whole; and what acpdb adds: another process, and every state again.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import * as acpdb from "acpdb";
import { AcpdbSaver, AcpdbStore } from "acpdb/adapters/langgraph";
import { anywhere, opened } from "../help.mjs";

test("the suite for checkpointers passes", () => {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const vitest = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url));
  const options = ["run", "--globals", "--reporter=json", "--dir", "tests/adapters", "tests/adapters/langgraph.spec.mjs"];
  let told;
  try {
    told = String(execFileSync(process.execPath, [vitest, ...options], { cwd: root, stdio: ["ignore", "pipe", "pipe"] }));
  } catch (error) {
    assert.fail(`${error.stdout}\n${error.stderr}`.slice(0, 4000));
  }
  const report = JSON.parse(told.slice(told.indexOf("{")));
  assert.equal(report.numFailedTests, 0);
  assert.equal(report.numPendingTests, 0);
  assert.ok(report.numPassedTests > 700, `${report.numPassedTests} tests`);
});

test("threads are shared by handles, and a deletion leaves the log whole", async () => {
  const store = await opened();
  const other = await acpdb.open(store.path, anywhere);
  const [first, second] = [new AcpdbSaver(store), new AcpdbSaver(other)];
  const config = { configurable: { thread_id: "t1", checkpoint_ns: "" } };
  const checkpoint = { ...emptyCheckpoint(), channel_values: { text: "hello" }, channel_versions: { text: 1 } };
  const saved = await first.put(config, checkpoint, { source: "update", step: -1, parents: {} }, { text: 1 });
  await first.putWrites(saved, [["text", "more"]], "task-1");
  const seen = await second.getTuple(config);
  assert.deepEqual(seen.checkpoint.channel_values, { text: "hello" });
  assert.deepEqual(seen.pendingWrites, [["task-1", "text", "more"]]);
  await second.deleteThread("t1");
  assert.equal(await first.getTuple(config), undefined);
  assert.equal((await first.session("t1").records()).length, 1, "the deletion alone");
  assert.equal((await store.verify()).verdict, "sound");
  await store.close();
  await other.close();
});

async function put(saver, config, value, id = uuid6(0)) {
  const checkpoint = { ...emptyCheckpoint(), id, channel_values: { x: value }, channel_versions: { x: 1 } };
  return saver.put(config, checkpoint, { source: "loop", step: 0, parents: {} }, { x: 1 });
}

test("a deleted thread does not come back", async () => {
  const store = await opened();
  const [one, other] = [new AcpdbSaver(store), new AcpdbSaver(store)];
  const config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
  const late = await put(one, config, 1);
  await other.deleteThread("t");
  await one.putWrites(late, [["x", 2]], "task");
  const later = await put(one, await put(one, late, 2), 3);
  await one.putWrites(later, [["x", 4]], "task");
  // The names of the checkpoints are the deletion's: their records are erased.
  await new AcpdbSaver(store).putWrites(await put(new AcpdbSaver(store), late, 4), [["x", 5]], "task");
  for (const saver of [one, other, new AcpdbSaver(store)]) assert.equal(await saver.getTuple(config), undefined);
  // A run that begins afterwards is a new one.
  await put(other, config, 5);
  for (const saver of [one, new AcpdbSaver(store)]) assert.deepEqual((await saver.getTuple(config)).checkpoint.channel_values, { x: 5 });
  await store.close();
});

test("what was deleted first does not come back after a second deletion", async () => {
  // The second deletion erased the first one, and with it the names of what that one had deleted.
  const store = await opened();
  const config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
  const late = [];
  for (const value of [1, 5, 6]) {
    late.push(await put(new AcpdbSaver(store), config, value));
    await new AcpdbSaver(store).deleteThread("t");
  }
  for (const of of late) {
    const saver = new AcpdbSaver(store);
    await saver.putWrites(await put(saver, of, 2), [["x", 2]], "task");
    assert.equal(await new AcpdbSaver(store).getTuple(config), undefined);
  }
  await store.close();
});

test("a checkpoint that is put again after its deletion is one that a run goes on from", async () => {
  const store = await opened();
  const saver = new AcpdbSaver(store);
  const config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
  const first = await put(saver, config, 1);
  await saver.deleteThread("t");
  await put(saver, config, 1, first.configurable.checkpoint_id);
  const later = await put(saver, first, 2);
  await saver.putWrites(later, [["x", 3]], "task");
  for (const one of [saver, new AcpdbSaver(store)]) assert.deepEqual((await one.getTuple(config)).pendingWrites, [["task", "x", 3]]);
  await store.close();
});

test("a value is recorded as what changed, and a list reads what is asked for", async () => {
  const store = await opened();
  const saver = new AcpdbSaver(store);
  const values = [];
  let config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
  for (let turn = 0; turn < 60; turn += 1) {
    values.push(Array.from({ length: 100 }, (_, at) => ((turn * 7919 + at * 104729) % 99991).toString(36)).join(" "));
    config = await put(saver, config, [...values]);
  }
  const texts = values.join("").length;
  const { log_bytes: bytes } = await store.info();
  assert.ok(bytes < 4 * texts, `${bytes} bytes of log for ${texts} of texts`);
  await put(saver, { configurable: { thread_id: "u", checkpoint_ns: "" } }, 1);
  const fresh = new AcpdbSaver(store);
  const found = [];
  for await (const tuple of fresh.list({}, { limit: 3 })) found.push(tuple);
  assert.equal(found.length, 3);
  assert.ok(fresh.storage.t === undefined || fresh.storage.u === undefined, "the other thread was not read");
  assert.deepEqual((await fresh.getTuple(config)).checkpoint.channel_values.x, values);
  await store.close();
});

test("a deleted thread gives its space back, and another one with the same values stays", async () => {
  const store = await opened();
  const saver = new AcpdbSaver(store);
  const values = Array.from({ length: 60_000 }, (_, at) => ((at * 104729) % 99991).toString(36));
  const threads = ["t", "other", "audited"].map((thread) => ({ configurable: { thread_id: thread, checkpoint_ns: "" } }));
  for (const config of threads) await put(saver, config, values);
  const { log_bytes: before } = await store.info();
  await saver.deleteThread("t");
  const { log_bytes: after } = await store.info();
  assert.ok(after < before * 0.75, `${before} bytes, and then ${after}`);
  assert.deepEqual((await new AcpdbSaver(store).getTuple(threads[1])).checkpoint.channel_values.x, values);
  await put(saver, threads[0], values);
  assert.deepEqual((await new AcpdbSaver(store).getTuple(threads[0])).checkpoint.channel_values.x, values);
  await new AcpdbSaver(store, undefined, { erase: false }).deleteThread("audited");
  assert.equal((await saver.session("audited").records()).length, 2);
  assert.equal((await store.verify({ deep: true })).verdict, "sound");
  await store.close();
});

const on = (thread) => ({ configurable: { thread_id: thread, checkpoint_ns: "" } });

async function told(saver, thread) {
  const all = [];
  for await (const { config, checkpoint, pendingWrites } of saver.list({ configurable: { thread_id: thread } })) {
    all.push([config.configurable.checkpoint_id, checkpoint.channel_values, pendingWrites]);
  }
  return all;
}

test("what is pruned gives its space back, and what is left stands in the log alone", async () => {
  const store = await opened();
  const saver = new AcpdbSaver(store);
  let config = on("t");
  const values = [];
  for (let turn = 0; turn < 40; turn += 1) {
    values.push(Array.from({ length: 3000 }, (_, at) => ((turn * 7919 + at * 104729) % 99991).toString(36)).join(" "));
    config = await put(saver, config, [...values]);
    await saver.putWrites(config, [["x", values[turn]]], "task");
  }
  await saver.copyThread("t", "copy");
  const whole = await told(saver, "t");
  assert.deepEqual(await told(new AcpdbSaver(store), "copy"), whole);
  const { log_bytes: before } = await store.info();
  await saver.prune(["t"]);
  for (const one of [saver, new AcpdbSaver(store)]) assert.deepEqual(await told(one, "t"), whole.slice(0, 1));
  assert.deepEqual(await told(saver, "copy"), whole);
  await saver.prune(["copy"], { strategy: "delete" });
  const { log_bytes: after } = await store.info();
  assert.ok(after < values.join("").length * 2.4 && after < before / 2, `${before} bytes, and then ${after}`);
  await saver.deleteThread("t");
  assert.ok((await store.info()).log_bytes < 50_000);
  await assert.rejects(saver.prune(["t"], { strategy: "all" }), { code: "invalid" });
  assert.equal((await store.verify({ deep: true })).verdict, "sound");
  await store.close();
});

test("a channel that is made from writes keeps what it is made from, and without erasing all stays", async () => {
  for (const erase of [true, false]) {
    const store = await opened();
    const saver = new AcpdbSaver(store, undefined, { erase });
    const put_ = async (config, values, versions) => {
      const checkpoint = { ...emptyCheckpoint(), id: uuid6(0), channel_values: values, channel_versions: versions };
      return saver.put(config, checkpoint, { source: "loop", step: 0, parents: {} }, versions);
    };
    let config = await put_(on("t"), { x: 0 }, { x: 1 });
    const ids = [config];
    for (const [values, versions] of [
      [{ x: 1, delta: ["a"] }, { x: 2, delta: 1 }],
      [{ x: 2 }, { x: 3, delta: 2, "branch:to:n": 1 }],
      [{ x: 3 }, { x: 4, delta: 3, __start__: 1 }],
    ]) {
      await saver.putWrites(config, [["delta", values.x]], "task");
      ids.push((config = await put_(config, values, versions)));
    }
    await saver.prune(["t"]);
    for (const one of [saver, new AcpdbSaver(store)]) {
      assert.deepEqual((await told(one, "t")).map(([id]) => id), ids.slice(1).reverse().map((it) => it.configurable.checkpoint_id));
    }
    const ops = (await saver.session("t").records()).map(({ bytes }) => JSON.parse(bytes.toString().split("\n")[0]).op);
    assert.deepEqual(ops.slice(-2), erase ? ["drop", "keep"] : ["put", "drop"]);
    assert.equal(ops.length, erase ? 2 : 8);
    await store.close();
  }
});

test("records of another language's saver are passed over", async () => {
  const store = await opened();
  const saver = new AcpdbSaver(store);
  const python = '{"form":2,"op":"put","ns":"","id":"1","parent":null,"blobs":[],"checkpoint":["x",[],[]],"metadata":["x",[],[]]}\n';
  await saver.session("t").append(acpdb.Entry.hostRecord("checkpoint_put", Buffer.from(python)));
  assert.equal(await saver.getTuple(on("t")), undefined);
  await put(saver, on("t"), 1);
  assert.deepEqual((await told(new AcpdbSaver(store), "t")).map(([, it]) => it), [{ x: 1 }]);
  await store.close();
});

test("runs are deleted, and old threads expire", async () => {
  const store = await opened();
  const saver = new AcpdbSaver(store);
  let config = on("a");
  for (const [value, run] of [[1, "one"], [2, "two"], [3, "one"]]) {
    const checkpoint = { ...emptyCheckpoint(), id: uuid6(0), channel_values: { x: value }, channel_versions: { x: value } };
    config = await saver.put(config, checkpoint, { source: "loop", step: 0, parents: {}, run_id: run }, { x: value });
  }
  await put(saver, on("b"), 1);
  await saver.deleteForRuns(["one"]);
  for (const one of [saver, new AcpdbSaver(store)]) assert.deepEqual((await told(one, "a")).map(([, it]) => it), [{ x: 2 }]);
  assert.equal((await told(saver, "b")).length, 1);
  assert.deepEqual(await saver.expire(24 * 3600), []);
  assert.deepEqual(await saver.expire(-60), ["a", "b"]);
  assert.deepEqual(await saver.expire(-60), []);
  assert.deepEqual(await told(new AcpdbSaver(store), "a"), []);
  await store.close();
});

test("what went first does not come back after more of it went", async () => {
  const store = await opened();
  const late = [];
  for (const value of [1, 5]) {
    late.push(await put(new AcpdbSaver(store), on("t"), value));
    await new AcpdbSaver(store).deleteThread("t");
  }
  let last = on("t");
  for (const value of [7, 8, 9]) {
    late.push((last = await put(new AcpdbSaver(store), last, value)));
    await new AcpdbSaver(store).prune(["t"]);
  }
  // Writes on what was pruned are none.
  const before = await store.head();
  for (const of of late.slice(0, -1)) await new AcpdbSaver(store).putWrites(of, [["x", 2]], "task");
  assert.equal(await store.head(), before);
  await new AcpdbSaver(store).deleteThread("t");
  for (const of of late) {
    const saver = new AcpdbSaver(store);
    await saver.putWrites(await put(saver, of, 2), [["x", 2]], "task");
    assert.deepEqual(await told(new AcpdbSaver(store), "t"), []);
  }
  assert.equal((await store.verify({ deep: true })).verdict, "sound");
  await store.close();
});

test("savers that prune one thread and put on it lose nothing", async () => {
  const store = await opened();
  const other = await acpdb.open(store.path, anywhere);
  const savers = [new AcpdbSaver(store), new AcpdbSaver(other)];
  let config = on("t");
  for (let number = 0; number < 30; number += 1) {
    const saver = savers[(number * 7) % 3 === 0 ? 1 : 0];
    config = await put(saver, config, Array(50).fill(number));
    const [, one] = await Promise.all([
      saver.putWrites(config, [["x", number]], "task"),
      ...(number % 4 === 1 ? savers.map((it) => it.prune(["t"])) : [undefined]),
    ]);
    assert.equal(one, undefined);
    for (const it of [...savers, new AcpdbSaver(store)]) {
      const found = await it.getTuple(on("t"));
      assert.deepEqual([found.checkpoint.channel_values.x[0], found.pendingWrites], [number, [["task", "x", number]]]);
    }
  }
  await store.close();
  await other.close();
});

test("a checkpoint that could not be recorded is not there", async () => {
  // It was there for this saver, and for no other one.
  const store = await opened();
  const saver = new AcpdbSaver(store);
  const first = await put(saver, on("t"), 1);
  const append = acpdb.Session.prototype.appendExpecting;
  acpdb.Session.prototype.appendExpecting = async () => {
    throw new acpdb.BusyError("another process writes");
  };
  await assert.rejects(put(saver, first, 2), acpdb.BusyError);
  await assert.rejects(saver.putWrites(first, [["x", 2]], "task"), acpdb.BusyError);
  acpdb.Session.prototype.appendExpecting = append;
  for (const one of [saver, new AcpdbSaver(store)]) assert.deepEqual(await told(one, "t"), [[first.configurable.checkpoint_id, { x: 1 }, []]]);
  await store.close();
});

test("items are kept, found and forgotten", async () => {
  const store = await opened();
  const [one, other] = [new AcpdbStore(store), new AcpdbStore(store)];
  const long = "k".repeat(2000);
  await one.put(["users", "ada"], "food", { likes: "pizza", stars: 5 });
  await one.put(["users", "bob"], "food", { likes: "soup", stars: 2, of: { town: "Rome" } });
  await one.put(["docs"], long, { text: "the linker is red, \u00e9" });
  let created;
  for (const it of [one, other, new AcpdbStore(store)]) {
    const found = await it.get(["users", "ada"], "food");
    assert.deepEqual(found.value, { likes: "pizza", stars: 5 });
    created = found.createdAt;
    assert.ok(created instanceof Date && created <= found.updatedAt);
    assert.equal(await it.get(["users"], "food"), null);
    assert.deepEqual((await it.search(["users"])).map((item) => item.namespace[1]), ["ada", "bob"]);
    assert.deepEqual((await it.search(["users"], { filter: { stars: { $gt: 2 } } })).map((item) => item.value.stars), [5]);
    assert.deepEqual((await it.search(["users"], { filter: { of: { town: "Rome" } } })).length, 1);
    assert.deepEqual((await it.search([], { query: "red linker", limit: 1 })).map((item) => item.key), [long]);
    assert.deepEqual(await it.listNamespaces(), [["docs"], ["users", "ada"], ["users", "bob"]]);
    assert.deepEqual(await it.listNamespaces({ prefix: ["users"], maxDepth: 1 }), [["users"]]);
    assert.deepEqual(await it.listNamespaces({ suffix: ["*", "bob"] }), [["users", "bob"]]);
  }
  await other.put(["users", "ada"], "food", { likes: "pasta" });
  const again = await one.get(["users", "ada"], "food");
  assert.deepEqual([again.value, again.createdAt], [{ likes: "pasta" }, created]);
  await one.delete(["users", "ada"], "food");
  await one.delete(["users", "ada"], "food");
  assert.equal(await other.get(["users", "ada"], "food"), null);
  await assert.rejects(one.search([], { filter: { stars: { $near: 1 } } }), { code: "invalid" });
  const rows = await store.memory({ project: "langgraph", all: true });
  assert.ok(rows.some(({ value }) => value?.includes("pizza")), "what it was before stays known");
  await Promise.all([one, other].map((it, who) => Promise.all(Array.from({ length: 20 }, (_, n) => it.put(["n"], `${who} ${n}`, { n })))));
  assert.equal((await new AcpdbStore(store).search(["n"], { limit: 100 })).length, 40);
  await store.close();
});

test("an item that could not be forgotten stands", async () => {
  // It was gone for this store, and stood in the log for all others.
  const store = await opened();
  const it = new AcpdbStore(store);
  await it.put(["n"], "k", { a: 1 });
  store.retract = async () => {
    throw new acpdb.BusyError("another process writes");
  };
  await assert.rejects(it.delete(["n"], "k"), acpdb.BusyError);
  delete store.retract;
  const found = async () => Promise.all([it, new AcpdbStore(store)].map(async (one) => (await one.search(["n"])).length));
  assert.deepEqual(await found(), [1, 1]);
  await it.delete(["n"], "k");
  assert.deepEqual(await found(), [0, 0]);
  await store.close();
});

test("so many threads are held in memory, and others are read again", async () => {
  // Each thread that was ever asked for stayed, with its whole values.
  const store = await opened({ durability: "os" });
  const saver = new AcpdbSaver(store);
  const configs = Array.from({ length: 300 }, (_, number) => ({ configurable: { thread_id: `t${number}`, checkpoint_ns: "" } }));
  const saved = await Promise.all(configs.map((config, number) => put(saver, config, number)));
  await Promise.all(saved.map((config, number) => saver.putWrites(config, [["x", number]], "task")));
  const held = () => [Object.keys(saver.storage).length, Object.keys(saver.writes).length];
  assert.deepEqual(held(), [256, 256]);
  for (const [number, config] of configs.entries()) {
    const { checkpoint, pendingWrites } = await saver.getTuple(config);
    assert.deepEqual([checkpoint.channel_values.x, pendingWrites], [number, [["task", "x", number]]]);
  }
  const listed = [];
  for await (const { checkpoint, pendingWrites } of saver.list({})) listed.push([checkpoint.channel_values.x, pendingWrites.length]);
  assert.deepEqual(listed.sort(([one], [other]) => one - other), configs.map((_, number) => [number, 1]));
  assert.deepEqual(held(), [256, 256]);
  await saver.prune(configs.map(({ configurable }) => configurable.thread_id), { strategy: "delete" });
  assert.equal((await new AcpdbSaver(store).getTuple(configs[7])) ?? null, null);
  await store.close();
});
