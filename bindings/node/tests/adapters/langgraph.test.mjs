// The makers' suite, run whole; and what acpdb adds: another process, and every state again.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import * as acpdb from "acpdb";
import { AcpdbSaver } from "acpdb/adapters/langgraph";
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
  assert.equal((await first.session("t1").records()).length, 3);
  assert.equal((await store.verify()).verdict, "sound");
  await store.close();
  await other.close();
});
