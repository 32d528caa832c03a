// Vercel AI SDK with its own mock model: `prepareStep` and a middleware.

import assert from "node:assert/strict";
import { test } from "node:test";

import { generateText, jsonSchema, simulateReadableStream, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { middleware, prepareStep, recorded } from "acpdb/adapters/ai";
import { opened } from "../help.mjs";

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };

/** A model that reads the same file twice, and then answers. */
function model() {
  const prompts = [];
  const mock = new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      prompts.push(structuredClone(prompt));
      const number = prompts.length;
      const last = number === 3;
      const content = last
        ? [{ type: "text", text: "It is the linker." }]
        : [{ type: "tool-call", toolCallId: `call-${number}`, toolName: "read", input: '{"filePath":"a.rs"}' }];
      return { content, usage, warnings: [], finishReason: { unified: last ? "stop" : "tool-calls", raw: undefined } };
    },
  });
  return { mock, prompts };
}

const tools = {
  read: tool({
    description: "Reads a file",
    inputSchema: jsonSchema({ type: "object", properties: { filePath: { type: "string" } } }),
    execute: async () => "fn main() {}\n".repeat(60),
  }),
};

const outputs = (prompt) =>
  prompt.filter((message) => message.role === "tool").flatMap((message) => message.content.map((part) => part.output.value));

const ways = {
  prepareStep: (session, mock) => ({ model: mock, prepareStep: prepareStep(session) }),
  recorded: (session, mock) => ({ model: mock, ...recorded(session) }),
  middleware: (session, mock) => ({ model: wrapLanguageModel({ model: mock, middleware: middleware(session) }) }),
};

for (const [how, made] of Object.entries(ways)) {
  test(`${how} records each message once and sends what acpdb shows`, async () => {
    const store = await opened();
    const session = store.session("run-1", { host: "acpdb" });
    const { mock, prompts } = model();
    const options = made(session, mock);
    const { text } = await generateText({ ...options, tools, prompt: "why is the build red?", stopWhen: stepCountIs(5) });
    assert.equal(text, "It is the linker.");
    const [old, newer] = outputs(prompts[2]);
    assert.equal(newer, "fn main() {}\n".repeat(60));
    assert.ok(old.length < 300, "the first reading is superseded by the second");
    const rows = await session.history();
    assert.equal(rows.filter((row) => row.tool === "read").length, 2, "each call once");
    assert.equal(rows.filter((row) => row.role === "user" && row.call === null).length, 1);
    // `prepareStep` alone is not told how a run ends.
    assert.equal((await session.search("It is the linker")).items.length, how === "prepareStep" ? 0 : 1);
    assert.equal((await store.verify({ deep: true })).verdict, "sound");
    await store.close();
  });
}

test("an answer that streams is recorded once it has ended, and the same prompt again is another one", async () => {
  const store = await opened();
  const session = store.session("run-1");
  const chunks = ["It is ", "the linker."].map((delta) => ({ type: "text-delta", id: "0", delta }));
  const finish = { type: "finish", finishReason: { unified: "stop", raw: undefined }, usage };
  const stream = () => simulateReadableStream({ chunks: [{ type: "text-start", id: "0" }, ...chunks, { type: "text-end", id: "0" }, finish] });
  const mock = new MockLanguageModelV3({ doStream: async () => ({ stream: stream() }) });
  const model = wrapLanguageModel({ model: mock, middleware: middleware(session) });
  for (let run = 0; run < 2; run += 1) assert.equal(await streamText({ model, prompt: "why?" }).text, "It is the linker.");
  const rows = await session.history();
  assert.deepEqual(rows.map((row) => row.role), ["user", "assistant", "user", "assistant"]);
  await store.close();
});
