// Vercel AI SDK with its own mock model: `prepareStep` and a middleware.

import assert from "node:assert/strict";
import { test } from "node:test";

import { generateText, jsonSchema, stepCountIs, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { middleware, prepareStep } from "acpdb/adapters/ai";
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

for (const how of ["prepareStep", "middleware"]) {
  test(`${how} records each message once and sends what acpdb shows`, async () => {
    const store = await opened();
    const session = store.session("run-1", { host: "acpdb" });
    const { mock, prompts } = model();
    const options =
      how === "prepareStep"
        ? { model: mock, prepareStep: prepareStep(session) }
        : { model: wrapLanguageModel({ model: mock, middleware: middleware(session) }) };
    const { text } = await generateText({ ...options, tools, prompt: "why is the build red?", stopWhen: stepCountIs(5) });
    assert.equal(text, "It is the linker.");
    const [old, newer] = outputs(prompts[2]);
    assert.equal(newer, "fn main() {}\n".repeat(60));
    assert.ok(old.length < 300, "the first reading is superseded by the second");
    const rows = await session.history();
    assert.equal(rows.filter((row) => row.tool === "read").length, 2, "each call once");
    assert.equal(rows.filter((row) => row.role === "user" && row.call === null).length, 1);
    assert.equal((await store.verify({ deep: true })).verdict, "sound");
    await store.close();
  });
}
