/** Sessions: append, serve, ask, act. */

import { randomUUID } from "node:crypto";

import { type Entry, described } from "./entry.js";
import { settled } from "./errors.js";
import type { NativeSession, NativeTicket, Receipt } from "./native.js";
import { read } from "./options.js";
import type * as shapes from "./shapes.js";
import { bytes, count, inspected, named, optional, point, several, text, wrongType, type At, type Json } from "./values.js";
import { View, type ContextOptions, type ExportOptions, type HistoryOptions, type SearchOptions } from "./view.js";

/** A commit that was submitted: it becomes durable whether anything waits for it or not. */
export class Ticket {
  readonly #native: NativeTicket;
  /** @internal */
  constructor(native: NativeTicket) {
    this.#native = native;
  }

  /** The seq that its last event has, or will have. */
  get lastSeq(): number {
    return this.#native.lastSeq;
  }

  /** Waits until the commit is durable; once. */
  async wait(): Promise<Receipt> {
    return settled(this.#native.wait());
  }
}

/** A context that was recorded as sent. */
export interface Served {
  /** What to send: the body of a request. */
  readonly body: Buffer;
  /** The event that records it. */
  readonly seq: number;
  /** Estimated tokens of its items. */
  readonly tokens: number;
  /** The first item that differs from the context before: all before it is in the provider's cache. */
  readonly firstChanged: number;
  /**
   * Where a mark for the provider's cache pays: after so many items each, first to last; at most three. The end of tools and system
   * prompt is a fourth place. With the option `breakpoints` the body says so itself.
   */
  readonly breakpoints: readonly number[];
  /** Why what was sent before was changed, if it was. */
  readonly rebased: string | null;
  /** What could not be carried, in words. */
  readonly notes: readonly string[];
  /** The budget, if it could not be kept. */
  readonly overBudget: Json;
}

/** How a context is served. */
export interface ServeOptions {
  model?: string;
  mode?: shapes.Mode;
  tokensMax?: number;
  cold?: boolean;
  prefixTokens?: number;
  inject?: boolean;
  /** Sets `cache_control` in the body where the provider's cache pays (Anthropic only). */
  breakpoints?: boolean;
}

/** A step of the model: a turn. Made by `Session.step`. */
export class Step {
  readonly #native: NativeSession;
  readonly key: string;
  /** @internal */
  constructor(native: NativeSession, key: string) {
    this.#native = native;
    this.key = key;
  }

  /**
   * The context for this step as the body of a request, recorded as sent. Durable when its promise resolves.
   *
   * Between two rebases each context begins with the bytes of the one before, so that the provider's cache stays warm. Anthropic's keeps
   * only what it is told to keep: `breakpoints` sets `cache_control` where that pays. These marks move from body to body, so that bytes
   * differ where they stand; to the cache they are no difference.
   */
  async context(format: shapes.Format = "anthropic", options?: ServeOptions): Promise<Served> {
    const it = read("Step.context", options);
    const { body, facts } = await settled(this.#native.serve(named({ key: this.key, format, ...it })));
    const told = JSON.parse(facts) as Record<string, Json>;
    return {
      body,
      seq: told.seq,
      tokens: told.tokens,
      firstChanged: told.first_changed,
      breakpoints: told.breakpoints,
      rebased: told.rebased,
      notes: told.notes,
      overBudget: told.over_budget,
    };
  }
}

/** Whose words say when. */
export interface AtOption {
  at?: At;
}

/** One session of a store, made by `Store.session`. Cheap; opened in the log by its first append. */
export class Session {
  readonly #native: NativeSession;
  /** @internal */
  constructor(native: NativeSession) {
    this.#native = native;
  }

  /** The host's id of the session. */
  get key(): string {
    return this.#native.key;
  }

  /** The host program. */
  get host(): string {
    return this.#native.host;
  }

  /** Id of its stream. */
  get stream(): string {
    return this.#native.stream;
  }

  /**
   * Records facts as one commit: there as a whole or not at all, and durable when its promise resolves. Commits of one store are
   * recorded in the order of the calls, awaited or not. An entry whose `origin` is known already is skipped.
   */
  async append(...entries: Entry[]): Promise<Receipt> {
    return this.#append(entries);
  }

  /**
   * As `append`, if the session has no event behind `head`: the `seq` of the view that was read, or 0 for a session that is new. Else a
   * `HeadMovedError` names both, and nothing is recorded: read again, and decide anew.
   */
  async appendExpecting(head: number, ...entries: Entry[]): Promise<Receipt> {
    return this.#append(entries, count("head", head));
  }

  /** As `append`, without waiting for the disk: the ticket's `wait` does. */
  async submit(...entries: Entry[]): Promise<Ticket> {
    const [facts, texts] = described(entries);
    return new Ticket(await settled(this.#native.submit(facts, texts)));
  }

  /**
   * Appends lines of a host's own recording, such as `"claude-code"`; how many events were new. Lines with an id are known again;
   * of others, those of one call with the same `salt` are. `prefix` makes all differ.
   */
  async appendLines(format: string, lines: Uint8Array, options?: { prefix?: string; salt?: string }): Promise<number> {
    const it = read("Session.append_lines", options);
    const given = bytes("lines", lines);
    if (typeof given === "string") throw wrongType("lines", "a Uint8Array", lines);
    const salt = optional("salt", it.salt) ?? randomUUID();
    return settled(this.#native.appendLines(text("format", format), given, text("prefix", it.prefix), salt));
  }

  /** Opens the session if it is new; else says what its last host left open. */
  async resume(): Promise<shapes.Resumed> {
    return this.#call("resume");
  }

  /** Ends what was left open: calls are aborted for this reason, messages abandoned. */
  async giveUp(why: string): Promise<Receipt> {
    return settled(this.#native.giveUp(text("why", why)));
  }

  /** Begins a step of the model. The same key again begins nothing new. */
  async step(key?: string): Promise<Step> {
    const named = optional("key", key) ?? randomUUID();
    await this.#call("step", { key: named });
    return new Step(this.#native, named);
  }

  /** Applies everything that is pending from the next context on, at any cost; the seq, or null. */
  async flush(): Promise<number | null> {
    return this.#call("flush");
  }

  // Ask

  /** A frozen view at the head, or at any earlier moment; no replay. */
  async view(at?: At): Promise<View> {
    const when = point(at);
    return new View(await settled((async () => this.#native.view(when))()));
  }

  /** The current context as data; with `format` the body of a request as bytes. Records nothing: see `Step.context`. */
  async context(options: AtOption & { format: shapes.Format; model?: string }): Promise<Buffer>;
  async context(options?: AtOption & ContextOptions): Promise<shapes.Context>;
  async context(
    options?: AtOption & ContextOptions & { format?: shapes.Format; model?: string },
  ): Promise<shapes.Context | Buffer> {
    const { format, at, layer, last, model } = read("Session.context", options);
    const view = await this.view(at);
    if (format === undefined) return view.context({ ...(layer && { layer }), ...(last !== undefined && { last }) });
    return view.export(format, model === undefined ? {} : { model });
  }

  /** Everything that ever was, oldest first; see `View.history`. */
  async history(options?: AtOption & HistoryOptions): Promise<shapes.ItemRow[]> {
    const { at, ...rest } = read("Session.history", options);
    return (await this.view(at)).history(rest);
  }

  /** An item and what superseded it, oldest first. */
  async chain(item: string, options?: AtOption): Promise<shapes.Chain> {
    return (await this.view(read("Session.chain", options).at)).chain(item);
  }

  /** Why an item is in the context, or is not. */
  async explain(item: string, options?: AtOption): Promise<shapes.Explained> {
    return (await this.view(read("Session.explain", options).at)).explain(item);
  }

  /** Items whose texts hold all patterns. */
  async search(patterns: string | readonly string[], options?: AtOption & SearchOptions): Promise<shapes.Found> {
    const { at, ...rest } = read("Session.search", options);
    return (await this.view(at)).search(patterns, rest);
  }

  /** The todo list. */
  async todos(options?: AtOption): Promise<shapes.Todos> {
    return (await this.view(read("Session.todos", options).at)).todos();
  }

  /** What the session, its project and the user are to remember; with `all` everything that they ever were told, and `standing` says
   * what holds. */
  async memory(options?: AtOption & { all?: boolean }): Promise<shapes.MemoryRow[]> {
    const { at, ...rest } = read("Session.memory", options);
    return (await this.view(at)).memory(rest);
  }

  /** The host's own records on the active branch, byte for byte, each with its seq; see `Entry.ofRecord`. */
  async records(options?: AtOption & { after?: number }): Promise<{ seq: number; bytes: Buffer }[]> {
    const { at, ...rest } = read("Session.records", options);
    return (await this.view(at)).records(rest);
  }

  /** The session as the body of a request, a transcript, a page (`html`) or spans (`otlp`). */
  async export(format: shapes.ExportFormat, options?: AtOption & ExportOptions): Promise<Buffer> {
    const { at, ...rest } = read("Session.export", options);
    return (await this.view(at)).export(format, rest);
  }

  // Act

  /** Hides items: all targets or none. A target is an item (`#12`), the id of a call, or its hash. */
  async discard(...targets: string[]): Promise<shapes.ActReply> {
    return this.#call("discard", { targets });
  }

  /** Hides items, each behind its summary. */
  async distill(summaries: Readonly<Record<string, string>>): Promise<shapes.ActReply> {
    if (typeof summaries !== "object" || summaries === null) {
      throw wrongType("summaries", "an object of targets and their summaries", summaries);
    }
    return this.#call("distill", { summaries });
  }

  /** Shows items again; with `pin` the rules leave them alone. */
  async restore(targets: string | readonly string[], options?: { pin?: boolean }): Promise<shapes.ActReply> {
    const { pin } = read("Session.restore", options);
    return this.#call("restore", { targets: several("targets", targets), pin });
  }

  /** Runs a call of the context tool as a model makes it: `{"action": .., "targets": [[target, summary?], ..]}`. */
  async contextTool(call: Json): Promise<shapes.ActReply> {
    return this.#call("context_tool", { call });
  }

  /** Keeps items from the rules. */
  async pin(...targets: string[]): Promise<shapes.ActReply> {
    return this.#call("pin", { targets });
  }

  /** Leaves items to the rules again. */
  async unpin(...targets: string[]): Promise<shapes.ActReply> {
    return this.#call("unpin", { targets });
  }

  /** Goes back to a seq: what came after leaves the context and stays in the log. `last_seq` is null if nothing came after it.
   * For another point in time: `session.rewind((await session.view("t12")).seq)`. */
  async rewind(to: number): Promise<shapes.ActReply> {
    return this.#call("rewind", { to: count("to", to) });
  }

  /**
   * Begins a session that continues this one from a point in time; nothing is copied. Without a key it gets this one's, with a number.
   */
  async fork(key?: string, options?: AtOption & { title?: string }): Promise<Session> {
    const it = read("Session.fork", options);
    const when = point(it.at);
    return new Session(await settled(this.#native.fork(optional("key", key), when, optional("title", it.title))));
  }

  /** Changes tasks, as an agent asks for it: `[{"id": .., "status": ..}, ..]`. */
  async updateTasks(tasks: readonly Json[]): Promise<shapes.ActReply> {
    if (!Array.isArray(tasks)) throw wrongType("tasks", "a list of objects", tasks);
    return this.#call("update_tasks", { tasks });
  }

  // Remember

  /** Remembers what `Entry.memory` says. An equal value is confirmed, and a preference's new value takes the old one's place. */
  async remember(entry: Entry): Promise<shapes.MemoryReceipt> {
    return JSON.parse(await settled(this.#native.remember(...described([entry])))) as shapes.MemoryReceipt;
  }

  /** The memory item no longer holds, and nothing takes its place. */
  async retract(item: string, options?: { reason?: string }): Promise<shapes.MemoryReceipt> {
    return this.#call("retract", { item, ...read("Session.retract", options) });
  }

  /** The memory item was confirmed. */
  async reinforce(item: string): Promise<shapes.MemoryReceipt> {
    return this.#call("reinforce", { item });
  }

  /** One memory item takes the place of another. */
  async supersede(old: string, new_: string, options?: { reason?: string }): Promise<shapes.MemoryReceipt> {
    return this.#call("supersede", { old, new: new_, ...read("Session.supersede", options) });
  }

  /** The memory item holds again. */
  async restoreMemory(item: string): Promise<shapes.MemoryReceipt> {
    return this.#call("restore_memory", { item });
  }

  /** What `console.log` shows. */
  [inspected](): string {
    return `Session { key: ${JSON.stringify(this.key)}, host: ${JSON.stringify(this.host)} }`;
  }

  async #append(entries: Entry[], head?: number): Promise<Receipt> {
    const [facts, texts] = described(entries);
    if (!this.#native.durable) return settled(this.#native.append(facts, texts, head));
    // While the disk is written no thread of the pool waits for it.
    return settled(this.#native.submit(facts, texts, head).then((ticket) => ticket.wait()));
  }

  async #call<T>(operation: string, given: object = {}): Promise<T> {
    return JSON.parse(await settled(this.#native.call(operation, named(given)))) as T;
  }
}
