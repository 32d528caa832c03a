/**
 * LangChain's agents: a middleware over acpdb.
 *
 * ```ts
 * const agent = createAgent({ model, tools, middleware: [acpdbMiddleware(store)] });
 * await agent.invoke({ messages: "why is the build red?" }, { configurable: { thread_id: "run-1" } });
 * ```
 *
 * The messages of each request are recorded as they pass, each once, and the model's answers as they come; the model is sent what acpdb's
 * context shows of results that were superseded. The agent's own state stays whole, and so do calls with their results.
 */

import { AIMessage, ToolMessage, createMiddleware, type BaseMessage, type Runtime } from "langchain";

import { Entry, InvalidError, Part, type Session, type Store } from "../index.js";
import { ended, said, sorted, started, whole } from "./records.mjs";
import { Tolds, type Unit } from "./told.mjs";

const HOST = "langchain-agents";

export interface MiddlewareOptions {
  /** Sends a line in place of each result that was superseded. True by default. */
  pruned?: boolean;
  /** Whose memory the sessions share. */
  project?: string;
  /** The session of a run; else its `thread_id` names it. */
  sessionOf?: (runtime: Runtime<any>) => string;
}

/**
 * Records the messages of requests and the answers, and prunes what the model is sent.
 *
 * Each thread of the agent is a session, and each run of an agent in a tool of another one. The middleware stands behind what changes
 * messages, such as summaries, and before what sends a request anew.
 */
export function acpdbMiddleware(store: Store, options?: MiddlewareOptions) {
  const { pruned = true, project, sessionOf = threadOf } = options ?? {};
  const tolds = new Tolds((key) => sessionOfThread(store, key, project));
  /** Sessions in which a run began, and nothing of it was told yet. */
  const begun = new Set<string>();
  return createMiddleware({
    name: "acpdb",
    beforeAgent: (_, runtime) => {
      // Its prompt is new, whatever it says.
      begun.add(sessionOf(runtime));
    },
    wrapModelCall: async (request, handler) => {
      const key = sessionOf(request.runtime);
      const told = tolds.of(key);
      const system = request.systemMessage?.content ? unitsOf(request.systemMessage) : [];
      const each = request.messages.map(unitsOf);
      const begins = begun.delete(key);
      const shown = await told.tell([...system, ...each.flat()], begins).catch((error: unknown) => {
        // The request may be sent again; that a run began is still to be told then.
        if (begins) begun.add(key);
        throw error;
      });
      let place = system.length;
      const messages = request.messages.map((message, number) => {
        // A result is one unit.
        const text = shown.get(place);
        place += each[number]?.length ?? 0;
        return pruned && text !== undefined && message instanceof ToolMessage ? shortened(message, text) : message;
      });
      const answer = await handler({ ...request, messages });
      if (AIMessage.isInstance(answer)) await told.answered(unitsOf(answer));
      return answer;
    },
  });
}

/** The session of a thread of agents. */
export function sessionOfThread(store: Store, thread: string, project?: string): Session {
  return store.session(thread, { host: HOST, ...(project === undefined ? {} : { project }) });
}

/** The thread; and of an agent in a tool of another one, which has the thread's id, too, the place of that call. */
function threadOf(runtime: Runtime<any>): string {
  const thread: unknown = runtime.configurable?.thread_id;
  if (thread === undefined || thread === null || thread === "") {
    throw new InvalidError("no thread: run the agent with { configurable: { thread_id } }, or give the middleware sessionOf");
  }
  const within = String(runtime.configurable?.checkpoint_ns ?? "").split("|").slice(0, -1).join("|");
  return within === "" ? String(thread) : `${String(thread)}/${within}`;
}

function shortened(message: ToolMessage, content: string): ToolMessage {
  const { tool_call_id, id, name, status, artifact, metadata, additional_kwargs, response_metadata } = message;
  const kept = { tool_call_id, artifact, metadata, additional_kwargs, response_metadata };
  return new ToolMessage({ ...kept, content, ...(id && { id }), ...(name && { name }), ...(status && { status }) });
}

/** Prompts, texts, calls and their ends, in order. */
function unitsOf(message: BaseMessage): Unit[] {
  const { content } = message;
  const kind = message.getType();
  if (kind === "tool") {
    const { tool_call_id: id, status } = message as ToolMessage;
    return [{ kind: "end", id: id ?? "", make: (call) => ended(call, content, status === "error") }];
  }
  if (kind === "ai") {
    const parts = partsOf(content);
    const calls = (message as AIMessage).tool_calls ?? [];
    const units: Unit[] = calls.map(({ id, name, args }) => {
      return { kind: "call", id: id ?? "", says: [name, sorted(args)], make: (call: string) => started(call, name, args) };
    });
    if (parts.length > 0 || calls.length === 0) {
      units.unshift({ kind: "assistant", says: content, make: () => Entry.message("assistant", parts.length > 0 ? parts : "") });
    }
    return units.map((unit, number) => (number === 0 ? { ...unit, begins: true } : unit));
  }
  if (kind === "human") return [{ kind: "user", says: content, make: () => said("user", content) }];
  if (kind === "system") return [{ kind: "system", says: content, make: () => said("system", content) }];
  return [{ kind: "other", says: [kind, content], make: () => Entry.hostRecord(whole(kind)) }];
}

/** What a model said: its texts and thoughts. Calls stand beside its content, too. */
function partsOf(content: BaseMessage["content"]): Part[] {
  const blocks: readonly unknown[] = typeof content === "string" ? [{ text: content }] : content;
  return blocks.flatMap((block) => {
    const { text, thinking, reasoning, signature } = (typeof block === "string" ? { text: block } : block) as Record<string, unknown>;
    const thought = thinking ?? reasoning;
    const parts: Part[] = [];
    if (typeof thought === "string") parts.push(Part.reasoning(whole(thought), typeof signature === "string" ? signature : undefined));
    if (typeof text === "string" && text !== "") parts.push(Part.text(whole(text)));
    return parts;
  });
}
