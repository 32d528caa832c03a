/**
 * LangGraph: a checkpointer over acpdb.
 *
 * ```ts
 * const graph = builder.compile({ checkpointer: new AcpdbSaver(store) });
 * ```
 *
 * The log is the truth: each checkpoint, write and deletion is one event of the thread's session, in order, and what the saver
 * answers from is folded from them. So several processes share threads, and every state of a thread can be made again.
 */

import type { RunnableConfig } from "@langchain/core/runnables";
import {
  MemorySaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  type PendingWrite,
  type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";

import type { Session, Store } from "../index.js";
import { Turns, kept, load } from "./records.mjs";

const HOST = "langgraph";

type Record_ =
  | { op: "put"; ns: string; id: string; parent?: string; checkpoint: string; metadata: string; values: [string, string | number][] }
  | { op: "writes"; ns: string; id: string; writes: Record<string, [string, string, string, string?]> }
  | { op: "delete" };

const packed = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
const unpacked = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "base64"));

/** The key that the memory saver has writes of a checkpoint under. */
const place = (thread: string, ns: string, id: string): string => JSON.stringify([thread, ns, id]);

const version = (channel: string, number: unknown): string => JSON.stringify([channel, number]);

function threadOf(config: RunnableConfig): string | undefined {
  const thread: unknown = config.configurable?.thread_id;
  return typeof thread === "string" && thread !== "" ? thread : undefined;
}

/** Checkpoints of threads in an acpdb store. */
export class AcpdbSaver extends MemorySaver {
  readonly #store: Store;
  readonly #turns = new Turns();
  readonly #folded = new Map<string, number>();
  /** Versions of channels whose values were saved, by thread and namespace. */
  readonly #saved = new Map<string, Set<string>>();

  constructor(store: Store, serde?: SerializerProtocol) {
    super(serde);
    this.#store = store;
  }

  /** The session of a thread. */
  session(threadId: string): Session {
    return this.#store.session(threadId, { host: HOST });
  }

  // Questions: catch up with the log, then answer from what was folded.

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    return this.#turns.take(async () => {
      await this.#catchUp(threadOf(config));
      return super.getTuple(config);
    });
  }

  override async *list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple> {
    const found = await this.#turns.take(async () => {
      const thread = threadOf(config);
      for (const one of thread === undefined ? await this.#threads() : [thread]) await this.#catchUp(one);
      const all: CheckpointTuple[] = [];
      for await (const tuple of super.list(config, options)) all.push(tuple);
      return all;
    });
    yield* found;
  }

  override async getDeltaChannelHistory(
    options: Parameters<MemorySaver["getDeltaChannelHistory"]>[0],
  ): ReturnType<MemorySaver["getDeltaChannelHistory"]> {
    return this.#turns.take(async () => {
      await this.#catchUp(threadOf(options.config));
      return super.getDeltaChannelHistory(options);
    });
  }

  // Commands: one event each, durable when their promises resolve.

  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions = checkpoint.channel_versions,
  ): Promise<RunnableConfig> {
    return this.#turns.take(async () => {
      const thread = threadOf(config);
      await this.#catchUp(thread);
      const values = Object.entries(newVersions);
      const known = this.#known(thread, config.configurable?.checkpoint_ns ?? "", values);
      // A channel whose version nothing has told of has no value yet.
      const told = Object.entries(checkpoint.channel_values).filter(
        ([channel]) => channel in newVersions || known.has(version(channel, checkpoint.channel_versions[channel])),
      );
      const made = await super.put(config, { ...checkpoint, channel_values: Object.fromEntries(told) }, metadata);
      const ns: string = made.configurable?.checkpoint_ns ?? "";
      const saved = thread === undefined ? undefined : this.storage[thread]?.[ns]?.[checkpoint.id];
      if (thread === undefined || saved === undefined) return made;
      const [bytes, meta, parent] = saved;
      const record = { op: "put", ns, id: checkpoint.id, checkpoint: packed(bytes), metadata: packed(meta), values };
      await this.#record(thread, { ...record, ...(parent === undefined ? {} : { parent }) } as Record_);
      return made;
    });
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath?: string): Promise<void> {
    return this.#turns.take(async () => {
      const thread = threadOf(config);
      await this.#catchUp(thread);
      await super.putWrites(config, writes, taskId, taskPath);
      const { checkpoint_ns: ns = "", checkpoint_id: id } = config.configurable ?? {};
      if (thread === undefined) return;
      const all = Object.entries(this.writes[place(thread, ns, id)] ?? {}).filter(([, [task]]) => task === taskId);
      const each = all.map(([key, [task, channel, bytes, path]]) => [key, [task, channel, packed(bytes), path]]);
      await this.#record(thread, { op: "writes", ns, id, writes: Object.fromEntries(each) as never });
    });
  }

  override async deleteThread(threadId: string): Promise<void> {
    return this.#turns.take(async () => {
      await this.#catchUp(threadId);
      await super.deleteThread(threadId);
      if (this.#folded.has(threadId)) await this.#record(threadId, { op: "delete" });
    });
  }

  // The fold.

  /** Versions of channels that are saved in a thread and namespace, after `values` were. */
  #known(thread: string | undefined, ns: string, values: readonly [string, string | number][]): Set<string> {
    const space = JSON.stringify([thread, ns]);
    const known = this.#saved.get(space) ?? new Set<string>();
    for (const [channel, number] of values) known.add(version(channel, number));
    this.#saved.set(space, known);
    return known;
  }

  async #threads(): Promise<string[]> {
    return (await this.#store.names()).filter((name) => name.host === HOST).map((name) => name.id);
  }

  async #record(thread: string, record: Record_): Promise<void> {
    // What is folded already is folded again by the next question: it says the same.
    await this.session(thread).append(kept(record, `checkpoint_${record.op}`));
  }

  async #catchUp(thread: string | undefined): Promise<void> {
    if (thread === undefined) return;
    for (const { seq, value } of await load<Record_>(this.session(thread), this.#folded.get(thread) ?? 0)) {
      await this.#fold(thread, value);
      this.#folded.set(thread, seq);
    }
  }

  async #fold(thread: string, record: Record_): Promise<void> {
    switch (record.op) {
      case "put": {
        const spaces = (this.storage[thread] ??= Object.create(null));
        const saved = (spaces[record.ns] ??= Object.create(null));
        this.#known(thread, record.ns, record.values);
        saved[record.id] = [unpacked(record.checkpoint), unpacked(record.metadata), record.parent];
        break;
      }
      case "writes": {
        const known = (this.writes[place(thread, record.ns, record.id)] ??= Object.create(null));
        for (const [key, [task, channel, text, path]] of Object.entries(record.writes)) {
          known[key] = [task, channel, unpacked(text), path ?? ""];
        }
        break;
      }
      case "delete":
        await super.deleteThread(thread);
        break;
      default: // Written by a newer version: kept in the log.
    }
  }
}
