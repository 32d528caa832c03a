/**
 * Threads of LangGraph, folded from their records.
 *
 * ```text
 * record   {"form":"js","op":"put", .., "checkpoint":piece, ..}  \n  bytes that are new
 * piece    [[[seq, number], ..], steps]     a value: copies from values of this and of earlier records, and new bytes
 * ```
 *
 * A record is named by its seq, and by 0 in itself. A record `keep` has all that is left of a thread, `drop` the names of what went before
 * it, and `delete` all names that are not in a `delete` before. So the records before can be erased, but for each `delete`, and until the
 * next one each `drop`.
 */

import { NotFoundError } from "../index.js";
import { applied, changes, type Step } from "./changes.mjs";
import { Turns } from "./records.mjs";

/** How a record begins; those of another form are kept in the log. Python's saver has a form of its own, and other serializers. */
export const FORM = '{"form":"js",';
/** Values that a new one may copy from, besides the one that it follows. */
const RECENT_COUNT = 6;
const RECENT_BYTES_MAX = 64 << 10;

/** The record that has a value, 0 for itself; and the value's number in it. */
export type Name = [seq: number, number: number];
/** A value: copies from values of this and of earlier records, and new bytes. */
export type Piece = [of: Name[], steps: Step[]];

/** The name of a checkpoint in its thread. */
export type CheckpointName = [ns: string, id: string];

/** A checkpoint, or writes of one of its tasks. */
export type Part<V> =
  | { op: "put"; ns: string; id: string; parent?: string; checkpoint: V; metadata: V; values: [string, string | number][] }
  | { op: "writes"; ns: string; id: string; writes: Record<string, [task: string, channel: string, value: V, path: string]> };

export type ThreadRecord<V> =
  | Part<V>
  | { op: "delete"; ids?: CheckpointName[] }
  | { op: "drop"; ids: CheckpointName[] }
  | { op: "thread"; records: Part<V>[] }
  | { op: "keep"; records: Part<V>[] };

/** The key that the memory saver has writes of a checkpoint under. */
export const place = (thread: string, ns: string, id: string): string => JSON.stringify([thread, ns, id]);

export const version = (channel: string, number: unknown): string => JSON.stringify([channel, number]);

/** What is known of a thread besides its checkpoints. */
export class Thread {
  readonly turns = new Turns();
  /** Works that need it in memory. */
  works = 0;
  /** Versions of channels whose values were saved, by namespace. */
  readonly saved = new Map<string, Set<string>>();
  /** Checkpoints that were deleted with the thread, and those that were dropped from it. */
  readonly deleted = new Set<string>();
  readonly dropped = new Set<string>();
  readonly values = new Map<string, Uint8Array>();
  readonly latest = new Map<string, Name>();
  recent: Name[] = [];
  last = 0;
  isRecorded = false;
  /** Records that nothing is made from any more, and those that values may be made from. */
  readonly spent = new Set<number>();
  readonly used = new Set<number>();
  /** Those that tell what was dropped, until a deletion tells it, too. */
  readonly drops = new Set<number>();

  /** Nothing is made any more from what was recorded so far. */
  spend(): void {
    for (const seq of this.used) this.spent.add(seq);
    this.used.clear();
    for (const map of [this.saved, this.values, this.latest]) map.clear();
    this.recent = [];
  }

  /** A deletion tells the names of all that went. */
  delete(ids: Iterable<string>): void {
    for (const id of [...ids, ...this.dropped]) this.deleted.add(id);
    this.dropped.clear();
    for (const seq of this.drops) this.used.add(seq);
    this.drops.clear();
    this.spend();
  }

  /** As before the first record was read. */
  forget(): void {
    this.spend();
    for (const set of [this.deleted, this.dropped, this.spent, this.drops]) set.clear();
    this.last = 0;
  }

  /** A record was folded. A deletion alone tells the names of what went: with it erased, what is put late would bring it back. */
  fold(seq: number, op: string): void {
    this.isRecorded = true;
    if (op !== "delete") (op === "drop" ? this.drops : this.used).add(seq);
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

/** The record with its values as what changed. */
export function piecesOf(record: ThreadRecord<Uint8Array>, maker: Maker): ThreadRecord<Piece> {
  if ("records" in record) return { ...record, records: record.records.map((part) => partOf(part, maker)) };
  return record.op === "put" || record.op === "writes" ? partOf(record, maker) : record;
}

function partOf(record: Part<Uint8Array>, maker: Maker): Part<Piece> {
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
  }
}

/** Versions of channels that are saved in a namespace, after `values` were. */
export function savedIn(thread: Thread, ns: string, values: readonly [string, string | number][]): Set<string> {
  const known = thread.saved.get(ns) ?? new Set<string>();
  for (const [channel, number] of values) known.add(version(channel, number));
  thread.saved.set(ns, known);
  return known;
}

/** Takes the values of a record in their order. */
export class Reader {
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
export class Maker {
  readonly fresh: Buffer[] = [];
  readonly #thread: Thread;
  readonly #own: Uint8Array[] = [];
  readonly #lines = new Map<string, Name>();

  constructor(thread: Thread) {
    this.#thread = thread;
  }

  piece(value: Uint8Array, line: string | undefined): Piece {
    const before = line === undefined ? undefined : (this.#lines.get(line) ?? this.#thread.latest.get(line));
    const own = this.#own.map((_, number): Name => [0, number]).reverse();
    const near = [...own, ...this.#thread.recent].slice(0, RECENT_COUNT);
    const recent = near.filter((name) => String(name) !== String(before) && this.#bytes(name).length <= RECENT_BYTES_MAX);
    const names = before === undefined ? recent : [before, ...recent];
    const { steps, fresh } = changes(value, names.map((name) => this.#bytes(name)));
    const used = [...new Set(steps.flatMap((step) => (typeof step === "number" ? [] : [step[0]])))];
    const made = steps.map((step): Step => (typeof step === "number" ? step : [used.indexOf(step[0]), step[1], step[2]]));
    this.fresh.push(fresh);
    if (line !== undefined) this.#lines.set(line, [0, this.#own.length]);
    this.#own.push(value);
    return [used.map((source) => names[source] ?? [0, 0]), made];
  }

  #bytes(name: Name): Uint8Array {
    return (name[0] === 0 ? this.#own[name[1]] : this.#thread.value(name)) ?? new Uint8Array();
  }
}
