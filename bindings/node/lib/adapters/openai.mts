/**
 * OpenAI Agents SDK: a `Session` over acpdb.
 *
 * ```ts
 * const result = await run(agent, "hello", { session: new AcpdbSession("run-1", store) });
 * ```
 *
 * Items become messages, calls and results; they come back as they were. With `pruned`, outputs that were superseded come back as
 * what acpdb shows in their place; calls and their outputs stay together.
 */

import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

import type {
  AgentInputItem,
  SessionHistoryTransactionArgs,
  SessionHistoryTransactionAwareSession,
} from "@openai/agents-core";

import { AcpdbError, Entry, InvalidError, type Session, type Store } from "../index.js";
import { Turns, clear, kept, load, params, prunedOutputs, textOf, type Known } from "./records.mjs";

const HOST = "openai-agents";

/** A record of our own: an operation that was applied, and how many items it took off the end. */
interface Applied {
  acpdb_operation: string;
  digest: string;
  dropped: number;
}

interface History {
  items: Known<AgentInputItem>[];
  applied: Map<string, string>;
}

/** The history of one conversation, in an acpdb store. */
export class AcpdbSession implements SessionHistoryTransactionAwareSession {
  readonly sessionId: string;
  /** The session, to look into with all that acpdb has. */
  readonly session: Session;
  readonly pruned: boolean;
  readonly #turns = new Turns();

  constructor(sessionId: string, store: Store, options?: { pruned?: boolean; project?: string }) {
    this.sessionId = sessionId;
    const project = options?.project;
    this.session = store.session(sessionId, { host: HOST, ...(project === undefined ? {} : { project }) });
    this.pruned = options?.pruned ?? false;
  }

  async getSessionId(): Promise<string> {
    return this.sessionId;
  }

  /** The newest `limit` items, oldest first; outputs whose call is not among them are left out. */
  async getItems(limit?: number): Promise<AgentInputItem[]> {
    let items = (await this.#history()).items.map(({ value }) => value);
    if (limit !== undefined) {
      items = limit > 0 ? items.slice(-limit) : [];
      const calls = new Set(items.filter((item) => !isOutput(item)).map(callOf));
      items = items.filter((item) => !isOutput(item) || calls.has(callOf(item)));
    }
    if (!this.pruned || items.length === 0) return items;
    const shown = await prunedOutputs(this.session);
    return items.map((item) => {
      const text = isOutput(item) ? shown.get(callOf(item) ?? "") : undefined;
      return text === undefined ? item : ({ ...item, output: { type: "text", text } } as AgentInputItem);
    });
  }

  /** Appends items as one commit. */
  async addItems(items: AgentInputItem[]): Promise<void> {
    if (items.length > 0) await this.session.append(...items.map(entry));
  }

  /** Takes the last item out of the history; it stays in the log. */
  async popItem(): Promise<AgentInputItem | undefined> {
    return this.#turns.take(async () => {
      const last = (await this.#history()).items.at(-1);
      if (last !== undefined) await this.session.rewind(last.seq - 1);
      return last?.value;
    });
  }

  /** Takes all items out of the history; they stay in the log. */
  async clearSession(): Promise<void> {
    await this.#turns.take(() => clear(this.session));
  }

  /** Appends items, or puts others in the place of the last ones: once for each operation, as one commit. */
  async applyHistoryTransaction({ operationId, transaction }: SessionHistoryTransactionArgs): Promise<void> {
    if (operationId === "") throw new InvalidError("operationId is empty; give an id that stays the same when it is tried again");
    const digest = createHash("sha256").update(JSON.stringify(transaction)).digest("hex");
    await this.#turns.take(async () => {
      const { items, applied } = await this.#history();
      const known = applied.get(operationId);
      if (known === digest) return;
      if (known !== undefined) {
        throw new InvalidError(`operation ${operationId} was applied with another transaction; give a new id`);
      }
      const isSuffix = transaction.type === "replace_suffix";
      const expected = isSuffix ? transaction.expectedSuffix : [];
      const dropped = expected.length === 0 ? [] : items.slice(-expected.length);
      const plain = JSON.parse(JSON.stringify(expected)) as unknown;
      if (!isDeepStrictEqual(dropped.map(({ value }) => value), plain)) {
        throw new InvalidError("the history does not end with the expected items; read it again");
      }
      const told: Applied = { acpdb_operation: operationId, digest, dropped: dropped.length };
      const added = isSuffix ? transaction.replacement : transaction.items;
      const ended = new Set(items.filter(({ value }) => isOutput(value)).map(({ value }) => callOf(value)));
      const open = dropped.map(({ value }) => value).filter((item) => item.type === "function_call" && !ended.has(callOf(item)));
      // A call that is taken back has an end, too; only so it can be hidden.
      const ends = open.map((item) => Entry.toolFinished(callOf(item) ?? "", undefined, { error: "taken back", outcome: "aborted" }));
      await this.session.append(kept(told, "operation"), ...ends, ...added.map(entry));
      // The history is right already; the context follows.
      const gone = dropped.map(({ seq }) => `#${seq}`);
      for (const item of gone) {
        await this.session.discard(item).catch((error: unknown) => {
          // A rule may have hidden it before.
          if (!(error instanceof AcpdbError) || error.code === "closed") throw error;
        });
      }
    });
  }

  async #history(): Promise<History> {
    const history: History = { items: [], applied: new Map() };
    for (const known of await load<AgentInputItem | Applied>(this.session)) {
      if ("acpdb_operation" in known.value) {
        const { acpdb_operation: operation, digest, dropped } = known.value;
        history.applied.set(operation, digest);
        history.items.splice(history.items.length - dropped, dropped);
      } else {
        history.items.push(known as Known<AgentInputItem>);
      }
    }
    return history;
  }
}

function isOutput(item: AgentInputItem): boolean {
  return item.type?.endsWith("_result") === true && callOf(item) !== undefined;
}

function callOf(item: AgentInputItem): string | undefined {
  return (item as { callId?: string }).callId;
}

/** The fact that an item is, with the item as its record. */
function entry(item: AgentInputItem): Entry {
  const it = item as Record<string, unknown>;
  const role = it["role"];
  let made: Entry;
  if ((it["type"] === undefined || it["type"] === "message") && typeof role === "string") {
    const known = role === "user" || role === "assistant" ? role : "system";
    made = Entry.message(known, textOf(it["content"]));
  } else if (it["type"] === "function_call") {
    made = Entry.toolStarted(it["callId"] as string, it["name"] as string, params(it["arguments"]));
  } else if (it["type"] === "function_call_result") {
    const output = it["output"] as { text?: unknown } | unknown;
    const text = output !== null && typeof output === "object" && "text" in output ? output.text : output;
    made = Entry.toolFinished(it["callId"] as string, textOf(text));
  } else {
    made = Entry.hostRecord(String(it["type"]));
  }
  return made.ofRecord(JSON.stringify(item));
}
