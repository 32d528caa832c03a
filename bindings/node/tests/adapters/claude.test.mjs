// Contracts of session stores, as the suite of the Python SDK has them, and what acpdb adds.

import assert from "node:assert/strict";
import { test } from "node:test";

import { InMemorySessionStore, foldSessionSummary } from "@anthropic-ai/claude-agent-sdk";
import { AcpdbSessionStore } from "acpdb/adapters/claude";
import { opened } from "../help.mjs";

const key = { projectKey: "proj", sessionId: "sess" };
const e = (fields) => ({ type: "x", ...fields });
const stores = [];

async function fresh() {
  const store = await opened({ durability: "os" });
  stores.push(store);
  return new AcpdbSessionStore(store);
}

const contracts = {
  "entries come back as they were, in their order": async (store) => {
    await store.append(key, [e({ uuid: "b", n: 1 }), e({ uuid: "a", n: 2 })]);
    assert.deepEqual(await store.load(key), [e({ uuid: "b", n: 1 }), e({ uuid: "a", n: 2 })]);
  },
  "an unknown key is null": async (store) => {
    assert.equal(await store.load({ projectKey: "proj", sessionId: "nope" }), null);
    await store.append(key, [e({ uuid: "x", n: 1 })]);
    assert.equal(await store.load({ ...key, subpath: "nope" }), null);
  },
  "several appends keep the order of the calls": async (store) => {
    const batches = [[e({ uuid: "z", n: 1 })], [e({ uuid: "a", n: 2 }), e({ uuid: "m", n: 3 })], [e({ uuid: "b", n: 4 })]];
    await Promise.all(batches.map((batch) => store.append(key, batch)));
    assert.deepEqual(await store.load(key), batches.flat());
  },
  "appending nothing changes nothing": async (store) => {
    await store.append(key, [e({ uuid: "a", n: 1 })]);
    await store.append(key, []);
    assert.deepEqual(await store.load(key), [e({ uuid: "a", n: 1 })]);
  },
  "subpaths are kept apart from the main transcript": async (store) => {
    const sub = { ...key, subpath: "subagents/agent-1" };
    await store.append(key, [e({ uuid: "m", n: 1 })]);
    await store.append(sub, [e({ uuid: "s", n: 1 })]);
    assert.deepEqual(await store.load(key), [e({ uuid: "m", n: 1 })]);
    assert.deepEqual(await store.load(sub), [e({ uuid: "s", n: 1 })]);
  },
  "projects are kept apart": async (store) => {
    for (const projectKey of ["A", "B"]) await store.append({ projectKey, sessionId: "s1" }, [e({ from: projectKey })]);
    for (const projectKey of ["A", "B"]) {
      assert.deepEqual(await store.load({ projectKey, sessionId: "s1" }), [e({ from: projectKey })]);
      assert.equal((await store.listSessions(projectKey)).length, 1);
    }
  },
  "sessions of a project are listed with the time in milliseconds": async (store) => {
    await store.append({ projectKey: "proj", sessionId: "a" }, [e({ n: 1 })]);
    await store.append({ projectKey: "proj", sessionId: "b" }, [e({ n: 1 })]);
    await store.append({ projectKey: "other", sessionId: "c" }, [e({ n: 1 })]);
    const sessions = await store.listSessions("proj");
    assert.deepEqual(sessions.map((one) => one.sessionId).sort(), ["a", "b"]);
    assert.ok(sessions.every(({ mtime }) => Number.isInteger(mtime) && mtime > 1e12));
    assert.deepEqual(await store.listSessions("never"), []);
  },
  "subpaths are not listed as sessions": async (store) => {
    await store.append({ projectKey: "proj", sessionId: "main" }, [e({ n: 1 })]);
    await store.append({ projectKey: "proj", sessionId: "main", subpath: "subagents/agent-1" }, [e({ n: 1 })]);
    assert.deepEqual((await store.listSessions("proj")).map((one) => one.sessionId), ["main"]);
  },
  "a deleted session is gone; one that never was can be deleted": async (store) => {
    await store.delete({ projectKey: "proj", sessionId: "never" });
    await store.append(key, [e({ n: 1 })]);
    await store.delete(key);
    assert.equal(await store.load(key), null);
  },
  "deleting a session deletes its subpaths and nothing else": async (store) => {
    const subs = ["1", "2"].map((number) => ({ ...key, subpath: `subagents/agent-${number}` }));
    const others = [{ projectKey: "proj", sessionId: "sess2" }, { projectKey: "other-proj", sessionId: "sess" }];
    for (const one of [key, ...subs, ...others]) await store.append(one, [e({ n: 1 })]);
    await store.delete(key);
    for (const one of [key, ...subs]) assert.equal(await store.load(one), null);
    for (const one of others) assert.equal((await store.load(one)).length, 1);
    assert.deepEqual(await store.listSubkeys(key), []);
    assert.ok(!(await store.listSessions("proj")).some((one) => one.sessionId === "sess"));
  },
  "deleting a subpath deletes it alone": async (store) => {
    const [one, two] = ["1", "2"].map((number) => ({ ...key, subpath: `subagents/agent-${number}` }));
    for (const each of [key, one, two]) await store.append(each, [e({ n: 1 })]);
    await store.delete(one);
    assert.equal(await store.load(one), null);
    assert.equal((await store.load(two)).length, 1);
    assert.equal((await store.load(key)).length, 1);
    assert.deepEqual(await store.listSubkeys(key), ["subagents/agent-2"]);
  },
  "subpaths of a session are listed": async (store) => {
    for (const number of ["1", "2"]) await store.append({ ...key, subpath: `subagents/agent-${number}` }, [e({ n: 1 })]);
    await store.append({ projectKey: "proj", sessionId: "other", subpath: "subagents/agent-x" }, [e({ n: 1 })]);
    assert.deepEqual((await store.listSubkeys(key)).sort(), ["subagents/agent-1", "subagents/agent-2"]);
  },
  "the main transcript is no subpath": async (store) => {
    await store.append(key, [e({ n: 1 })]);
    assert.deepEqual(await store.listSubkeys(key), []);
    assert.deepEqual(await store.listSubkeys({ projectKey: "proj", sessionId: "never" }), []);
  },
  "summaries are what the SDK folds, and fold on": async (store) => {
    const at = (second, more = {}) => e({ timestamp: `2024-01-01T00:00:0${second}.000Z`, ...more });
    const one = { projectKey: "proj", sessionId: "summ" };
    await store.append(one, [at(0, { customTitle: "first" }), at(1)]);
    await store.append(one, [at(2, { customTitle: "second" })]);
    await store.append({ projectKey: "other", sessionId: "elsewhere" }, [at(0)]);
    const [summary, ...more] = await store.listSessionSummaries("proj");
    assert.deepEqual([summary.sessionId, more], ["summ", []]);
    assert.ok(Number.isInteger(summary.mtime) && summary.mtime > 1e12);
    assert.ok(summary.mtime >= (await store.listSessions("proj"))[0].mtime);
    const again = foldSessionSummary(summary, one, [at(3)]);
    assert.deepEqual([again.sessionId, again.mtime], ["summ", summary.mtime]);
    await store.append({ ...one, subpath: "subagents/agent-1" }, [at(9, { customTitle: "subagent" })]);
    assert.deepEqual((await store.listSessionSummaries("proj"))[0].data, summary.data);
    assert.deepEqual(await store.listSessionSummaries("never"), []);
    await store.delete(one);
    assert.deepEqual(await store.listSessionSummaries("proj"), []);
  },
};

for (const [name, contract] of Object.entries(contracts)) {
  test(name, async () => {
    await contract(await fresh());
    const store = stores.pop();
    assert.equal((await store.verify({ deep: true })).verdict, "sound");
    await store.close();
  });
}

test("the contracts hold for the SDK's own store, too, where it keeps them", async () => {
  for (const name of ["entries come back as they were, in their order", "projects are kept apart", "subpaths of a session are listed"]) {
    await contracts[name](new InMemorySessionStore());
  }
});

test("lines come back, are known again, and are understood", async () => {
  const store = await opened();
  const sdk = new AcpdbSessionStore(store);
  const id = { projectKey: "proj", sessionId: "11111111-2222-3333-4444-555555555555" };
  const line = (number, role, content) => ({
    type: role,
    uuid: `00000000-0000-0000-0000-${String(number).padStart(12, "0")}`,
    sessionId: id.sessionId,
    cwd: "/w",
    timestamp: `2026-01-01T00:00:0${number}.000Z`,
    message: { role, content, id: `msg_${number}` },
  });
  const reads = (number) => [
    line(number, "assistant", [{ type: "tool_use", id: `toolu_${number}`, name: "Read", input: { file_path: "/w/main.rs" } }]),
    line(number + 1, "user", [{ type: "tool_result", tool_use_id: `toolu_${number}`, content: "fn main() {}\n".repeat(100) }]),
  ];
  const said = [line(1, "user", "why is the build red?"), ...reads(2), ...reads(4)];
  await sdk.append(id, said.slice(0, 2));
  await sdk.append(id, said.slice(1)); // told again, and more
  assert.deepEqual(await sdk.load(id), said);
  const [first, second] = await sdk.session(id).history({ tool: "Read" });
  assert.deepEqual([first.rule, second.rule], ["repeat", null]);
  await sdk.delete(id);
  await sdk.append(id, said);
  await new AcpdbSessionStore(store).append(id, said);
  assert.deepEqual(await sdk.load(id), said);
  await store.close();
});
