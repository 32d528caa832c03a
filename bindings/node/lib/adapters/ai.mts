/**
 * Vercel AI SDK: `prepareStep` and a middleware over acpdb.
 *
 * ```ts
 * const session = store.session("run-1", { host: "ai-sdk" });
 * await generateText({ model, tools, prompt, prepareStep: prepareStep(session) });
 * const model = wrapLanguageModel({ model: base, middleware: middleware(session) });
 * ```
 *
 * Messages that are sent become facts, each once. What a later call superseded is sent as what acpdb shows in its place; calls and
 * their results stay together.
 */

import { createHash } from "node:crypto";

import type { ModelMessage, PrepareStepFunction, ToolSet } from "ai";

import { Entry, type Session } from "../index.js";
import { params, prunedOutputs, textOf } from "./records.mjs";

interface Part {
  type: string;
  text?: string;
  toolCallId?: string;
  toolName?: string;
  input?: unknown;
  output?: { type: string; value?: unknown };
}

interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string | Part[];
}

/** What `generateText` and `streamText` ask before each step. */
export function prepareStep<TOOLS extends ToolSet = any>(session: Session): PrepareStepFunction<TOOLS> {
  return async ({ messages }) => ({ messages: (await sent(session, messages as Message[])) as ModelMessage[] });
}

/** What `wrapLanguageModel` of the SDK's versions 6 and 7 takes: their own types name the version of the model, which is of no matter here. */
export interface Middleware {
  readonly specificationVersion: "v3";
  transformParams<T extends { prompt: unknown }>(options: { params: T }): Promise<T>;
}

/** A middleware for any model: what it is sent is recorded, and pruned. */
export function middleware(session: Session): Middleware {
  return {
    specificationVersion: "v3",
    transformParams: async ({ params: given }) => ({
      ...given,
      prompt: await sent(session, given.prompt as Message[]),
    }),
  };
}

/** Records messages that are new, and gives those to send. */
async function sent<T extends Message>(session: Session, messages: T[]): Promise<T[]> {
  const entries = messages.flatMap((message, place) => facts(message, place));
  if (entries.length > 0) await session.append(...entries);
  const shown = await prunedOutputs(session);
  return messages.map((message) => {
    if (message.role !== "tool" || !Array.isArray(message.content)) return message;
    const content = message.content.map((part) => {
      const text = part.type === "tool-result" ? shown.get(part.toolCallId ?? "") : undefined;
      return text === undefined ? part : { ...part, output: { type: "text", value: text } };
    });
    return { ...message, content };
  });
}

/** The facts of a message; the same message at the same place is known again. */
function facts(message: Message, place: number): Entry[] {
  const digest = createHash("sha256").update(JSON.stringify(message)).digest("hex").slice(0, 16);
  const origin = (part: number): string => `${place}:${digest}:${part}`;
  if (typeof message.content === "string") {
    return message.role === "tool" ? [] : [Entry.message(message.role, message.content, { origin: origin(0) })];
  }
  const made: Entry[] = [];
  if (message.role === "assistant") made.push(Entry.step(`${place}:${digest}`, { origin: origin(-1) }));
  const text = textOf(message.content.filter((part) => part.type === "text"));
  if (text !== "" && message.role !== "tool") made.push(Entry.message(message.role, text, { origin: origin(0) }));
  message.content.forEach((part, number) => {
    const call = part.toolCallId;
    if (call === undefined) return;
    if (part.type === "tool-call") {
      made.push(Entry.toolStarted(call, part.toolName ?? "", params(part.input), { origin: `call:${call}` }));
    } else if (part.type === "tool-result") {
      const isError = part.output?.type.startsWith("error") === true;
      const said = textOf(part.output?.value) || `part ${number}`;
      const options = { origin: `result:${call}` };
      made.push(isError ? Entry.toolFinished(call, undefined, { ...options, error: said }) : Entry.toolFinished(call, said, options));
    }
  });
  return made;
}
