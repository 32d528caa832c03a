/**
 * Vercel AI SDK: `prepareStep` and a middleware over acpdb.
 *
 * ```ts
 * const session = store.session("run-1", { host: "ai-sdk" });
 * await generateText({ model, tools, prompt, ...recorded(session) });
 * const model = wrapLanguageModel({ model: base, middleware: middleware(session) });
 * ```
 *
 * Messages that are sent become facts, each once, and so do the answers. What a later call superseded is sent as what acpdb shows in
 * its place; calls and their results stay together.
 */

import type { ModelMessage, PrepareStepFunction, ToolSet } from "ai";

import type { Session } from "../index.js";
import { sent, units, type Message, type Part } from "./prompts.mjs";
import { dumped } from "./records.mjs";
import { Told } from "./told.mjs";

/** What `generateText` and `streamText` are given to record a run whole, and to send what still holds. */
export interface Recorded<TOOLS extends ToolSet> {
  readonly prepareStep: PrepareStepFunction<TOOLS>;
  readonly onStepFinish: (step: { readonly response: { readonly messages: readonly unknown[] } }) => Promise<void>;
}

/** Records a run whole, its last answer, too: spread it into the options of `generateText` or `streamText`. */
export function recorded<TOOLS extends ToolSet = any>(session: Session): Recorded<TOOLS> {
  const told = new Told(session);
  /** Messages of this run's answers in the list that was told last. */
  let answers: readonly Message[] = [];
  let first = 0;
  return {
    prepareStep: async ({ messages, stepNumber }) => {
      const given = messages as Message[];
      if (stepNumber === 0) first = given.length;
      answers = given.slice(first);
      return { messages: (await sent(told, given, stepNumber === 0)) as ModelMessage[] };
    },
    onStepFinish: async ({ response }) => {
      // Messages of this step, or by some versions those of all steps so far.
      const given = response.messages as readonly Message[];
      const isWhole = dumped(given.slice(0, answers.length)) === dumped(answers);
      await told.answered((isWhole ? given.slice(answers.length) : given).flatMap((message) => units(message).map(({ unit }) => unit)));
    },
  };
}

/** What `generateText` and `streamText` ask before each step. The last answer is left to the next run; `recorded` has it at once. */
export function prepareStep<TOOLS extends ToolSet = any>(session: Session): PrepareStepFunction<TOOLS> {
  return recorded<TOOLS>(session).prepareStep;
}

/** What `wrapLanguageModel` of the SDK's versions 6 and 7 takes: their own types name the version of the model, which is of no matter here. */
export interface Middleware {
  readonly specificationVersion: "v3";
  transformParams<T extends { prompt: unknown }>(options: { params: T }): Promise<T>;
  wrapGenerate<T extends { content: readonly unknown[] }>(options: { doGenerate: () => PromiseLike<T> }): Promise<T>;
  wrapStream<T extends { stream: ReadableStream<any> }>(options: { doStream: () => PromiseLike<T> }): Promise<T>;
}

/**
 * A middleware for any model: what it is sent is recorded, and pruned; so are its answers. An answer that calls tools is recorded with
 * the next request, which has its calls as the SDK read them.
 */
export function middleware(session: Session): Middleware {
  const told = new Told(session);
  const answered = async (parts: readonly Part[]): Promise<void> => {
    if (parts.some(({ type }) => type === "tool-call")) return told.answeredLater();
    await told.answered(units({ role: "assistant", content: [...parts] }).map(({ unit }) => unit));
  };
  return {
    specificationVersion: "v3",
    transformParams: async ({ params: given }) => ({ ...given, prompt: await sent(told, given.prompt as Message[]) }),
    wrapGenerate: async ({ doGenerate }) => {
      const result = await doGenerate();
      await answered(result.content as readonly Part[]);
      return result;
    },
    wrapStream: async ({ doStream }) => {
      const result = await doStream();
      const texts = new Map<string, Part & { text: string }>();
      const parts: Part[] = [];
      const watched = new TransformStream<any, any>({
        transform(chunk: { type: string; id?: string; delta?: string }, controller) {
          if (chunk.type === "text-delta") {
            const part = texts.get(chunk.id ?? "") ?? { type: "text", text: "" };
            if (!texts.has(chunk.id ?? "")) parts.push(part);
            texts.set(chunk.id ?? "", part);
            part.text += chunk.delta ?? "";
          } else if (chunk.type === "tool-call") {
            parts.push({ type: chunk.type });
          }
          controller.enqueue(chunk);
        },
        flush: () => answered(parts),
      });
      return { ...result, stream: result.stream.pipeThrough(watched) };
    },
  };
}
