/**
 * Mastra: a processor over acpdb.
 *
 * ```ts
 * const agent = new Agent({ id: "builder", name: "builder", instructions, model, tools, inputProcessors: [acpdbProcessor(store)] });
 * await agent.generate("why is the build red?", { memory: { thread: "run-1", resource: "me" } });
 * ```
 *
 * What each request says is recorded, each message once, and so are the answers; the model is sent what acpdb's context shows of results
 * that were superseded. Mastra's own messages and memory stay whole, and so do calls with their results.
 */

import type { ProcessLLMRequestArgs, Processor } from "@mastra/core/processors";

import { InvalidError, type Session, type Store } from "../index.js";
import { sent, units, type Message, type Part } from "./prompts.mjs";
import { Tolds } from "./told.mjs";

const HOST = "mastra";

type Context = ProcessLLMRequestArgs["requestContext"];

export interface ProcessorOptions {
  /** Sends a line in place of each result that was superseded. True by default. */
  pruned?: boolean;
  /** Whose memory the sessions share. */
  project?: string;
  /** The session of a run; else the thread of its memory names it. */
  sessionOf?: (context: Context) => string;
}

/** What an agent takes among its `inputProcessors`. */
export type AcpdbProcessor = Processor<"acpdb"> & Required<Pick<Processor, "processLLMRequest" | "processLLMResponse">>;

/** Records the requests and answers of agents, and prunes what the model is sent. It stands behind what changes messages. */
export function acpdbProcessor(store: Store, options?: ProcessorOptions): AcpdbProcessor {
  const { pruned = true, project, sessionOf = threadOf } = options ?? {};
  const tolds = new Tolds((key) => sessionOfThread(store, key, project));
  return {
    id: "acpdb",
    processLLMRequest: async ({ prompt, stepNumber, retryCount, requestContext }) => {
      const told = tolds.of(sessionOf(requestContext));
      const shown = await sent(told, prompt as Message[], stepNumber === 0 && retryCount === 0);
      return pruned ? { prompt: shown as typeof prompt } : undefined;
    },
    processLLMResponse: async ({ chunks, requestContext }) => {
      const told = tolds.of(sessionOf(requestContext));
      // The next request has the calls as Mastra read them.
      if (chunks.some(({ type }) => type === "tool-call")) return told.answeredLater();
      const deltas = chunks.filter(({ type }) => type === "text-delta").map(({ payload }) => (payload as { text?: string }).text ?? "");
      const content: Part[] = [{ type: "text", text: deltas.join("") }];
      await told.answered(units({ role: "assistant", content }).map(({ unit }) => unit));
    },
  };
}

/** The session of a thread of agents. */
export function sessionOfThread(store: Store, thread: string, project?: string): Session {
  return store.session(thread, { host: HOST, ...(project === undefined ? {} : { project }) });
}

/** The thread that a run was given as its memory's. */
function threadOf(context: Context): string {
  const memory = context?.get("MastraMemory") as { thread?: { id?: unknown } } | undefined;
  const thread = memory?.thread?.id;
  if (typeof thread === "string" && thread !== "") return thread;
  throw new InvalidError("no thread: run the agent with { memory: { thread, resource } }, or give acpdbProcessor sessionOf");
}
