// The law of all adapters: whatever ids calls have, what is fresh is sent whole, and the log has each call once.
//
// The story: adapters took the id of a call for its name. Models use ids again, and then fresh results were sent as
// `[auto-superseded: ..]`, calls were recorded twice or not at all, and a prompt that was said again was not recorded.

import assert from "node:assert/strict";
import { test } from "node:test";

import { AcpdbSession } from "acpdb/adapters/openai";
import { AcpdbSessionStore } from "acpdb/adapters/claude";
import { middleware, recorded } from "acpdb/adapters/ai";
import { acpdbMiddleware, sessionOfThread } from "acpdb/adapters/langchain";
import { acpdbProcessor } from "acpdb/adapters/mastra";
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from "langchain";
import { Draw, Truth, runs } from "./conversations.mjs";
import { opened } from "../help.mjs";

const CASES = Number(process.env.ACPDB_LAW_CASES ?? 60);

async function openai(store, all, draw) {
  const [truth, finished] = [new Truth(), []];
  let session = new AcpdbSession("s", store, { pruned: true });
  for (const run of all) {
    if (draw.chance(0.5)) session = new AcpdbSession("s", store, { pruned: true });
    await session.addItems([{ type: "message", role: "user", content: run.prompt }]);
    for (const turn of run.turns) {
      await session.session.step();
      const calls = turn.map((it) => ({ type: "function_call", callId: it.id, name: it.tool, arguments: JSON.stringify(it.args) }));
      const ended = turn.filter((it) => it.isFinished);
      const outputs = ended.map((it) => ({ type: "function_call_result", callId: it.id, name: it.tool, output: { type: "text", text: it.output } }));
      if (draw.chance(0.5)) await session.addItems([...calls, ...outputs]);
      else await session.addItems(calls).then(() => session.addItems(outputs));
      truth.calls.push(...turn);
      finished.push(...ended);
      const sent = (await session.getItems()).filter((it) => it.type === "function_call_result");
      truth.judge(finished, sent.map((it) => it.output.text));
    }
    await session.addItems([{ type: "message", role: "assistant", content: [{ type: "output_text", text: run.answer }] }]);
  }
  return { session: session.session, truth };
}

/** The loop of the AI SDK: `how` makes what is called around each model call. */
const ai = (how) => async (store, all, draw) => {
  const [session, truth] = [store.session("s"), new Truth()];
  let earlier = { messages: [], finished: [] };
  let [prompts, broken] = [0, []];
  let adapter = how(session);
  for (const run of all) {
    if (!run.continues && !adapter.tellsAll) truth.lose(broken);
    broken = [];
    if (draw.chance(0.5)) adapter = how(session);
    const finished = run.continues ? [...earlier.finished] : [];
    const messages = [...(run.continues ? earlier.messages : []), { role: "user", content: [{ type: "text", text: run.prompt }] }];
    prompts += 1;
    const answers = [];
    for (let step = 0; step <= run.turns.length; step += 1) {
      const sent = await adapter.before([...messages, ...answers], step);
      const parts = sent.filter((it) => it.role === "tool").flatMap((it) => it.content);
      truth.judge(finished, parts.map((part) => part.output.value));
      const said = (await session.history()).filter((row) => row.role === "user" && row.call === null);
      assert.equal(said.length, prompts, "each prompt is recorded, whatever it says and wherever it stands");
      const turn = run.turns[step];
      const calls = turn?.map((it) => ({ type: "tool-call", toolCallId: it.id, toolName: it.tool, input: it.args }));
      answers.push({ role: "assistant", content: calls ?? [{ type: "text", text: run.answer }] });
      if (turn !== undefined) {
        const ended = turn.filter((it) => it.isFinished);
        truth.calls.push(...turn);
        finished.push(...ended);
        const content = ended.map((it) => ({ type: "tool-result", toolCallId: it.id, toolName: it.tool, output: { type: "text", value: it.output } }));
        if (content.length > 0) answers.push({ role: "tool", content });
      }
      await adapter.after(answers);
      if (turn?.some((it) => !it.isFinished)) {
        broken = turn;
        break;
      }
    }
    earlier = { messages: [...messages, ...answers], finished };
  }
  await adapter.before([...earlier.messages, { role: "user", content: [{ type: "text", text: "thanks" }] }], 0);
  return { session, truth };
};

const byRecorded = (session) => {
  const { prepareStep, onStepFinish } = recorded(session);
  return {
    before: async (messages, stepNumber) => (await prepareStep({ messages, stepNumber, steps: [] })).messages,
    tellsAll: true,
    after: (answers) => onStepFinish({ response: { messages: answers } }),
  };
};

const byPrepareStep = (session) => ({ ...byRecorded(session), tellsAll: false, after: async () => {} });

const byMiddleware = (session) => {
  const made = middleware(session);
  return {
    before: async (prompt) => (await made.transformParams({ params: { prompt } })).prompt,
    after: async (answers) => {
      const { content } = answers.findLast((it) => it.role === "assistant");
      await made.wrapGenerate({ doGenerate: async () => ({ content }) });
    },
  };
};

const byProcessor = (session) => {
  const made = acpdbProcessor({ session: () => session }, { sessionOf: () => "s" });
  return {
    before: async (prompt, stepNumber) => (await made.processLLMRequest({ prompt, stepNumber, retryCount: 0 })).prompt,
    after: async (answers) => {
      const { content } = answers.findLast((it) => it.role === "assistant");
      await made.processLLMResponse({ chunks: content.map(({ type, text }) => ({ type: type === "text" ? "text-delta" : type, payload: { text } })) });
    },
  };
};

async function claude(store, all) {
  const [truth, key, sdk] = [new Truth(), { projectKey: "p", sessionId: "s" }, new AcpdbSessionStore(store)];
  let number = 0;
  // Claude Code itself tells the calls of one answer apart.
  for (const { turns } of all) for (const turn of turns) turn.forEach((it, place) => (it.id = `${it.id || it.tool}-${place}`));
  const line = (role, content) => {
    number += 1;
    const timestamp = new Date(1767225600000 + number * 1000).toISOString();
    return { type: role, uuid: `u-${number}`, sessionId: "s", timestamp, message: { role, content, id: `msg_${number}` } };
  };
  for (const run of all) {
    const lines = [line("user", run.prompt)];
    for (const turn of run.turns) {
      lines.push(line("assistant", turn.map((it) => ({ type: "tool_use", id: it.id, name: it.tool, input: it.args }))));
      const results = turn.filter((it) => it.isFinished).map((it) => ({ type: "tool_result", tool_use_id: it.id, content: it.output }));
      if (results.length > 0) lines.push(line("user", results));
      truth.calls.push(...turn);
    }
    await sdk.append(key, lines);
  }
  return { session: sdk.session(key), truth };
}

async function agents(store, all, draw) {
  const truth = new Truth();
  const made = () => acpdbMiddleware(store, { sessionOf: () => "s" });
  const session = sessionOfThread(store, "s");
  let [middleware, earlier, before, broken, prompts] = [made(), [], [], [], 0];
  const systemMessage = new SystemMessage(draw.chance(0.5) ? "Be brief." : "");
  const ask = (messages, finished, answer) =>
    middleware.wrapModelCall({ messages: [...messages], systemMessage, runtime: {}, state: {} }, async (request) => {
      truth.judge(finished, request.messages.filter((it) => it.getType() === "tool").map((it) => it.content));
      if (answer === undefined) throw new RangeError("the model is away");
      return answer;
    });
  const isWhole = async () => {
    const rows = prompts === 0 ? [] : await session.history().catch(() => []);
    return rows.filter((row) => row.role === "user" && row.call === null).length === prompts;
  };
  for (const run of all) {
    // How its last calls ended was never told.
    if (!run.continues) for (const it of broken) it.isFinished = false;
    broken = [];
    const messages = run.continues ? [...earlier] : [];
    const finished = run.continues ? [...before] : [];
    // A model that cannot be reached is asked again: in the same run, or by the same prompt in another one.
    for (let asked = draw.chance(0.25) ? 2 : 1; asked > 0; asked -= 1) {
      middleware.beforeAgent({}, {});
      messages.push(new HumanMessage(run.prompt));
      prompts += 1;
      for (let away = draw.chance(0.4) ? 2 : 0; away > 0; away -= 1) await assert.rejects(ask(messages, finished), RangeError);
    }
    for (let step = 0; step <= run.turns.length; step += 1) {
      if (draw.chance(0.3) && (await isWhole())) middleware = made();
      const turn = run.turns[step] ?? [];
      const tool_calls = turn.map((it) => ({ type: "tool_call", id: it.id, name: it.tool, args: it.args }));
      const answer = new AIMessage({ content: turn.length > 0 ? "" : run.answer, tool_calls });
      await ask(messages, finished, answer);
      assert.ok(await isWhole(), "each prompt is recorded once, whatever it says");
      truth.calls.push(...turn);
      const ended = turn.filter((it) => it.isFinished);
      messages.push(answer, ...ended.map((it) => new ToolMessage({ content: it.output, tool_call_id: it.id })));
      finished.push(...ended);
      if (ended.length < turn.length) {
        broken = turn;
        break;
      }
    }
    [earlier, before] = [messages, finished];
  }
  middleware.beforeAgent({}, {});
  await ask([...earlier, new HumanMessage("thanks")], before, new AIMessage("bye"));
  return { session, truth };
}

const players = { openai, agents, "ai recorded": ai(byRecorded), "ai prepareStep": ai(byPrepareStep), "ai middleware": ai(byMiddleware), mastra: ai(byProcessor), claude };

for (const [name, play] of Object.entries(players)) {
  test(`${name}: what is fresh is sent whole, and the log has each call once`, async () => {
    for (let seed = 0; seed < CASES; seed += 1) {
      const store = await opened({ durability: "os" });
      try {
        const draw = new Draw(seed);
        const { session, truth } = await play(store, runs(draw), draw);
        await truth.check(session);
      } catch (error) {
        error.message = `seed ${seed}: ${error.message}`;
        throw error;
      }
      await store.close();
    }
  });
}
