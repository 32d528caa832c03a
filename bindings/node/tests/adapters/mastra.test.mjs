// Mastra's agents with a mock model: a processor of their requests and answers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Agent } from "@mastra/core/agent";
import { RequestContext } from "@mastra/core/request-context";
import { createTool } from "@mastra/core/tools";
import { InvalidError } from "acpdb";
import { acpdbProcessor, sessionOfThread } from "acpdb/adapters/mastra";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";
import { opened } from "../help.mjs";

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const whole = "fn main() {}\n".repeat(60);

/** An agent whose model reads the same file twice, by ids that each run has again, and then answers. */
function agent(processor) {
  const prompts = [];
  const model = new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      prompts.push(structuredClone(prompt));
      const isLast = prompts.length % 3 === 0;
      const content = isLast
        ? [{ type: "text", text: "It is the linker." }]
        : [{ type: "tool-call", toolCallId: `read:${prompts.length % 3}`, toolName: "read", input: '{"filePath":"a.rs"}' }];
      return { content, usage, warnings: [], finishReason: { unified: isLast ? "stop" : "tool-calls", raw: undefined } };
    },
  });
  const read = createTool({ id: "read", description: "Reads a file", inputSchema: z.object({ filePath: z.string() }), execute: async () => whole });
  const made = new Agent({ id: "a", name: "a", instructions: "Be brief.", model, tools: { read }, inputProcessors: [processor] });
  return { made, prompts };
}

const outputs = (prompt) =>
  prompt.filter((message) => message.role === "tool").flatMap((message) => message.content.map((part) => part.output.value));

test("an agent's messages are recorded once, and its model is sent what acpdb shows", async () => {
  const store = await opened();
  const { made, prompts } = agent(acpdbProcessor(store, { sessionOf: (context) => context.get("run") }));
  for (let run = 1; run <= 2; run += 1) {
    const requestContext = new RequestContext([["run", "run-1"]]);
    const { text } = await made.generate("why is the build red?", { maxSteps: 5, requestContext });
    assert.equal(text, "It is the linker.");
    const [old, newer] = outputs(prompts.at(-1));
    assert.equal(newer, whole);
    assert.ok(old.length < 300, "the first reading is superseded by the second");
  }
  const session = sessionOfThread(store, "run-1");
  const rows = await session.history();
  assert.equal(rows.filter((row) => row.tool === "read").length, 4, "each call once, whatever its id");
  assert.equal(rows.filter((row) => row.role === "user" && row.call === null).length, 2, "the same prompt of another run is another one");
  assert.equal((await session.search("It is the linker")).items.length, 2);
  assert.equal((await store.verify({ deep: true })).verdict, "sound");
  await store.close();
});

test("without pruning all is sent as it is, and a run without a thread is refused", async () => {
  const store = await opened();
  const { made, prompts } = agent(acpdbProcessor(store, { pruned: false, sessionOf: () => "run-1" }));
  await made.generate("why is the build red?", { maxSteps: 5 });
  assert.deepEqual(outputs(prompts.at(-1)), [whole, whole]);
  const { processLLMRequest } = acpdbProcessor(store);
  await assert.rejects(processLLMRequest({ prompt: [], stepNumber: 0, retryCount: 0 }), InvalidError);
  const requestContext = new RequestContext([["MastraMemory", { thread: { id: "run-2" } }]]);
  const prompt = [{ role: "user", content: [{ type: "text", text: "hello" }] }];
  await processLLMRequest({ prompt, stepNumber: 0, retryCount: 0, requestContext });
  assert.equal((await sessionOfThread(store, "run-2").history()).length, 1);
  await store.close();
});
