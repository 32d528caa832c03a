/**
 * LangGraph: a checkpointer over acpdb, and a store of long-term memory.
 *
 * ```ts
 * const graph = builder.compile({ checkpointer: new AcpdbSaver(store), store: new AcpdbStore(store) });
 * ```
 *
 * The log is the truth: each checkpoint, write and deletion is one event of the thread's session, in order, and what the saver answers
 * from is folded from them. A value is recorded as what changed. Threads of a process do not wait for each other, and several processes
 * share threads.
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

import { BusyError, Entry, InvalidError, NotFoundError, TooLargeError, type Session, type Store, type View } from "../index.js";
import { decided } from "./records.mjs";
import {
  FORM, Maker, Reader, Thread, piecesOf, place, savedIn, version, type CheckpointName, type Part, type Piece, type ThreadRecord,
} from "./threads.mjs";

export { AcpdbStore } from "./items.mjs";

const HOST = "langgraph";
/** Threads that are held in memory; others are read again. */
const HELD_MAX = 256;
/** So many bytes that were erased are worth packing the log. */
const FREED_BYTES_MIN = 256 << 10;
/** Channels of the framework's own, whose values are used up in the next step: none is made from earlier writes. */
const FLEETING = ["__start__", "branch:to:"];

/** What pruning leaves of a thread: the latest checkpoint of each namespace, or none. */
export type PruneStrategy = "keep_latest" | "delete";

function threadOf(config: RunnableConfig): string | undefined {
  const thread: unknown = config.configurable?.thread_id;
  return typeof thread === "string" && thread !== "" ? thread : undefined;
}

/** Checkpoints of threads in an acpdb store. Without `erase` what is deleted stays in the log, for an audit. */
export class AcpdbSaver extends MemorySaver {
  readonly #store: Store;
  readonly #threads = new Map<string, Thread>();
  readonly #erase: boolean;
  #freed = 0;

  constructor(store: Store, serde?: SerializerProtocol, options?: { erase?: boolean }) {
    super(serde);
    this.#store = store;
    this.#erase = options?.erase ?? true;
  }

  /** The session of a thread. */
  session(threadId: string): Session {
    return this.#store.session(threadId, { host: HOST });
  }

  // Questions: catch up with the log, then answer from what was folded.

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    return this.#caughtUp(config, () => super.getTuple(config));
  }

  /** Checkpoints, thread by thread, the newest first. */
  override async *list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple> {
    let left = options?.limit;
    const thread = threadOf(config);
    for (const id of thread === undefined ? await this.#names() : [thread]) {
      if (left !== undefined && left <= 0) return;
      const of = { ...config, configurable: { ...config.configurable, thread_id: id } };
      const read = await this.#caughtUp(of, async (known) => {
        if (known !== undefined) known.works += 1;
        return known;
      });
      try {
        for await (const found of super.list(of, { ...options, ...(left === undefined ? {} : { limit: left }) })) {
          if (left !== undefined) left -= 1;
          yield found;
        }
      } finally {
        if (read !== undefined) read.works -= 1;
      }
    }
  }

  override async getDeltaChannelHistory(
    options: Parameters<MemorySaver["getDeltaChannelHistory"]>[0],
  ): ReturnType<MemorySaver["getDeltaChannelHistory"]> {
    return this.#caughtUp(options.config, () => super.getDeltaChannelHistory(options));
  }

  // Commands: one event each, durable when their promises resolve.

  /** Records a checkpoint. One of a thread that was deleted meanwhile is not: the thread stays deleted. */
  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions = checkpoint.channel_versions,
  ): Promise<RunnableConfig> {
    const id = threadOf(config);
    return this.#caughtUp(config, async (thread) => {
      const { checkpoint_ns: ns = "", checkpoint_id: before } = (config.configurable ?? {}) as { checkpoint_ns?: string; checkpoint_id?: string };
      if (this.#isGone(thread, ns, before)) {
        thread?.deleted.add(place(ns, checkpoint.id, ""));
        return { configurable: { thread_id: id, checkpoint_ns: ns, checkpoint_id: checkpoint.id } };
      }
      const values = Object.entries(newVersions);
      const known = thread === undefined ? new Set<string>() : savedIn(thread, ns, values);
      // A channel whose version nothing has told of has no value yet.
      const told = Object.entries(checkpoint.channel_values).filter(
        ([channel]) => channel in newVersions || known.has(version(channel, checkpoint.channel_versions[channel])),
      );
      if (id === undefined || thread === undefined) return super.put(config, checkpoint, metadata);
      return this.#recorded(id, thread, async () => {
        const made = await super.put(config, { ...checkpoint, channel_values: Object.fromEntries(told) }, metadata);
        const [bytes, meta, parent] = this.storage[id]?.[ns]?.[checkpoint.id] ?? [];
        if (bytes === undefined || meta === undefined) return made;
        const record: Part<Uint8Array> = { op: "put", ns, id: checkpoint.id, checkpoint: bytes, metadata: meta, values };
        const stays = (): boolean => !this.#isGone(thread, ns, before);
        const whole = parent === undefined ? record : { ...record, parent };
        await this.#record(id, thread, async () => (stays() ? whole : undefined));
        if (!stays()) this.#leave(id, thread, ns, checkpoint.id);
        return made;
      });
    });
  }

  /** Records writes of a task, unless their checkpoint was deleted. */
  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath?: string): Promise<void> {
    const id = threadOf(config);
    return this.#caughtUp(config, async (thread) => {
      const { checkpoint_ns: ns = "", checkpoint_id: of } = (config.configurable ?? {}) as { checkpoint_ns?: string; checkpoint_id: string };
      if (id === undefined || thread === undefined) return super.putWrites(config, writes, taskId, taskPath);
      const stays = (): boolean => !this.#isGone(thread, ns, of) && !thread.dropped.has(place(ns, of, ""));
      if (!stays()) return;
      await this.#recorded(id, thread, async () => {
        await super.putWrites(config, writes, taskId, taskPath);
        const all = Object.entries(this.writes[place(id, ns, of)] ?? {}).filter(([, [task]]) => task === taskId);
        const each = all.map(([key, [task, channel, bytes, path]]) => [key, [task, channel, bytes, path ?? ""]] as const);
        const record: Part<Uint8Array> = { op: "writes", ns, id: of, writes: Object.fromEntries(each) as never };
        await this.#record(id, thread, async () => (stays() ? record : undefined));
        if (!stays()) delete this.writes[place(id, ns, of)];
      });
    });
  }

  /** Deletes a thread: what is put late on one of its checkpoints does not bring it back. */
  override async deleteThread(threadId: string): Promise<void> {
    await this.prune([threadId], { strategy: "delete" });
  }

  /** Deletes the checkpoints of these runs, with their writes, in all threads. */
  async deleteForRuns(runIds: readonly string[]): Promise<void> {
    if (runIds.length === 0) return;
    await this.#drop(await this.#names(), async (id) => {
      const gone: CheckpointName[] = [];
      for (const [ns, checkpoints] of Object.entries(this.storage[id] ?? {})) {
        for (const [of, [, metadata]] of Object.entries(checkpoints)) {
          const { run_id: run } = (await this.serde.loadsTyped("json", metadata)) as { run_id?: unknown };
          if (runIds.includes(String(run))) gone.push([ns, of]);
        }
      }
      return gone;
    });
  }

  /**
   * Keeps the latest checkpoint of each namespace, or none (`delete`). Checkpoints stay, too, if a channel that has no value of its own in
   * the latest may be made from their writes.
   */
  async prune(threadIds: readonly string[], options?: { strategy?: PruneStrategy }): Promise<void> {
    const strategy: unknown = options?.strategy ?? "keep_latest";
    if (strategy !== "keep_latest" && strategy !== "delete") {
      throw new InvalidError(`strategy is "keep_latest" or "delete", not ${JSON.stringify(strategy)}`);
    }
    if (strategy === "keep_latest") return this.#drop(threadIds, (id) => this.#old(id));
    for (const threadId of threadIds) {
      await this.#caughtUp({ configurable: { thread_id: threadId } }, async (thread) => {
        if (thread?.isRecorded !== true) return super.deleteThread(threadId);
        await this.#record(threadId, thread, async () => {
          const ids = [...this.#ids(threadId), ...[...thread.dropped].map(nameOf)];
          const isLeft = this.#ids(threadId).length > 0 || this.#writesOf(threadId).length > 0;
          return isLeft ? { op: "delete", ids } : undefined;
        });
      });
    }
    await this.#giveBack(threadIds);
  }

  /** Prunes the threads that nothing was put on for so many seconds; their ids. A host calls this from time to time. */
  async expire(seconds: number, options?: { strategy?: PruneStrategy }): Promise<string[]> {
    const end = (Date.now() - seconds * 1000) * 1000;
    const old: string[] = [];
    for (const { host, id, head } of await this.#store.names()) {
      const last = host === HOST ? await this.#store.event(head) : null;
      if (last === null || last.recorded_at >= end) continue;
      const isLeft = await this.#caughtUp({ configurable: { thread_id: id } }, async () => this.#ids(id).length > 0);
      if (isLeft) old.push(id);
    }
    await this.prune(old, { strategy: options?.strategy ?? "delete" });
    return old;
  }

  /** Copies all checkpoints of a thread, with their writes, as one event. */
  async copyThread(sourceThreadId: string, targetThreadId: string): Promise<void> {
    const source = { configurable: { thread_id: sourceThreadId } };
    const records = await this.#caughtUp(source, async (thread) => (thread === undefined ? [] : this.#whole(sourceThreadId, thread, new Set())));
    if (records.length === 0) return;
    await this.#caughtUp({ configurable: { thread_id: targetThreadId } }, async (thread) => {
      if (thread !== undefined) await this.#record(targetThreadId, thread, async () => ({ op: "thread", records }));
    });
  }

  // What prunings need.

  /** Drops checkpoints of threads. What is left is recorded anew, so that the records before can be erased. */
  async #drop(threadIds: readonly string[], gone: (id: string) => Promise<CheckpointName[]>): Promise<void> {
    for (const id of threadIds) {
      await this.#caughtUp({ configurable: { thread_id: id } }, async (thread) => {
        if (thread === undefined) return;
        const decide = async (isWhole: boolean): Promise<ThreadRecord<Uint8Array>[]> => {
          const ids = await gone(id);
          if (ids.length === 0) return [];
          const drop = { op: "drop" as const, ids };
          // The next `keep` spends this one: the names of what went are told beside it.
          const dropped = new Set(ids.map(([ns, of]) => place(ns, of, "")));
          return isWhole ? [drop, { op: "keep", records: await this.#whole(id, thread, dropped) }] : [drop];
        };
        try {
          await this.#recordAll(id, thread, () => decide(this.#erase));
        } catch (error) {
          if (!(error instanceof TooLargeError)) throw error;
          // What is left is more than one event holds: the records stay.
          await this.#recordAll(id, thread, () => decide(false));
        }
      });
    }
    await this.#giveBack(threadIds);
  }

  /** The checkpoints before the latest of each namespace, and before those that its channels may be made from. */
  async #old(id: string): Promise<CheckpointName[]> {
    const old: CheckpointName[] = [];
    for (const [ns, checkpoints] of Object.entries(this.storage[id] ?? {})) {
      const needed = new Set<string>();
      let lacking: Set<string> | undefined;
      let at: string | undefined = Object.keys(checkpoints).sort().at(-1);
      while (at !== undefined && lacking?.size !== 0) {
        const saved: [Uint8Array, Uint8Array, string | undefined] | undefined = checkpoints[at];
        if (saved === undefined) break;
        const { channel_values: values, channel_versions: versions } = await this.#loaded(saved[0]);
        lacking ??= new Set(Object.keys(versions).filter((channel) => !FLEETING.some((name) => channel.startsWith(name))));
        for (const channel of lacking) if (Object.hasOwn(values, channel)) lacking.delete(channel);
        needed.add(at);
        at = saved[2];
      }
      for (const of of Object.keys(checkpoints)) if (!needed.has(of)) old.push([ns, of]);
    }
    return old;
  }

  /** What stays of a thread, in records that fold to it; parents first. */
  async #whole(id: string, thread: Thread, gone: ReadonlySet<string>): Promise<Part<Uint8Array>[]> {
    const records: Part<Uint8Array>[] = [];
    for (const [ns, checkpoints] of Object.entries(this.storage[id] ?? {})) {
      const known = thread.saved.get(ns) ?? new Set<string>();
      for (const of of Object.keys(checkpoints).sort()) {
        const saved = checkpoints[of];
        if (saved === undefined || gone.has(place(ns, of, ""))) continue;
        const [checkpoint, metadata, parent] = saved;
        const versions = Object.entries((await this.#loaded(checkpoint)).channel_versions);
        const values = versions.filter(([channel, number]) => known.has(version(channel, number)));
        records.push({ op: "put", ns, id: of, checkpoint, metadata, values, ...(parent === undefined ? {} : { parent }) });
        const writes = Object.entries(this.writes[place(id, ns, of)] ?? {});
        const each = writes.map(([key, [task, channel, bytes, path]]) => [key, [task, channel, bytes, path ?? ""]] as const);
        if (each.length > 0) records.push({ op: "writes", ns, id: of, writes: Object.fromEntries(each) as never });
      }
    }
    return records;
  }

  async #loaded(checkpoint: Uint8Array): Promise<Checkpoint> {
    return (await this.serde.loadsTyped("json", checkpoint)) as Checkpoint;
  }

  #ids(id: string): CheckpointName[] {
    const spaces = Object.entries(this.storage[id] ?? {});
    return spaces.flatMap(([ns, checkpoints]) => Object.keys(checkpoints).map((of): CheckpointName => [ns, of]));
  }

  #writesOf(id: string): string[] {
    const begins = `${JSON.stringify([id]).slice(0, -1)},`;
    return Object.keys(this.writes).filter((key) => key.startsWith(begins));
  }

  /** Erases records that nothing is made from any more, of threads as they were read last. */
  async #giveBack(threadIds: readonly string[]): Promise<void> {
    const threads = threadIds.flatMap((id) => this.#threads.get(id) ?? []);
    const seqs = threads.flatMap((thread) => [...thread.spent]);
    if (!this.#erase || seqs.length === 0) return;
    try {
      const { hit } = await this.#store.eraseRecords(seqs, { by: HOST, reason: "the thread was pruned or deleted" });
      for (const { bytes } of hit) this.#freed += bytes;
    } catch (error) {
      // Another process erases: the next call has these records, too. They are deleted either way.
      if (error instanceof BusyError) return;
      throw error;
    }
    for (const thread of threads) for (const seq of seqs) thread.spent.delete(seq);
    if (this.#freed < FREED_BYTES_MIN) return;
    this.#freed = 0;
    await this.#store.seal();
  }

  // The fold.

  /** Does a work when what the log says of the thread is folded; one work of a thread after the other. */
  async #caughtUp<T>(config: RunnableConfig, work: (thread: Thread | undefined) => Promise<T>): Promise<T> {
    const id = threadOf(config);
    if (id === undefined) return work(undefined);
    const thread = this.#threads.get(id) ?? new Thread();
    this.#threads.delete(id);
    this.#threads.set(id, thread);
    return this.#held(thread, () =>
      thread.turns.take(async () => {
        await this.#catchUp(id, thread);
        return work(thread);
      }),
    );
  }

  /** Does a work while a thread stays in memory; then those go that were used longest ago, and are read again when they are asked for. */
  async #held<T>(thread: Thread, work: () => Promise<T>): Promise<T> {
    thread.works += 1;
    try {
      return await work();
    } finally {
      thread.works -= 1;
      for (const [id, other] of this.#threads) {
        if (this.#threads.size <= HELD_MAX) break;
        // What is to be erased is known of threads in memory alone.
        if (other.works > 0 || (this.#erase && other.spent.size > 0)) continue;
        this.#threads.delete(id);
        this.#forget(id, other);
      }
    }
  }

  /** Whether a checkpoint was deleted with its thread. */
  #isGone(thread: Thread | undefined, ns: string, id: string | undefined): boolean {
    return id !== undefined && thread?.deleted.has(place(ns, id, "")) === true;
  }

  /** Forgets a checkpoint that came too late. */
  #leave(id: string, thread: Thread, ns: string, of: string): void {
    delete this.storage[id]?.[ns]?.[of];
    thread.deleted.add(place(ns, of, ""));
  }

  async #names(): Promise<string[]> {
    return (await this.#store.names()).filter((name) => name.host === HOST).map((name) => name.id);
  }

  async #catchUp(id: string, thread: Thread): Promise<void> {
    for (;;) {
      const view = await this.#view(id);
      if (view === undefined) return;
      try {
        for (const { seq, bytes } of await view.records({ after: thread.last })) await this.#take(id, thread, seq, bytes);
        thread.last = Math.max(thread.last, view.seq);
        return;
      } catch (error) {
        // Another process may have erased meanwhile what it has pruned.
        if (!(error instanceof NotFoundError) || (await this.#view(id))?.seq === view.seq) throw error;
        this.#forget(id, thread);
      }
    }
  }

  async #view(id: string): Promise<View | undefined> {
    try {
      return await this.session(id).view();
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
  }

  #forget(id: string, thread: Thread): void {
    delete this.storage[id];
    for (const key of this.#writesOf(id)) delete this.writes[key];
    thread.forget();
  }

  async #take(id: string, thread: Thread, seq: number, bytes: Buffer): Promise<void> {
    const end = bytes.indexOf("\n");
    const header = bytes.subarray(0, end).toString();
    if (end <= 0 || !header.startsWith(FORM)) return;
    const record = JSON.parse(header) as ThreadRecord<Piece>;
    await this.#fold(id, thread, record, new Reader(thread, seq, bytes.subarray(end + 1)));
    thread.fold(seq, record.op);
  }

  async #fold(id: string, thread: Thread, record: ThreadRecord<Piece>, reader: Reader): Promise<void> {
    switch (record.op) {
      case "put": {
        const spaces = (this.storage[id] ??= Object.create(null));
        const saved = (spaces[record.ns] ??= Object.create(null));
        savedIn(thread, record.ns, record.values);
        const checkpoint = reader.take(record.checkpoint, `checkpoint ${record.ns}`);
        saved[record.id] = [checkpoint, reader.take(record.metadata, `metadata ${record.ns}`), record.parent];
        // The same checkpoint again, as a run of its own.
        thread.deleted.delete(place(record.ns, record.id, ""));
        thread.dropped.delete(place(record.ns, record.id, ""));
        break;
      }
      case "writes": {
        const known = (this.writes[place(id, record.ns, record.id)] ??= Object.create(null));
        for (const [key, [task, channel, piece, path]] of Object.entries(record.writes)) {
          known[key] = [task, channel, reader.take(piece, undefined), path];
        }
        break;
      }
      case "thread":
        for (const part of record.records) await this.#fold(id, thread, part, reader);
        break;
      case "delete":
        // The records that told of them may have been erased since.
        thread.delete([...this.#ids(id), ...(record.ids ?? [])].map(([ns, of]) => place(ns, of, "")));
        await super.deleteThread(id);
        break;
      case "drop":
        for (const [ns, of] of record.ids) {
          delete this.storage[id]?.[ns]?.[of];
          delete this.writes[place(id, ns, of)];
          thread.dropped.add(place(ns, of, ""));
        }
        break;
      case "keep":
        thread.spend();
        await super.deleteThread(id);
        for (const part of record.records) await this.#fold(id, thread, part, reader);
        break;
      default: // Written by a newer version: kept in the log.
    }
  }

  /** Does a work that changes what is held before it is recorded. If it could not be recorded, what is held is read again. */
  async #recorded<T>(id: string, thread: Thread, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.#forget(id, thread);
      throw error;
    }
  }

  async #record(id: string, thread: Thread, decide: () => Promise<ThreadRecord<Uint8Array> | undefined>): Promise<void> {
    await this.#recordAll(id, thread, async () => [await decide()].filter((record) => record !== undefined));
  }

  /** Records what is decided of a thread as it is, and folds it as the log has it. If another writer came between, it is decided again. */
  async #recordAll(id: string, thread: Thread, decide: () => Promise<ThreadRecord<Uint8Array>[]>): Promise<void> {
    await decided(this.session(id), async () => {
      await this.#catchUp(id, thread);
      const records = await decide();
      const entries = records.map((record) => {
        // What is kept is made from nothing before it.
        const maker = new Maker(record.op === "keep" ? new Thread() : thread);
        const header = Buffer.from(`${FORM}${JSON.stringify(piecesOf(record, maker)).slice(1)}\n`);
        return Entry.hostRecord(`checkpoint_${record.op}`, Buffer.concat([header, ...maker.fresh]));
      });
      return { head: thread.last, entries };
    });
    await this.#catchUp(id, thread);
  }
}

/** The name that was made by `place`. */
function nameOf(made: string): CheckpointName {
  const [ns = "", id = ""] = JSON.parse(made) as string[];
  return [ns, id];
}
