// A session of the OpenAI Agents SDK: with its own runner and a fake model, and by its contracts.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as acpdb from "acpdb";
import { AcpdbSession } from "acpdb/adapters/openai";
import { opened } from "../help.mjs";

const user = (text) => ({ type: "message", role: "user", content: text });
const call = (id) => ({ type: "function_call", callId: id, name: "read", arguments: '{"filePath":"a.rs"}', status: "completed" });
const result = (id, text = "fn main() {}\n".repeat(60)) => ({
  type: "function_call_result", callId: id, name: "read", status: "completed", output: { type: "text", text },
});

test("items come back as they were, and pairs stay together", async () => {
  const store = await opened();
  const session = new AcpdbSession("s1", store);
  const items = [user("hello"), call("c1"), result("c1"), { type: "reasoning", content: [], id: "r1" }];
  await session.addItems(items);
  assert.deepEqual(await session.getItems(), items);
  assert.deepEqual(await session.getItems(2), items.slice(2));
  assert.deepEqual(await session.getItems(3), items.slice(1));
  assert.deepEqual(await session.getItems(0), []);
  assert.deepEqual(await session.popItem(), items[3]);
  assert.deepEqual(await session.popItem(), items[2]);
  assert.deepEqual(await new AcpdbSession("s1", store).getItems(), items.slice(0, 2));
  await session.clearSession();
  assert.deepEqual([await session.getItems(), await session.popItem()], [[], undefined]);
  assert.equal((await store.session("s1", { host: "openai-agents" }).search("hello", { at: 4 })).items.length, 1);
  await store.close();
});

test("a pruned history shows in a superseded output's place what acpdb shows", async () => {
  const store = await opened();
  const session = new AcpdbSession("s1", store, { pruned: true });
  await session.addItems([user("hello"), call("c1"), result("c1")]);
  await session.session.append(acpdb.Entry.step("t2"));
  await session.addItems([call("c2"), result("c2")]);
  const [, , first, , second] = await session.getItems();
  const [old] = await session.session.history({ tool: "read" });
  if (old.rule === "repeat") assert.ok(first.output.text.length < 200, first.output.text);
  await session.session.distill({ c2: "a main without anything" });
  assert.match((await session.getItems()).at(-1).output.text, /a main without anything/);
  assert.equal(second.output.text, result("c2").output.text);
  await store.close();
});

test("a transaction is applied once, as one commit, or not at all", async () => {
  const store = await opened();
  const session = new AcpdbSession("s1", store);
  const append = { operationId: "op1", transaction: { type: "append_items", items: [user("a"), call("c1")] } };
  await session.applyHistoryTransaction(append);
  await session.applyHistoryTransaction(append);
  await new AcpdbSession("s1", store).applyHistoryTransaction(append);
  assert.deepEqual(await session.getItems(), [user("a"), call("c1")]);
  await assert.rejects(
    session.applyHistoryTransaction({ ...append, transaction: { type: "append_items", items: [] } }), acpdb.InvalidError,
  );
  const replace = (operationId, expectedSuffix, replacement) =>
    session.applyHistoryTransaction({ operationId, transaction: { type: "replace_suffix", expectedSuffix, replacement } });
  await assert.rejects(replace("op2", [user("b")], []), /does not end with/);
  await assert.rejects(replace("", [], []), /operationId is empty/);
  await replace("op2", [call("c1")], [call("c2"), result("c2", "x")]);
  await replace("op2", [call("c1")], [call("c2"), result("c2", "x")]);
  assert.deepEqual(await session.getItems(), [user("a"), call("c2"), result("c2", "x")]);
  assert.equal((await session.session.context()).items.filter((item) => item.call !== null && item.state !== "tombstone").length, 1);
  await session.popItem();
  await session.popItem();
  await session.popItem();
  assert.deepEqual(await session.getItems(), []);
  assert.equal((await store.verify({ deep: true })).verdict, "sound");
  await store.close();
});
