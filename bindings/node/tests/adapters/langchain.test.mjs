// A middleware of LangChain's agents over acpdb, in real agents with a model that is told what to say.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ChatMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph-checkpoint";
import { BusyError, Session } from "acpdb";
import { acpdbMiddleware, sessionOfThread } from "acpdb/adapters/langchain";
import { AcpdbSaver } from "acpdb/adapters/langgraph";
import { AIMessage, HumanMessage, createAgent, createMiddleware, fakeModel, tool } from "langchain";
import { z } from "zod";

import { opened } from "../help.mjs";

const read = tool(async ({ filePath }) => (filePath === "\ud83d" ? "half of a pair: \ud83d" : `text of ${filePath} `.repeat(60)), {
  name: "read",
  description: "Reads a file.",
  schema: z.object({ filePath: z.string() }),
});

/** Reads files. The ids restart with each answer. */
const call = (...paths) =>
  new AIMessage({ content: "", tool_calls: paths.map((filePath, n) => ({ name: "read", args: { filePath }, id: `read:${n}`, type: "tool_call" })) });

function agent(middleware, says, checkpointer) {
  const model = fakeModel();
  for (const message of says) model.respond(message);
  return { agent: createAgent({ model, tools: [read], middleware: [middleware], checkpointer, systemPrompt: "Be brief." }), model };
}

const results = (messages) => messages.filter((it) => it.getType() === "tool").map((it) => it.content);
const on = (thread) => ({ configurable: { thread_id: thread } });
/** Each time another message: the framework gives it an id. */
const look = () => ({ messages: [new HumanMessage("look")] });

test("stale results are not sent, and the state stays whole", async () => {
  const store = await opened();
  const made = agent(acpdbMiddleware(store), [call("a", "b"), call("c"), call("a"), new AIMessage("It is the linker.")]);
  const state = await made.agent.invoke({ messages: [new HumanMessage("why is the build red?")] }, on("t"));
  const whole = results(state.messages);
  assert.deepEqual(whole, [..."abca"].map((path) => `text of ${path} `.repeat(60)));
  const [stale, ...fresh] = results(made.model.calls.at(-1).messages);
  assert.ok(stale.length < 100);
  assert.deepEqual(fresh, whole.slice(1));
  assert.deepEqual(results(made.model.calls.at(-2).messages), whole.slice(0, 3), "a result is sent whole until it is stale");
  const session = sessionOfThread(store, "t");
  const rows = (await session.history()).map(({ role, tool, state }) => [role, tool, state]);
  assert.deepEqual(rows, [
    ["system", null, "whole"],
    ["user", null, "whole"],
    ["assistant", "read", "tombstone"],
    ...Array(3).fill(["assistant", "read", "whole"]),
    ["assistant", null, "whole"],
  ]);
  assert.equal((await session.context()).turn, 4, "each answer is a step");
  await store.close();
});

test("each run of a thread is recorded once", async () => {
  const [store, saver] = [await opened(), new MemorySaver()];
  for (let number = 0; number < 3; number += 1) {
    // Another middleware each time, as after a restart.
    const made = agent(acpdbMiddleware(store, { pruned: false }), [call("a"), new AIMessage("done")], saver);
    const { messages } = await made.agent.invoke(look(), on("t"));
    assert.equal(results(messages).length, number + 1);
  }
  const rows = await sessionOfThread(store, "t").history();
  assert.deepEqual(rows.filter((row) => row.call === null).map((row) => row.role), ["system", ...Array(3).fill(["user", "assistant"]).flat()]);
  assert.equal(rows.filter((row) => row.tool === "read").length, 3);
  await store.close();
});

test("a prompt is recorded though its request had to be sent again", async () => {
  // The run was taken for begun when its first request had failed: its prompt, which an earlier run had said, was not recorded.
  const store = await opened();
  const middleware = acpdbMiddleware(store);
  const again = createMiddleware({ name: "again", wrapModelCall: (request, handler) => handler(request).catch(() => handler(request)) });
  const { append } = Session.prototype;
  const fails = [false, false, true, false, false];
  Session.prototype.append = async function (...entries) {
    if (fails.shift()) throw new BusyError("another process writes");
    return append.apply(this, entries);
  };
  try {
    for (let number = 0; number < 2; number += 1) {
      const model = fakeModel().respond(new AIMessage("done"));
      const messages = [new HumanMessage({ content: "look", id: "m" })];
      await createAgent({ model, tools: [], middleware: [again, middleware] }).invoke({ messages }, on("t"));
    }
  } finally {
    Session.prototype.append = append;
  }
  assert.deepEqual(fails, []);
  assert.deepEqual((await sessionOfThread(store, "t").history()).map(({ role }) => role), ["user", "assistant", "user", "assistant"]);
  await store.close();
});

test("threads are sessions of their own, also at once, and a run without one is told how to name it", async () => {
  const store = await opened();
  const middleware = acpdbMiddleware(store);
  await Promise.all([...Array(8).keys()].map((thread) => agent(middleware, [call(`${thread}`), call("shared"), new AIMessage(`done ${thread}`)]).agent.invoke(look(), on(`${thread}`))));
  for (let thread = 0; thread < 8; thread += 1) {
    const session = sessionOfThread(store, `${thread}`);
    assert.deepEqual((await session.history()).map(({ role }) => role), ["system", "user", "assistant", "assistant", "assistant"]);
    assert.equal((await session.search(`done ${thread}`)).items.length, 1);
  }
  await assert.rejects(agent(middleware, [new AIMessage("done")]).agent.invoke(look()), /thread_id/);
  await store.close();
});

test("an agent in a tool hides nothing of the one that called it", async () => {
  // It has the thread's id, too: what it read again was hidden from the other one, which had never seen that.
  const store = await opened();
  const middleware = acpdbMiddleware(store);
  const inner = agent(middleware, [1, 2].flatMap(() => [call("a"), call("a"), new AIMessage("sub done")])).agent;
  const ask = tool(async ({ question }) => (await inner.invoke({ messages: [new HumanMessage(question)] })).messages.at(-1).content, {
    name: "ask",
    description: "Asks another agent.",
    schema: z.object({ question: z.string() }),
  });
  const asks = () => new AIMessage({ content: "", tool_calls: [{ name: "ask", args: { question: "what is in a?" }, id: "read:0", type: "tool_call" }] });
  const model = fakeModel();
  for (const message of [call("a"), asks(), asks(), new AIMessage("done")]) model.respond(message);
  await createAgent({ model, tools: [read, ask], middleware: [middleware], checkpointer: new MemorySaver() }).invoke(look(), on("t"));
  assert.equal(results(model.calls.at(-1).messages)[0], "text of a ".repeat(60));
  const keys = (await store.names()).filter(({ host }) => host === "langchain-agents").map(({ id }) => id);
  assert.deepEqual([keys.length, keys[0]], [3, "t"]);
  assert.ok(keys.slice(1).every((key) => key.startsWith("t/tools:")));
  assert.deepEqual((await sessionOfThread(store, "t").history()).map(({ role }) => role), ["user", ...Array(4).fill("assistant")]);
  await store.close();
});

test("thoughts, texts and halves of pairs are recorded", async () => {
  const store = await opened();
  const thought = [{ type: "thinking", thinking: "hm \ud83d", signature: "s" }, { type: "text", text: "I will." }];
  const asks = new AIMessage({ content: thought, tool_calls: [{ name: "read", args: { filePath: "\ud83d" }, id: "" }] });
  const made = agent(acpdbMiddleware(store, { sessionOf: () => "mine" }), [asks, new AIMessage("done \ud83d")]);
  await made.agent.invoke({ messages: [new HumanMessage([{ type: "text", text: "look \ud83d" }, { type: "image", url: "x" }])] });
  const session = sessionOfThread(store, "mine");
  assert.deepEqual((await session.history()).map(({ role }) => role), ["system", "user", ...Array(4).fill("assistant")]);
  for (const said of ["half of a pair", "I will."]) assert.equal((await session.search(said)).items.length, 1);
  assert.equal((await store.verify({ deep: true })).verdict, "sound");
  await store.close();
});

test("messages of other kinds are recorded as such", async () => {
  // Each was made a record that was thrown away; one that JSON has no form for ended the run.
  const store = await opened();
  const middleware = acpdbMiddleware(store);
  const by = {
    toJSON() {
      throw new Error("no form");
    },
  };
  for (let number = 0; number < 2; number += 1) {
    const other = new ChatMessage({ content: "look \ud83d", role: "critic", id: "m", additional_kwargs: { by } });
    await agent(middleware, [new AIMessage("done")]).agent.invoke({ messages: [other, new HumanMessage("look")] }, on("t"));
  }
  const session = sessionOfThread(store, "t");
  const marks = (await session.records()).map(({ bytes }) => JSON.parse(bytes.toString()));
  assert.deepEqual(marks.map(({ unit }) => unit), ["system", "other", "user", "assistant", "user", "assistant"]);
  assert.deepEqual(Object.keys(marks[1]), ["unit", "is"], "the mark alone is kept");
  assert.deepEqual((await session.history()).map(({ role }) => role), ["system", ...Array(2).fill(["user", "assistant"]).flat()]);
  await store.close();
});

test("of an agent's thread the latest checkpoint is kept, and it goes on", async () => {
  const store = await opened();
  const run = async () => {
    const made = agent(acpdbMiddleware(store), [call("a"), new AIMessage("done")], new AcpdbSaver(store));
    return results((await made.agent.invoke(look(), on("t"))).messages).length;
  };
  const kept = async () => {
    let count = 0;
    for await (const _ of new AcpdbSaver(store).list(on("t"))) count += 1;
    return count;
  };
  assert.deepEqual([await run(), await run()], [1, 2]);
  assert.ok((await kept()) > 6);
  await new AcpdbSaver(store).prune(["t"]);
  assert.equal(await kept(), 1);
  assert.equal(await run(), 3);
  await new AcpdbSaver(store).deleteThread("t");
  assert.deepEqual([await kept(), await run()], [0, 1]);
  await store.close();
});
