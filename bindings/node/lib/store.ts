/** The store: open, sessions, questions over all of them. */

import { setTimeout as after_ } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { type Entry, described } from "./entry.js";
import { InvalidError, done, settled } from "./errors.js";
import { native, type NativeStore, type NativeStores, type NativeSubscription } from "./native.js";
import { read } from "./options.js";
import { Session, type AtOption } from "./session.js";
import type * as shapes from "./shapes.js";
import { count, duration, inspected, json, named, optional, point, text, wrongType, type At, type Json, type Text } from "./values.js";
import { looked, type SearchOptions } from "./view.js";

/** How long a subscription waits between two looks, in milliseconds. */
const LOOK_EVERY = 20;

/** Commits of every process, each once, in order, as they become durable. It pulls: a slow reader slows no writer. */
export class Subscription implements AsyncIterableIterator<shapes.Commit> {
  readonly #native: NativeSubscription;
  readonly #timeout: number | undefined;
  #returned = false;
  /** @internal */
  constructor(given: NativeSubscription, timeout: number | undefined) {
    this.#native = given;
    this.#timeout = timeout;
  }

  /** The first seq that was not handed out: where another subscription would go on. */
  get nextSeq(): number {
    return this.#native.nextSeq;
  }

  /** The next commit; null if none came within so many seconds. 0 only looks. */
  async nextWithin(seconds: number): Promise<shapes.Commit | null> {
    const end = performance.now() + duration("seconds", seconds) * 1000;
    for (;;) {
      const commit = await settled(this.#native.look());
      if (commit !== null) return JSON.parse(commit) as shapes.Commit;
      const left = end - performance.now();
      if (left <= 0 || this.#returned) return null;
      await after_(Math.min(left, LOOK_EVERY));
    }
  }

  async next(): Promise<IteratorResult<shapes.Commit, undefined>> {
    while (!this.#returned) {
      const value = await this.nextWithin(this.#timeout ?? 1);
      if (value !== null) return { done: false, value };
      if (this.#timeout !== undefined) break;
    }
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<shapes.Commit, undefined>> {
    this.#returned = true;
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

export interface SessionOptions {
  /** Whose tools it calls. */
  host?: string;
  /** Whose memory it shares. */
  project?: string;
  cwd?: string;
  title?: string;
  /** Which session started it, and which call of that. */
  parent?: string;
  parentCall?: string;
}

/** An open store, made by `open`. Close it, or use `using` or `await using`. */
export class Store {
  readonly #native: NativeStore;
  /** @internal */
  constructor(given: NativeStore) {
    this.#native = given;
  }

  /** Closes the store for all handles that came from it, behind everything that was called before. Twice is once. */
  async close(): Promise<void> {
    return settled(this.#native.close());
  }

  [Symbol.dispose](): void {
    done(() => this.#native.closeNow());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Whether it was closed. */
  get closed(): boolean {
    return this.#native.closed;
  }

  /** The folder it lies in. */
  get path(): string {
    return this.#native.path;
  }

  /** Id of the store. */
  get id(): string {
    return this.#native.id;
  }

  async #call<T>(operation: string, given: object = {}): Promise<T> {
    return JSON.parse(await settled(this.#native.call(operation, named(given)))) as T;
  }

  /** The newest durable seq, of any process. */
  async head(): Promise<number> {
    return this.#call("head");
  }

  /** Makes durable what was acknowledged under the durability `os`. */
  async sync(): Promise<void> {
    await this.#call("sync");
  }

  /** What the store holds, in figures. */
  async info(): Promise<shapes.StoreInfo> {
    return this.#call("info");
  }

  /** A handle on one session. Nothing is read or written until it is used. */
  session(key: string, options?: SessionOptions): Session {
    const it = read("Store.session", options);
    return new Session(done(() => this.#native.session(named({ key, ...it }))));
  }

  /** Sessions in a line each, in order of their first events; those that hold what a filter lets pass. */
  async sessions(filter = ""): Promise<shapes.SessionRow[]> {
    return this.#call("sessions", { filter });
  }

  /** Names of all sessions and projects, without a look into them. */
  async names(): Promise<shapes.StreamName[]> {
    return this.#call("names");
  }

  /** The session of this key, of any host, or whose key begins so. */
  async findSession(name: string): Promise<Session> {
    const [key, host] = await this.#call<[string, string]>("find_session", { name });
    return this.session(key, { host });
  }

  /** Items of all sessions whose texts hold all patterns, the newest sessions first. */
  async search(patterns: string | readonly string[], options?: SearchOptions): Promise<shapes.Found> {
    return this.#call("search", looked(patterns, read("Store.search", options)));
  }

  /** An event in a line; null if there is none. */
  async event(seq: number): Promise<shapes.EventRow | null> {
    return this.#call("event", { seq: count("seq", seq) });
  }

  /** Follows the store behind a seq: first what is there, then what comes. With a `timeout` in seconds it ends after a quiet time. */
  subscribe(after = 0, options?: { timeout?: number }): Subscription {
    const { timeout } = read("Store.subscribe", options);
    const limit = timeout === undefined ? undefined : duration("timeout", timeout);
    const from = count("after", after);
    return new Subscription(done(() => this.#native.subscribe(from)), limit);
  }

  /** What a project is to remember; with `all` everything that it ever was told. Without a name, the only project's. */
  async memory(options?: AtOption & { project?: string; all?: boolean }): Promise<shapes.MemoryRow[]> {
    const it = read("Store.memory", options);
    return this.#call("memory", { ...it, at: point(it.at) });
  }

  /**
   * The newest event that what a project is to remember may rest on: as long as it is the same, so is the memory. 0 if there is none.
   */
  async memoryHead(options?: { project?: string }): Promise<number> {
    return this.#call("memory_head", read("Store.memory_head", options));
  }

  /** Remembers what `Entry.memory` says for a project, which comes about by it. */
  async remember(entry: Entry, options?: { project?: string }): Promise<shapes.MemoryReceipt> {
    const project = optional("project", read("Store.remember", options).project);
    return JSON.parse(await settled(this.#native.remember(...described([entry]), project))) as shapes.MemoryReceipt;
  }

  /** The memory item no longer holds, and nothing takes its place. */
  async retract(item: string, options?: { project?: string; reason?: string }): Promise<shapes.MemoryReceipt> {
    return this.#call("retract", { item, ...read("Store.retract", options) });
  }

  /** The memory item was confirmed, or used. */
  async reinforce(item: string, options?: { project?: string }): Promise<shapes.MemoryReceipt> {
    return this.#call("reinforce", { item, ...read("Store.reinforce", options) });
  }

  /** What policies and modes would have cost, of one session or of all. */
  async simulate(options?: {
    session?: string;
    policies?: readonly string[];
    modes?: readonly shapes.Mode[];
    price?: string;
  }): Promise<shapes.SimulationRow[]> {
    return this.#call("simulate", read("Store.simulate", options));
  }

  /** The policy in force for sessions that set none of theirs. */
  async policy(): Promise<Record<string, Json>> {
    return this.#call("policy");
  }

  /** Sets the policy for what comes, by a preset's name or as data; its seq. */
  async setPolicy(policy: string | Record<string, Json>, options?: { reason?: string }): Promise<number> {
    return this.#call("set_policy", { policy, ...read("Store.set_policy", options) });
  }

  /** Checks every digest and link of the store; `deep` also what was concluded. */
  async verify(options?: { deep?: boolean }): Promise<shapes.Report> {
    return this.#call("verify", read("Store.verify", options));
  }

  /**
   * Erases what an item holds for good, with all equal content, in every session. With `dryRun` only says what would be hit.
   *
   * That it was done stays on record, and so do digests, lengths, ids, names of tools and paths. Copies elsewhere stay: backups, and
   * quotations in other texts.
   */
  async erase(item: string, options?: { reason?: string; by?: string; dryRun?: boolean }): Promise<shapes.EraseReport> {
    return this.#call("erase", { item, ...read("Store.erase", options) });
  }

  /**
   * Erases host's own records, by the seqs that `Session.records` has, in one go. An equal record that is not named stays, and may be
   * recorded again.
   */
  async eraseRecords(seqs: readonly number[], options?: { reason?: string; by?: string }): Promise<shapes.EraseReport> {
    if (!Array.isArray(seqs)) throw wrongType("seqs", "a list of numbers", seqs);
    const each = seqs.map((seq: unknown) => count("seqs", seq));
    return this.#call("erase_records", { seqs: each, ...read("Store.erase_records", options) });
  }

  /**
   * Packs all complete segments of the log, to about a quarter of their size; with `active` also the one that is being written. An open
   * store does this by itself while it is idle, without the one that is being written. Answers are the same either way.
   */
  async seal(options?: { active?: boolean }): Promise<shapes.SealReport> {
    return this.#call("seal", read("Store.seal", options));
  }

  /**
   * Copies the store to a folder while others go on writing, and verifies the copy. The folder is empty, is not there, or has an older copy,
   * whose place the new one takes. `restore` makes a store of it.
   */
  async backup(folder: string | URL): Promise<shapes.Backup> {
    return this.#call("backup", { folder: place(folder, "folder") });
  }

  /** The sessions, in order of their first events. */
  async *[Symbol.asyncIterator](): AsyncIterableIterator<Session> {
    for (const name of await this.names()) if (name.scope === "session") yield this.session(name.id, { host: name.host });
  }

  /** What `console.log` shows. */
  [inspected](): string {
    return this.closed ? "Store { closed }" : `Store { path: ${JSON.stringify(this.path)} }`;
  }

  /** The items of all sessions as JSON lines, with their texts and states. */
  async export(format: "jsonl" = "jsonl"): Promise<Buffer> {
    if (format !== "jsonl") {
      throw new InvalidError("a store is exported as 'jsonl'; Session.export has more formats");
    }
    return settled(this.#native.export());
  }
}

/** How a store is opened. */
export interface OpenOptions {
  /** Changes nothing in the folder. */
  readOnly?: boolean;
  /** Makes the store if there is none. */
  create?: boolean;
  /** With `os` an append does not wait for the disk. */
  durability?: "sync" | "os";
  /** How many seconds an append waits for another process. */
  lockWait?: number;
  index?: boolean;
  /** Takes secrets out of what is recorded. */
  redact?: boolean;
  anyFileSystem?: boolean;
  /** Opens an encrypted store, and one that is made then is encrypted; a plain one is refused. */
  keyFile?: string;
  passphrase?: string;
}

/** How stores are opened that are only read. */
export type ReadOptions = Pick<OpenOptions, "anyFileSystem" | "keyFile" | "passphrase">;

/** Several stores that are read as one, made by `openAll`. Of stores that are copies of each other only the longest is one of them. */
export class Stores {
  readonly #native: NativeStores;
  /** The stores, in the order in which they were given. */
  readonly members: readonly shapes.StoreMember[];
  /** Stores that are left out, since another one holds all of them. */
  readonly copies: readonly shapes.StoreMember[];
  /** Stores that are one up to a seq, and went on apart: both are there. */
  readonly forks: readonly shapes.StoreFork[];
  /** @internal */
  constructor(given: NativeStores) {
    this.#native = given;
    const told = JSON.parse(given.members()) as Pick<Stores, "members" | "copies" | "forks">;
    [this.members, this.copies, this.forks] = [told.members, told.copies, told.forks];
  }

  /** The store of a label, opened to be read. */
  async store(label: string): Promise<Store> {
    return new Store(await settled(this.#native.get(text("label", label))));
  }

  /** Sessions of all stores, each with the label of its store; see `Store.sessions`. */
  async sessions(filter = ""): Promise<[label: string, row: shapes.SessionRow][]> {
    const all: [string, shapes.SessionRow][] = [];
    for await (const [label, store] of this) all.push(...(await store.sessions(filter)).map((row) => [label, row] as [string, shapes.SessionRow]));
    return all;
  }

  /** Items of all stores whose texts hold all patterns, each with the label of its store; see `Store.search`. */
  async search(patterns: string | readonly string[], options?: SearchOptions): Promise<[label: string, hit: shapes.Hit][]> {
    const it = read("Stores.search", options);
    const limit = count("limit", it.limit);
    const all: [string, shapes.Hit][] = [];
    for await (const [label, store] of this) {
      if (all.length >= limit) break;
      const { items } = await store.search(patterns, { ...it, limit: limit - all.length });
      all.push(...items.map((hit) => [label, hit] as [string, shapes.Hit]));
    }
    return all;
  }

  /** Lets all stores go. One that is asked for later is opened again. */
  async close(): Promise<void> {
    return settled(this.#native.release());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Each label with its store. */
  async *[Symbol.asyncIterator](): AsyncIterableIterator<[label: string, store: Store]> {
    for (const { label } of this.members) yield [label, await this.store(label)];
  }

  /** What `console.log` shows. */
  [inspected](): string {
    return `Stores { ${this.members.map(({ label }) => label).join(", ")} }`;
  }
}

function place(path: unknown, what = "path"): string {
  if (path instanceof URL) return fileURLToPath(path);
  if (typeof path !== "string") throw wrongType(what, "a string or a file URL", path);
  if (path.includes("\0")) throw new InvalidError(`${what} holds a NUL, which no file name can`);
  return text(what, path);
}

/** Opens the store in a folder, making or recovering it as needed. */
export async function open(path: string | URL, options?: OpenOptions): Promise<Store> {
  const it = read("open", options);
  const lockWait = duration("lockWait", it.lockWait);
  return new Store(await settled(native.openStore(named({ path: place(path), ...it, lockWait }))));
}

/** How a store beyond this machine is opened. */
export interface RemoteOptions extends Omit<OpenOptions, "readOnly" | "durability"> {
  /** The worker, for people. */
  owner?: string;
}

/**
 * Opens the store of a name, such as a session's, at a URL, and takes it over from the worker that has it: that one gets a `FencedError`.
 *
 * `url` is `file:///FOLDER`, on any mounted disk, or `s3://BUCKET/PREFIX`, with the credentials of `AWS_*` or of the user's profile. The
 * store is written below `folder`, on a local disk, which may be lost: when an append resolves, the commit is at the remote. With a key,
 * objects of a new store are encrypted there, and a store that is there has to be encrypted.
 */
export async function openRemote(url: string | URL, name: string, folder: string | URL, options?: RemoteOptions): Promise<Store> {
  const it = read("open_remote", options);
  const opening = { url: url instanceof URL ? String(url) : text("url", url), name, folder: place(folder, "folder"), ...it, lockWait: duration("lockWait", it.lockWait) };
  return new Store(await settled(native.openRemote(named(opening))));
}

/** Opens the stores in several folders, to read them as one. With a key all of them are encrypted. */
export async function openAll(paths: readonly (string | URL)[], options?: ReadOptions): Promise<Stores> {
  const it = read("open_all", options);
  if (!Array.isArray(paths)) throw wrongType("paths", "a list of strings or file URLs", paths);
  const folders = paths.map((path: unknown) => place(path, "paths"));
  return new Stores(await settled(native.openStores(folders, named({ path: "", ...it }))));
}

/** The stores in a folder, in order of names: its subfolders that are stores, or projects with a store. */
export async function storesIn(folder: string | URL): Promise<string[]> {
  return JSON.parse(await settled(native.storesIn(place(folder, "folder")))) as string[];
}

/** Makes a store in a folder from a backup, and verifies it. The backup stays. */
export async function restore(backup: string | URL, folder: string | URL, options?: ReadOptions): Promise<shapes.Backup> {
  const opening = named({ path: place(backup, "backup"), ...read("restore", options) });
  return JSON.parse(await settled(native.restoreBackup(opening, place(folder, "folder")))) as shapes.Backup;
}

/** Checks every digest and link of the store in a folder, without opening it: also of one that cannot be opened. */
export async function verify(path: string | URL, options?: { deep?: boolean }): Promise<shapes.Report> {
  const { deep } = read("verify", options);
  return JSON.parse(await settled(native.verifyStore(place(path), deep === true))) as shapes.Report;
}

/** What a provider would refuse of the body of a request; empty if nothing. */
export async function lint(
  body: Text | Record<string, Json>,
  format: shapes.RequestFormat,
  options?: { model?: string; previous?: Uint8Array },
): Promise<shapes.Finding[]> {
  const { model, previous } = read("lint", options);
  if (previous !== undefined && !(previous instanceof Uint8Array)) throw wrongType("previous", "a Uint8Array", previous);
  const work = native.lintRequest(json("body", body), text("format", format), optional("model", model), previous);
  return JSON.parse(await settled(work)) as shapes.Finding[];
}

export type { At };
