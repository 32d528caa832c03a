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

import { BusyError, Entry, NotFoundError, type Session, type Store, type View } from "../index.js";
import { applied, changes, type Step } from "./changes.mjs";
import { Turns, decided } from "./records.mjs";

export { AcpdbStore } from "./items.mjs";

const HOST = "langgraph";
/** How a record begins; those of another form are kept in the log. */
const FORM = '{"form":2,';
/** Values that a new one may copy from, besides the one that it follows. */
const RECENT_COUNT = 6;
const RECENT_BYTES_MAX = 64 << 10;
/** So many bytes that were erased are worth packing the log. */
const FREED_BYTES_MIN = 256 << 10;

/** The record that has a value, 0 for itself; and the value's number in it. */
type Name = [seq: number, number: number];
/** A value: copies from values of this and of earlier records, and new bytes. */
type Piece = [of: Name[], steps: Step[]];

type Record_<V> =
  | { op: "put"; ns: string; id: string; parent?: string; checkpoint: V; metadata: V; values: [string, string | number][] }
  | { op: "writes"; ns: string; id: string; writes: Record<string, [task: string, channel: string, value: V, path: string]> }
  | { op: "delete"; ids?: [ns: string, id: string][] };

/** The key that the memory saver has writes of a checkpoint under. */
const place = (thread: string, ns: string, id: string): string => JSON.stringify([thread, ns, id]);

const version = (channel: string, number: unknown): string => JSON.stringify([channel, number]);

function threadOf(config: RunnableConfig): string | undefined {
  const thread: unknown = config.configurable?.thread_id;
  return typeof thread === "string" && thread !== "" ? thread : undefined;
}

/** What is known of a thread besides its checkpoints. */
class Thread {
  readonly turns = new Turns();
  /** Versions of channels whose values were saved, by namespace. */
  readonly saved = new Map<string, Set<string>>();
  /** Checkpoints that were deleted with the thread. */
  readonly deleted = new Set<string>();
  readonly values = new Map<string, Uint8Array>();
  readonly latest = new Map<string, Name>();
  recent: Name[] = [];
  last = 0;
  isRecorded = false;
  /** Records that nothing is made from any more, and those that values may be made from. */
  readonly spent = new Set<number>();
  readonly used = new Set<number>();

  forget(): void {
    for (const seq of this.used) this.spent.add(seq);
    this.used.clear();
    for (const map of [this.saved, this.values, this.latest]) map.clear();
    this.recent = [];
  }

  value(name: Name): Uint8Array {
    const value = this.values.get(String(name));
    if (value === undefined) throw new NotFoundError(`a value is made from #${name[0]}, which was erased or cannot be read`);
    return value;
  }

  keep(name: Name, value: Uint8Array, line: string | undefined): void {
    this.values.set(String(name), value);
    if (line !== undefined) this.latest.set(line, name);
    this.recent = [name, ...this.recent].slice(0, RECENT_COUNT);
  }
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
      await this.#caughtUp(of, async () => undefined);
      for await (const found of super.list(of, { ...options, ...(left === undefined ? {} : { limit: left }) })) {
        if (left !== undefined) left -= 1;
        yield found;
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
      const made = await super.put(config, { ...checkpoint, channel_values: Object.fromEntries(told) }, metadata);
      const saved = id === undefined ? undefined : this.storage[id]?.[ns]?.[checkpoint.id];
      if (id === undefined || thread === undefined || saved === undefined) return made;
      const [bytes, meta, parent] = saved;
      const record = { op: "put" as const, ns, id: checkpoint.id, checkpoint: bytes, metadata: meta, values };
      const stays = (): boolean => !this.#isGone(thread, ns, before);
      await this.#record(id, thread, parent === undefined ? record : { ...record, parent }, stays);
      if (!stays()) this.#leave(id, thread, ns, checkpoint.id);
      return made;
    });
  }

  /** Records writes of a task, unless their checkpoint was deleted. */
  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath?: string): Promise<void> {
    const id = threadOf(config);
    return this.#caughtUp(config, async (thread) => {
      const { checkpoint_ns: ns = "", checkpoint_id: of } = (config.configurable ?? {}) as { checkpoint_ns?: string; checkpoint_id: string };
      if (this.#isGone(thread, ns, of)) return;
      await super.putWrites(config, writes, taskId, taskPath);
      if (id === undefined || thread === undefined) return;
      const all = Object.entries(this.writes[place(id, ns, of)] ?? {}).filter(([, [task]]) => task === taskId);
      const each = all.map(([key, [task, channel, bytes, path]]) => [key, [task, channel, bytes, path ?? ""]] as const);
      const stays = (): boolean => !this.#isGone(thread, ns, of);
      await this.#record(id, thread, { op: "writes", ns, id: of, writes: Object.fromEntries(each) as never }, stays);
    });
  }

  /** Deletes a thread: what is put late on one of its checkpoints does not bring it back. */
  override async deleteThread(threadId: string): Promise<void> {
    return this.#caughtUp({ configurable: { thread_id: threadId } }, async (thread) => {
      if (thread?.isRecorded !== true) return super.deleteThread(threadId);
      const spaces = Object.entries(this.storage[threadId] ?? {});
      const ids = spaces.flatMap(([ns, checkpoints]) => Object.keys(checkpoints).map((id): [string, string] => [ns, id]));
      if (ids.length > 0) await this.#record(threadId, thread, { op: "delete", ids });
      await this.#giveBack(thread);
    });
  }

  /** Erases records that nothing is made from any more. */
  async #giveBack(thread: Thread): Promise<void> {
    const seqs = [...thread.spent];
    if (!this.#erase || seqs.length === 0) return;
    try {
      const { hit } = await this.#store.eraseRecords(seqs, { by: HOST, reason: "the thread was deleted" });
      for (const { bytes } of hit) this.#freed += bytes;
    } catch (error) {
      // Another process erases: the next deletion has these records, too. They are deleted either way.
      if (error instanceof BusyError) return;
      throw error;
    }
    for (const seq of seqs) thread.spent.delete(seq);
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
    this.#threads.set(id, thread);
    return thread.turns.take(async () => {
      await this.#catchUp(id, thread);
      return work(thread);
    });
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
    let view: View;
    try {
      view = await this.session(id).view();
    } catch (error) {
      if (error instanceof NotFoundError) return;
      throw error;
    }
    for (const { seq, bytes } of await view.records({ after: thread.last })) {
      const end = bytes.indexOf("\n");
      const header = bytes.subarray(0, end).toString();
      if (end > 0 && header.startsWith(FORM)) {
        const record = JSON.parse(header) as Record_<Piece>;
        await this.#fold(id, thread, record, new Reader(thread, seq, bytes.subarray(end + 1)));
        // A deletion alone tells the names of what went: with it erased, what is put late would bring it back.
        if (record.op !== "delete") thread.used.add(seq);
        thread.isRecorded = true;
      }
    }
    thread.last = Math.max(thread.last, view.seq);
  }

  async #fold(id: string, thread: Thread, record: Record_<Piece>, reader: Reader): Promise<void> {
    switch (record.op) {
      case "put": {
        const spaces = (this.storage[id] ??= Object.create(null));
        const saved = (spaces[record.ns] ??= Object.create(null));
        savedIn(thread, record.ns, record.values);
        const checkpoint = reader.take(record.checkpoint, `checkpoint ${record.ns}`);
        saved[record.id] = [checkpoint, reader.take(record.metadata, `metadata ${record.ns}`), record.parent];
        // The same checkpoint again, as a run of its own.
        thread.deleted.delete(place(record.ns, record.id, ""));
        break;
      }
      case "writes": {
        const known = (this.writes[place(id, record.ns, record.id)] ??= Object.create(null));
        for (const [key, [task, channel, piece, path]] of Object.entries(record.writes)) {
          known[key] = [task, channel, reader.take(piece, undefined), path];
        }
        break;
      }
      case "delete":
        for (const [ns, checkpoints] of Object.entries(this.storage[id] ?? {})) {
          for (const of of Object.keys(checkpoints)) thread.deleted.add(place(ns, of, ""));
        }
        // The records that told of them may have been erased since.
        for (const [ns, of] of record.ids ?? []) thread.deleted.add(place(ns, of, ""));
        await super.deleteThread(id);
        thread.forget();
        break;
      default: // Written by a newer version: kept in the log.
    }
  }

  /** Records a thread's change, and folds it as the log has it. If another writer came between, `stays` says whether it is still one. */
  async #record(id: string, thread: Thread, record: Record_<Uint8Array>, stays = (): boolean => true): Promise<void> {
    await decided(this.session(id), async () => {
      await this.#catchUp(id, thread);
      if (!stays()) return { head: thread.last, entries: [] };
      const maker = new Maker(thread);
      const header = Buffer.from(`${FORM}${JSON.stringify(piecesOf(record, maker)).slice(1)}\n`);
      return { head: thread.last, entries: [Entry.hostRecord(`checkpoint_${record.op}`, Buffer.concat([header, ...maker.fresh]))] };
    });
    await this.#catchUp(id, thread);
  }
}

/** The record with its values as what changed. */
function piecesOf(record: Record_<Uint8Array>, maker: Maker): Record_<Piece> {
  switch (record.op) {
    case "put": {
      const checkpoint = maker.piece(record.checkpoint, `checkpoint ${record.ns}`);
      return { ...record, checkpoint, metadata: maker.piece(record.metadata, `metadata ${record.ns}`) };
    }
    case "writes": {
      const each = Object.entries(record.writes).map(
        ([key, [task, channel, value, path]]) => [key, [task, channel, maker.piece(value, undefined), path]] as const,
      );
      return { ...record, writes: Object.fromEntries(each) as never };
    }
    default:
      return record;
  }
}

/** Versions of channels that are saved in a namespace, after `values` were. */
function savedIn(thread: Thread, ns: string, values: readonly [string, string | number][]): Set<string> {
  const known = thread.saved.get(ns) ?? new Set<string>();
  for (const [channel, number] of values) known.add(version(channel, number));
  thread.saved.set(ns, known);
  return known;
}

/** Takes the values of a record in their order. */
class Reader {
  readonly #thread: Thread;
  readonly #seq: number;
  readonly #fresh: Uint8Array;
  #at = 0;
  #count = 0;

  constructor(thread: Thread, seq: number, fresh: Uint8Array) {
    [this.#thread, this.#seq, this.#fresh] = [thread, seq, fresh];
  }

  take([of, steps]: Piece, line: string | undefined): Uint8Array {
    const sources = of.map(([seq, number]) => this.#thread.value([seq || this.#seq, number]));
    const { value, taken } = applied(steps, this.#fresh.subarray(this.#at), sources);
    this.#thread.keep([this.#seq, this.#count], value, line);
    this.#at += taken;
    this.#count += 1;
    return value;
  }
}

/** Makes the values of a record what changed, in their order. */
class Maker {
  readonly fresh: Buffer[] = [];
  readonly #thread: Thread;
  readonly #own: Uint8Array[] = [];

  constructor(thread: Thread) {
    this.#thread = thread;
  }

  piece(value: Uint8Array, line: string | undefined): Piece {
    const before = line === undefined ? undefined : this.#thread.latest.get(line);
    const own = this.#own.map((_, number): Name => [0, number]).reverse();
    const near = [...own, ...this.#thread.recent].slice(0, RECENT_COUNT);
    const recent = near.filter((name) => String(name) !== String(before) && this.#bytes(name).length <= RECENT_BYTES_MAX);
    const names = before === undefined ? recent : [before, ...recent];
    const { steps, fresh } = changes(value, names.map((name) => this.#bytes(name)));
    const used = [...new Set(steps.flatMap((step) => (typeof step === "number" ? [] : [step[0]])))];
    const made = steps.map((step): Step => (typeof step === "number" ? step : [used.indexOf(step[0]), step[1], step[2]]));
    this.fresh.push(fresh);
    this.#own.push(value);
    return [used.map((source) => names[source] ?? [0, 0]), made];
  }

  #bytes(name: Name): Uint8Array {
    return (name[0] === 0 ? this.#own[name[1]] : this.#thread.value(name)) ?? new Uint8Array();
  }
}
