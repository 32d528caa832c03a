/** LangGraph's long-term memory: a `BaseStore` over the memory of a project, in the form that the Python package keeps to as well. */

import { createHash } from "node:crypto";

import {
  BaseStore,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from "@langchain/langgraph-checkpoint";

import { Entry, InvalidError, NotFoundError, RejectedError, type Store } from "../index.js";
import { Turns, dumped } from "./records.mjs";

/** Of the categories that preferences have. */
const CATEGORY = "other";
/** Longer names of items are told by their digest; the item has them whole. */
const KEY_BYTES_MAX = 256;
const MINUTE = 60_000_000;

/** An item as it is remembered; times are microseconds. */
interface Told {
  readonly namespace: string[];
  readonly key: string;
  readonly value: Record<string, any>;
  readonly created: number;
  readonly updated: number;
  /** Minutes that it lives after its last use, and that use: Python's store sets them. */
  readonly ttl: number | null;
  readonly used: number;
}

interface Kept extends Told {
  readonly id: string;
}

/** The key of an item in the memory. */
function name(namespace: readonly string[], key: string): string {
  const name = JSON.stringify([...namespace, key]);
  return Buffer.byteLength(name) <= KEY_BYTES_MAX ? name : `sha256:${createHash("sha256").update(name).digest("hex")}`;
}

const now = (): number => Date.now() * 1000;

const isAlive = (kept: Kept): boolean => kept.ttl === null || kept.used + kept.ttl * MINUTE > now();

/**
 * Items of namespaces in the memory of a project.
 *
 * Each is a memory item, so that `store.memory({ project, all: true })` has what it was before, and `acpdb memory` shows it. Several
 * processes may share a store; of two puts on one key the later one holds.
 */
export class AcpdbStore extends BaseStore {
  readonly #store: Store;
  readonly #project: string;
  readonly #turns = new Turns();
  #head = -1;
  #kept = new Map<string, Kept>();

  constructor(store: Store, options?: { project?: string }) {
    super();
    this.#store = store;
    this.#project = options?.project ?? "langgraph";
  }

  /** Answers questions as of before the batch, and then records what it puts. */
  override async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    return this.#turns.take(async () => {
      await this.#catchUp();
      const results = operations.map((operation) => this.#answer(operation));
      const puts = operations.filter((operation): operation is PutOperation => "value" in operation);
      for (const put of new Map(puts.map((put) => [name(put.namespace, put.key), put])).values()) await this.#put(put);
      return results as OperationResults<Op>;
    });
  }

  // Questions.

  #answer(operation: Operation): Item | null | SearchItem[] | string[][] | undefined {
    if ("value" in operation) return undefined;
    if ("namespacePrefix" in operation) return this.#search(operation);
    if ("key" in operation) return this.#get(operation);
    return this.#namespaces(operation as ListNamespacesOperation);
  }

  #get({ namespace, key }: GetOperation): Item | null {
    const kept = this.#kept.get(name(namespace, key));
    return kept === undefined || !isAlive(kept) ? null : item(kept);
  }

  #search({ namespacePrefix, filter, limit = 10, offset = 0, query }: SearchOperation): SearchItem[] {
    const begins = ({ namespace }: Kept): boolean => namespacePrefix.every((label, at) => namespace[at] === label);
    const holds = ({ value }: Kept): boolean => Object.entries(filter ?? {}).every(([key, asked]) => matches(value[key], asked));
    const found = this.#living().filter((kept) => begins(kept) && holds(kept));
    const words = [...new Set((query ?? "").toLowerCase().split(/\s+/).filter((word) => word !== ""))];
    if (words.length === 0) return found.slice(offset, offset + limit).map(item);
    const scored = found.map((kept) => {
      const text = dumped(kept.value).toLowerCase();
      return { ...item(kept), score: words.filter((word) => text.includes(word)).length / words.length };
    });
    return scored.sort((one, other) => other.score - one.score).slice(offset, offset + limit);
  }

  #namespaces({ matchConditions = [], maxDepth, limit, offset }: ListNamespacesOperation): string[][] {
    const all = this.#living().map(({ namespace }) => namespace);
    const named = all.filter((namespace) => matchConditions.every((condition) => meets(condition, namespace)));
    const cut = new Map(named.map((namespace) => namespace.slice(0, maxDepth)).map((namespace) => [JSON.stringify(namespace), namespace]));
    const sorted = [...cut].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, namespace]) => namespace);
    return sorted.slice(offset, offset + limit);
  }

  #living(): Kept[] {
    return [...this.#kept.values()].filter(isAlive).sort((one, other) => one.created - other.created);
  }

  // The memory.

  async #catchUp(): Promise<void> {
    const head = await this.#store.memoryHead({ project: this.#project });
    if (head === this.#head) return;
    const kept = new Map<string, Kept>();
    for (const { id, value, reinforced } of await this.#store.memory({ project: this.#project })) {
      const told = read(value ?? "");
      if (told === undefined) continue;
      // Python's store gives an item its time again that was read.
      const used = Math.max(told.used, reinforced === null ? 0 : Date.parse(reinforced) * 1000);
      kept.set(name(told.namespace, told.key), { ...told, used, id });
    }
    [this.#kept, this.#head] = [kept, head];
  }

  async #put({ namespace, key, value }: PutOperation): Promise<void> {
    const place = name(namespace, key);
    if (value === null) return this.#forget(place);
    const before = this.#kept.get(place);
    const time = now();
    const created = before !== undefined && isAlive(before) ? before.created : time;
    const text = dumped({ namespace, key, value, created, updated: time, ttl: null, used: time } satisfies Told);
    const entry = Entry.memory(text, { kind: "preference", key: place, category: CATEGORY });
    const { id } = await this.#store.remember(entry, { project: this.#project });
    this.#kept.set(place, { ...(JSON.parse(text) as Told), id });
  }

  async #forget(place: string): Promise<void> {
    const retract = async (): Promise<void> => {
      const kept = this.#kept.get(place);
      if (kept === undefined) return;
      await this.#store.retract(kept.id, { project: this.#project });
      this.#kept.delete(place);
    };
    try {
      await retract();
    } catch (error) {
      if (!(error instanceof NotFoundError || error instanceof RejectedError)) throw error;
      // Another process forgot it, or put another one.
      this.#head = -1;
      await this.#catchUp();
      await retract();
    }
  }
}

/** What a memory item says of an item; the project may remember other things, too. */
function read(value: string): Told | undefined {
  try {
    const told = JSON.parse(value) as Partial<Told> | null;
    const isItem = Array.isArray(told?.namespace) && typeof told.key === "string" && typeof told.created === "number" && "value" in told;
    return isItem ? (told as Told) : undefined;
  } catch {
    return undefined;
  }
}

function item({ namespace, key, value, created, updated }: Kept): Item {
  return { namespace: [...namespace], key, value, createdAt: new Date(created / 1000), updatedAt: new Date(updated / 1000) };
}

/** Whether a namespace meets a condition. */
function meets({ matchType, path }: MatchCondition, namespace: readonly string[]): boolean {
  const [asked, own] = matchType === "suffix" ? [[...path].reverse(), [...namespace].reverse()] : [path, namespace];
  return own.length >= asked.length && asked.every((label, at) => label === "*" || label === own[at]);
}

const operators: Record<string, (one: any, other: any) => boolean> = {
  $eq: (one, other) => matches(one, other),
  $ne: (one, other) => !matches(one, other),
  $gt: (one, other) => Number(one) > Number(other),
  $gte: (one, other) => Number(one) >= Number(other),
  $lt: (one, other) => Number(one) < Number(other),
  $lte: (one, other) => Number(one) <= Number(other),
};

/** Whether a value is as a filter asks. */
function matches(value: unknown, asked: unknown): boolean {
  if (typeof asked !== "object" || asked === null) return value === asked;
  const inner = typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  if (Array.isArray(asked)) return Array.isArray(value) && value.length === asked.length && asked.every((one, at) => matches(value[at], one));
  const pairs = Object.entries(asked);
  if (!pairs.some(([key]) => key.startsWith("$"))) return inner !== undefined && pairs.every(([key, one]) => matches(inner[key], one));
  return pairs.every(([key, other]) => {
    const holds = operators[key];
    if (holds === undefined) throw new InvalidError(`there is no operator ${key}; there are ${Object.keys(operators).join(", ")}`);
    return holds(value, other);
  });
}
