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

import { AcpdbError, Entry, InvalidError, type Session, type Store, type View } from "../index.js";
import { History as Records, Turns, decided, dumped, ended, kept, said, started, whole, type Known, type Use } from "./records.mjs";

const HOST = "openai-agents";

/** A record of our own: an operation that was applied, and how many items it took off the end. */
interface Applied {
  acpdb_operation: string;
  digest: string;
  dropped: number;
  /** Ids of calls that were taken back before they ended. */
  taken: string[];
}

interface History {
  items: Known<AgentInputItem>[];
  applied: Map<string, string>;
  view: View | undefined;
}

/** The history of one conversation, in an acpdb store. */
export class AcpdbSession implements SessionHistoryTransactionAwareSession {
  readonly sessionId: string;
  /** The session, to look into with all that acpdb has. */
  readonly session: Session;
  readonly pruned: boolean;
  readonly #turns = new Turns();
  readonly #records: Records<AgentInputItem | Applied>;

  constructor(sessionId: string, store: Store, options?: { pruned?: boolean; project?: string }) {
    this.sessionId = sessionId;
    const project = options?.project;
    this.session = store.session(sessionId, { host: HOST, ...(project === undefined ? {} : { project }) });
    this.pruned = options?.pruned ?? false;
    this.#records = new Records(this.session, uses);
  }

  async getSessionId(): Promise<string> {
    return this.sessionId;
  }

  /** The newest `limit` items, oldest first: exactly so many, or all there are. */
  async getItems(limit?: number): Promise<AgentInputItem[]> {
    let { items, view } = await this.#history();
    if (limit !== undefined) items = limit > 0 ? items.slice(-limit) : [];
    const shown = this.pruned ? await view?.replaced() : undefined;
    return items.map(({ seq, value }) => {
      const text = shown?.get(seq);
      return text === undefined ? value : ({ ...value, output: { type: "text", text } } as AgentInputItem);
    });
  }

  /** Appends items as one commit. */
  async addItems(items: AgentInputItem[]): Promise<void> {
    if (items.length > 0) await this.session.append(...(await this.#records.entries(items, entries)));
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
    await this.#turns.take(() => this.#records.clear());
  }

  /** Appends items, or puts others in the place of the last ones: once for each operation, as one commit. */
  async applyHistoryTransaction({ operationId, transaction }: SessionHistoryTransactionArgs): Promise<void> {
    if (operationId === "") throw new InvalidError("operationId is empty; give an id that stays the same when it is tried again");
    const digest = createHash("sha256").update(JSON.stringify(transaction)).digest("hex");
    let dropped: Known<AgentInputItem>[] = [];
    const decide = async (): Promise<{ head: number; entries: readonly Entry[] }> => {
      const { items, applied, view } = await this.#history();
      const head = view?.seq ?? 0;
      dropped = [];
      const known = applied.get(operationId);
      if (known === digest) return { head, entries: [] };
      if (known !== undefined) {
        throw new InvalidError(`operation ${operationId} was applied with another transaction; give a new id`);
      }
      const isSuffix = transaction.type === "replace_suffix";
      const expected = isSuffix ? transaction.expectedSuffix : [];
      dropped = expected.length === 0 ? [] : items.slice(-expected.length);
      const plain = JSON.parse(JSON.stringify(expected)) as unknown;
      if (!isDeepStrictEqual(dropped.map(({ value }) => value), plain)) {
        throw new InvalidError("the history does not end with the expected items; read it again");
      }
      const taken: string[] = [];
      for (const [kind, id] of dropped.flatMap(({ value }) => uses(value))) {
        if (kind === "call") taken.push(id);
        else if (taken.includes(id)) taken.splice(taken.indexOf(id), 1);
      }
      const told: Applied = { acpdb_operation: operationId, digest, dropped: dropped.length, taken };
      const added = isSuffix ? transaction.replacement : transaction.items;
      return { head, entries: await this.#records.entries([told, ...added], entries) };
    };
    await this.#turns.take(async () => {
      if ((await decided(this.session, decide)) === undefined) return;
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
    const { known: records, view } = await this.#records.read();
    const history: History = { items: [], applied: new Map(), view };
    for (const known of records) {
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

/** What an item says of calls. */
function uses(item: AgentInputItem | Applied): readonly Use[] {
  if ("acpdb_operation" in item) return item.taken.map((id) => ["end", id]);
  const id = String((item as { callId?: unknown }).callId ?? "");
  if (item.type === "function_call") return [["call", id]];
  if (item.type === "function_call_result") return [["end", id]];
  return "role" in item && item.role === "user" ? [["turn", ""]] : [];
}

/** The facts that an item is, the first with the item as its record. */
function entries(item: AgentInputItem | Applied, names: readonly string[]): Entry[] {
  if ("acpdb_operation" in item) {
    // A call that is taken back has an end, too; only so it can be hidden.
    const aborted = { error: "taken back", outcome: "aborted" } as const;
    return [kept(item, "operation"), ...names.map((name) => Entry.toolFinished(name, undefined, aborted))];
  }
  const [name = ""] = names;
  const it = item as unknown as Record<string, unknown>;
  const role = it["role"];
  let made: Entry;
  if ((it["type"] === undefined || it["type"] === "message") && typeof role === "string") {
    made = said(role === "user" || role === "assistant" ? role : "system", it["content"]);
  } else if (it["type"] === "function_call") {
    made = started(name, it["name"], it["arguments"]);
  } else if (it["type"] === "function_call_result") {
    const output = it["output"] as { text?: unknown } | unknown;
    made = ended(name, output !== null && typeof output === "object" && "text" in output ? output.text : output);
  } else {
    made = Entry.hostRecord(whole(String(it["type"])));
  }
  return [made.ofRecord(dumped(item))];
}
