// What the package does: record, serve, ask, act, follow.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";

import * as acpdb from "acpdb";
import { anywhere, folder, opened, played } from "./help.mjs";

const { Entry, Part } = acpdb;

test("a session is recorded, served and told of", async () => {
  const store = await opened();
  const session = await played(store);
  const [old, new_] = await session.history({ tool: "read" });
  assert.equal(old.rule, "repeat");
  assert.equal(new_.rule, null);
  assert.ok((await session.explain(old.item)).sentences[0].length > 10);
  assert.deepEqual((await session.chain(new_.item)).items.map((row) => row.item), [old.item, new_.item]);
  assert.equal(await (await session.view("t1")).isVisible(old.item), true);
  assert.equal(await (await session.view()).isVisible(old.item), false);
  assert.equal((await store.search("main() {}", { filter: "tool:read" })).items.length, 2);
  assert.equal((await session.search(["build", "red"])).items.length, 1);
  assert.equal((await session.todos()).items[0].content, "mend the build");
  const [remembered] = await session.memory();
  assert.equal(remembered.category, "tooling", "the category of the key, as through every door");
  assert.equal(remembered.value, "pnpm");
  assert.match(remembered.created, /^\d{4}-/);
  assert.deepEqual((await store.memory({ project: "shop" })).map((row) => row.value), ["pnpm"]);
  const served = await (await session.step("step-3")).context("anthropic", { model: "m" });
  assert.equal(JSON.parse(served.body).messages[0].role, "user");
  assert.ok(Buffer.isBuffer(served.body) && served.seq > 0 && served.tokens > 0);
  assert.deepEqual(await acpdb.lint(await session.context({ format: "openai" }), "openai"), []);
  assert.equal((await store.verify({ deep: true })).verdict, "sound");
  assert.equal((await store.sessions())[0].id, "s1");
  assert.equal((await store.findSession("s1")).key, "s1");
  assert.ok((await store.simulate({ policies: ["acp"], modes: ["eager"] }))[0].request_count > 0);
  await store.close();
  assert.equal((await acpdb.verify(store.path)).verdict, "sound");
});

test("bytes go in and come out as they are", async () => {
  const store = await opened();
  const session = store.session("s1");
  const raw = Buffer.from([0, 255, 254, 10, 128]);
  const receipt = await session.append(
    Entry.message("user", [Part.media(raw, "image/png"), Part.text("see")]),
    Entry.toolStarted("c1", "read", '{ "filePath" : "a" }'),
    Entry.toolFinished("c1", Buffer.from("grüß")),
    Entry.message("user", "hello").ofRecord('{"role": "user", "content": "hello"}').atTime(1_700_000_000_000_000),
  );
  const view = await session.view();
  const [image, call] = receipt.items;
  assert.deepEqual(await view.body(image), raw);
  assert.equal(String(await view.body(call, "input")), '{ "filePath" : "a" }');
  assert.equal(String(await view.body(call)), "grüß");
  assert.deepEqual((await session.records()).map((record) => String(record.bytes)), ['{"role": "user", "content": "hello"}']);
  await store.close();
});

test("commits that nothing awaits are recorded in the order of the calls", async () => {
  const store = await opened();
  const session = store.session("s1");
  const texts = Array.from({ length: 300 }, (_, number) => `message ${number}`);
  const receipts = await Promise.all(texts.map((text) => session.append(Entry.message("user", text))));
  const seqs = receipts.map((receipt) => receipt.lastSeq);
  assert.deepEqual(seqs, [...seqs].sort((left, right) => left - right));
  const items = (await session.context()).items;
  assert.deepEqual(items.map((item) => item.output.text), texts);
  await store.close();
});

test("small and large commits, of several handles, are recorded in the order of the calls", async () => {
  const store = await opened({ durability: "os", lockWait: 60 });
  const other = await acpdb.open(store.path, { ...anywhere, durability: "os", lockWait: 60 });
  const text = (number) => `${number} ${"x".repeat(number % 3 === 0 ? 100_000 : 10)}`;
  const calls = Array.from({ length: 60 }, (_, number) => store.session("s1").append(Entry.message("user", text(number))));
  const [seqs] = await Promise.all([
    Promise.all(calls).then((receipts) => receipts.map((receipt) => receipt.lastSeq)),
    Promise.all(Array.from({ length: 30 }, () => other.session("s2").append(Entry.message("user", "y")))),
  ]);
  assert.deepEqual(seqs, [...seqs].sort((left, right) => left - right));
  for (let number = 60; number < 90; number++) {
    const from = number % 4 < 2 ? store : other;
    await (number % 2 ? from.session("s1").append(Entry.message("user", text(number))) : from.session("s1").submit(Entry.message("user", text(number))));
  }
  await Promise.all([store.sync(), other.sync()]);
  const items = (await store.session("s1").context()).items;
  assert.deepEqual(items.map((item) => parseInt(item.output.text)), Array.from({ length: 90 }, (_, number) => number));
  assert.equal((await store.session("s2").context()).items.length, 30);
  await assert.rejects(store.session("s1").append(Entry.toolStarted("c", "t", "{")), { code: "invalid", name: "InvalidError" });
  assert.equal((await store.verify({ deep: true })).verdict, "sound");
  await other.close();
  await store.close();
});

test("a ticket has its seq before it is durable, and gives one receipt", async () => {
  const store = await opened();
  const ticket = await store.session("s1").submit(Entry.message("user", "hello"));
  const receipt = await ticket.wait();
  assert.equal(receipt.lastSeq, ticket.lastSeq);
  await assert.rejects(ticket.wait(), { code: "closed" });
  await store.close();
});

test("what is done to the context is recorded and answered", async () => {
  const store = await opened();
  const session = await played(store);
  const [, item] = await session.history({ tool: "read" });
  await session.distill({ [item.item]: "a main without anything in it" });
  assert.equal(await (await session.view()).isVisible(item.item), false);
  await session.restore(item.item, { pin: true });
  assert.equal(await (await session.view()).isVisible(item.item), true);
  await session.unpin(item.item);
  await session.pin(item.item);
  await session.discard(item.item);
  await session.contextTool({ action: "restore", targets: [["call-2"]] });
  const [memory] = await session.memory();
  await session.reinforce(memory.id);
  await session.retract(memory.id, { reason: "moved to npm" });
  assert.deepEqual(await session.memory(), [], "what no longer holds is not to be remembered");
  assert.equal((await session.memory({ all: true }))[0].standing, "retracted");
  await session.restoreMemory(memory.id);
  const head = await store.head();
  await session.append(Entry.message("user", "and now something else"));
  await session.rewind(head);
  assert.equal((await session.rewind(head)).last_seq, null);
  assert.ok(!(await session.context()).items.some((it) => it.output?.text?.includes("something else")));
  assert.equal(typeof (await store.setPolicy("careful", { reason: "a test" })), "number");
  await store.setPolicy(await store.policy());
  await store.close();
});

test("what a crash left open is told and given up", async () => {
  const store = await opened();
  const session = store.session("s1");
  assert.equal((await session.resume()).is_new, true);
  await session.append(Entry.toolStarted("c1", "bash", { command: "make" }));
  assert.deepEqual((await session.resume()).calls.map((call) => call.call), ["c1"]);
  await session.giveUp("the host was restarted");
  assert.deepEqual((await session.resume()).calls, []);
  await store.close();
});

test("a subscription gives every commit once, and ends after a quiet time or a break", async () => {
  const store = await opened();
  await played(store);
  const kinds = [];
  for await (const commit of store.subscribe(0, { timeout: 0 })) kinds.push(...commit.events.map((event) => event.kind));
  assert.ok(kinds.includes("tool_call_started"));
  const live = store.subscribe(await store.head());
  const told = live.next();
  await store.session("s2").append(Entry.message("user", "hello"));
  assert.equal((await told).value.events.at(-1).session, "s2");
  assert.equal(live.nextSeq, (await store.head()) + 1);
  for await (const _ of store.subscribe()) break;
  assert.equal(await store.subscribe(await store.head()).nextWithin(0), null);
  await store.close();
});

test("a closed store says so, by `using`, `await using` and `close`", async () => {
  const store = await opened();
  const session = store.session("s1");
  const pending = session.append(Entry.message("user", "on its way"));
  store[Symbol.dispose]();
  assert.equal((await pending).eventCount, 2);
  assert.equal(store.closed, true);
  await store[Symbol.asyncDispose]();
  const again = await acpdb.open(store.path, { ...anywhere, readOnly: true });
  assert.equal((await again.session("s1").context()).items.length, 1);
  await assert.rejects(again.session("s1").append(Entry.message("user", "x")), acpdb.ReadOnlyError);
  await again.close();
});

test("a store and its sessions are exported", async () => {
  const from = await opened();
  await played(from);
  const lines = String(await from.export()).trimEnd().split("\n");
  assert.ok(lines.every((line) => JSON.parse(line).session === "s1"), lines[0]);
  for (const format of ["markdown", "html", "otlp", "gemini", "responses"]) {
    assert.ok((await from.session("s1").export(format)).length > 10, format);
  }
  await from.close();
});

test("two handles of one process and a URL open one store", async () => {
  const path = join(folder(), "store");
  const first = await acpdb.open(path, anywhere);
  const second = await acpdb.open(new URL(`file://${path}`), anywhere);
  await Promise.all([first, second].map((store, number) => store.session(`s${number}`).append(Entry.message("user", "x"))));
  assert.equal((await first.sessions()).length, 2);
  assert.equal(await first.head(), await second.head());
  await first.close();
  await second.close();
});

test("an append under `sync` is durable when it is told, and one under `os` after `sync()`", async () => {
  for (const durability of ["sync", "os"]) {
    const store = await opened({ durability, index: false });
    const { lastSeq } = await store.session("s1").append(Entry.message("user", "hello"));
    // Under `os` the disk may have it already: it is written in the background from then on.
    if (durability === "sync") assert.equal(await store.head(), lastSeq);
    await store.sync();
    assert.equal(await store.head(), lastSeq, durability);
    await store.close();
  }
});

test("a context says where marks of the cache go", async () => {
  const store = await opened();
  const session = store.session("s1");
  await session.append(Entry.request({ system: "You help." }));
  const told = [];
  for (const number of [1, 2, 3]) {
    await session.append(Entry.message("user", `question ${number}`));
    const step = await session.step(`t${number}`);
    const plain = await step.context("anthropic");
    told.push(plain.breakpoints);
    const marked = await step.context("anthropic", { breakpoints: true });
    assert.deepEqual(marked.breakpoints, plain.breakpoints);
    assert.ok(!String(plain.body).includes("cache_control"));
    assert.ok(String(marked.body).split("cache_control").length > 2);
    await session.append(Entry.message("assistant", `answer ${number}`));
  }
  assert.deepEqual(told, [[1], [1, 3], [3, 5]]);
  // Others keep by themselves what they read.
  const step = await session.step("t4");
  assert.deepEqual((await step.context("openai", { breakpoints: true })).body, (await step.context("openai")).body);
  await store.close();
});

test("what rests on a view is recorded if no other writer came between", async () => {
  const store = await opened();
  const session = store.session("s1");
  await session.appendExpecting(0, Entry.message("user", "one"));
  const { seq } = await session.view();
  await store.session("s2").append(Entry.message("user", "another session is no matter"));
  await session.appendExpecting(seq, Entry.message("user", "two"));
  await assert.rejects(session.appendExpecting(seq, Entry.message("user", "late")), (error) => {
    assert.ok(error instanceof acpdb.HeadMovedError && error.message.includes(String(seq)), error.message);
    return true;
  });
  assert.equal((await session.history()).length, 2);
  await store.close();
});

test("what is erased is gone, and what is sealed and copied stays", async () => {
  const store = await opened();
  const session = store.session("s1");
  await session.append(Entry.message("user", "my password is swordfish"), Entry.message("user", "why is the build red?"));
  const [secret] = await session.history();
  const would = await store.erase(secret.item, { dryRun: true });
  assert.deepEqual([would.recorded, would.hit.map((hit) => hit.session)], [null, ["s1"]]);
  const done = await store.erase(secret.item, { reason: "a secret", by: "Ada" });
  assert.equal(done.recorded, await store.head());
  assert.deepEqual((await store.search("swordfish")).items, []);
  await assert.rejects(store.erase("r_00000"), { code: "not_found" });
  await session.append(Entry.hostRecord("r", "one"));
  const [record] = await session.records();
  assert.equal((await store.eraseRecords([record.seq], { reason: "no longer needed" })).hit.length, 1);
  assert.deepEqual(await session.records(), []);
  await assert.rejects(store.eraseRecords([1]), { code: "invalid" });
  await assert.rejects(store.eraseRecords("1"), TypeError);
  assert.equal((await store.seal({ active: true })).left, 0);
  const place = folder();
  const copy = await store.backup(join(place, "copy"));
  assert.deepEqual([copy.head, copy.report.verdict], [await store.head(), "sound"]);
  assert.equal((await acpdb.restore(join(place, "copy"), join(place, "again"), anywhere)).head, copy.head);
  await assert.rejects(store.backup("file:///tmp/copy/../copy"), { code: "invalid" });
  await store.close();
});

test("a fork continues its session", async () => {
  const store = await opened();
  const session = store.session("s1");
  const first = await session.append(Entry.message("user", "one"));
  await session.append(Entry.message("user", "two"));
  const forks = [await session.fork(undefined, { at: first.lastSeq }), await session.fork("mine", { title: "Mine" })];
  assert.deepEqual(forks.map(({ key }) => key), ["s1-fork-1", "mine"]);
  const texts = await Promise.all(forks.map(async (fork) => (await fork.context()).items.map((item) => item.output.text)));
  assert.deepEqual(texts, [["one"], ["one", "two"]]);
  await assert.rejects(session.fork("mine"), { code: "rejected" });
  await store.close();
});

test("an encrypted store is opened with its key, and several stores are read as one", async () => {
  const place = folder();
  const key = { passphrase: "correct horse battery", ...anywhere };
  for (const name of ["laptop", "server"]) {
    const store = await acpdb.open(join(place, name), key);
    await store.session(`on-${name}`).append(Entry.message("user", "hello"));
    assert.ok((await store.info()).encrypted);
    await store.close();
  }
  await assert.rejects(acpdb.open(join(place, "laptop"), anywhere), { code: "locked" });
  await assert.rejects(acpdb.open(join(place, "laptop"), { ...anywhere, keyFile: join(place, "missing") }), { code: "locked" });
  const stores = await acpdb.openAll(await acpdb.storesIn(place), key);
  assert.deepEqual(stores.members.map(({ label }) => label), ["laptop", "server"]);
  assert.deepEqual((await stores.sessions()).map(([label, row]) => [label, row.id]), [["laptop", "on-laptop"], ["server", "on-server"]]);
  assert.deepEqual((await stores.search("hello", { limit: 1 })).map(([label]) => label), ["laptop"]);
  const server = await stores.store("server");
  await assert.rejects(server.session("s").append(Entry.message("user", "x")), { code: "read_only" });
  await assert.rejects(stores.store("phone"), { code: "not_found", message: /laptop, server/ });
  const keys = [];
  for await (const session of server) keys.push(session.key);
  assert.deepEqual(keys, ["on-server"]);
  assert.match(inspect([server.session("s1"), stores, server]), /key: "s1".*laptop, server/s);
  await stores.close();
});

test("a store beyond this machine is taken over, and the worker before is told", async () => {
  const url = `file://${join(folder(), "disk")}`;
  const worker = (options) => acpdb.openRemote(url, "session-1", folder(), { ...anywhere, ...options });
  await assert.rejects(worker({ create: false }), acpdb.NotFoundError);
  await assert.rejects(acpdb.openRemote("ftp://host", "session-1", folder(), anywhere), acpdb.InvalidError);
  const first = await worker({ owner: "one" });
  await first.session("s1").append(Entry.message("user", "hello"));
  const second = await worker({ owner: "two" });
  assert.equal((await second.session("s1").history()).length, 1);
  await assert.rejects(first.session("s1").append(Entry.message("user", "too late")), acpdb.FencedError);
  await second.session("s1").append(Entry.message("user", "in time"));
  assert.equal((await second.verify()).verdict, "sound");
  await second.close();
  await assert.rejects(first.close(), acpdb.FencedError);
  // With a key, objects of a new store are encrypted, and the key alone opens them.
  const sealed = (options) => acpdb.openRemote(url, "session-2", folder(), { ...anywhere, ...options });
  await (await sealed({ passphrase: "0123456789" })).close();
  await (await sealed({ passphrase: "0123456789" })).close();
  await assert.rejects(sealed({}), acpdb.LockedError);
  await assert.rejects(sealed({ passphrase: "another one" }), acpdb.LockedError);
  await assert.rejects(worker({ passphrase: "0123456789" }), acpdb.LockedError);
});

test("appends that rest on what was read share flushes, as others do", async (context) => {
  // Each waited for the disk in the store's queue: eight threads of LangGraph put no more a second than one.
  const store = await opened();
  const sessions = Array.from({ length: 32 }, (_, number) => store.session(`s${number}`));
  const micros = async (work) => {
    const begun = performance.now();
    await work();
    return (performance.now() - begun) * 1000;
  };
  const one = await micros(async () => {
    for (const session of sessions) await session.appendExpecting(0, Entry.message("user", "one"));
  });
  const heads = await Promise.all(sessions.map(async (session) => (await session.view()).seq));
  const together = await micros(() =>
    Promise.all(sessions.map((session, number) => session.appendExpecting(heads[number], Entry.message("user", "two")))),
  );
  if (one < 32 * 150) context.skip("nothing to share: this disk flushes at once");
  else assert.ok(together < one / 2, `${together} us together, ${one} us one after the other`);
  await assert.rejects(sessions[0].appendExpecting(0, Entry.message("user", "late")), acpdb.HeadMovedError);
  await store.close();
});
