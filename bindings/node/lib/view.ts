/** Frozen views of a session. */

import { settled } from "./errors.js";
import type { NativeView } from "./native.js";
import { read } from "./options.js";
import type * as shapes from "./shapes.js";
import { count, inspected, named, several, text } from "./values.js";

/** How texts are looked for. */
export interface SearchOptions {
  filter?: string;
  regex?: boolean;
  word?: boolean;
  case?: boolean;
  lines?: number;
  limit?: number;
}

export interface HistoryOptions {
  file?: string;
  tool?: string;
  filter?: string;
  limit?: number;
}

export interface ContextOptions {
  layer?: "current" | "recorded";
  last?: number;
}

export interface ExportOptions {
  selection?: shapes.Selection;
  model?: string;
  syntheticResults?: boolean;
  serverSide?: boolean;
}

/** What is looked for, for the engine. */
export const looked = (patterns: string | readonly string[], it: SearchOptions): object => ({
  patterns: several("patterns", patterns),
  ...it,
});

/** One session as of one seq. Later appends do not show through it. */
export class View {
  readonly #native: NativeView;
  /** @internal */
  constructor(native: NativeView) {
    this.#native = native;
  }

  /** The seq it is as of. */
  get seq(): number {
    return this.#native.seq;
  }

  async #call<T>(operation: string, given: object = {}): Promise<T> {
    return JSON.parse(await settled(this.#native.call(operation, named(given)))) as T;
  }

  /** The context as data: what the model sees, or with the layer `recorded` what the host had; of the newest items `last`. */
  async context(options?: ContextOptions): Promise<shapes.Context> {
    return this.#call("context", read("View.context", options));
  }

  /** Every item, oldest first: of one file or tool, or those that a filter lets pass. */
  async history(options?: HistoryOptions): Promise<shapes.ItemRow[]> {
    return this.#call("history", read("View.history", options));
  }

  /** An item and what superseded it, oldest first. */
  async chain(item: string): Promise<shapes.Chain> {
    return this.#call("chain", { item });
  }

  /** Why an item is in the context, or is not. */
  async explain(item: string): Promise<shapes.Explained> {
    return this.#call("explain", { item });
  }

  /** Whether the model sees an item, whole. */
  async isVisible(item: string): Promise<boolean> {
    return this.#call("is_visible", { item });
  }

  /** What was recorded of an item, byte for byte. What the context shows of it plays no part. */
  async body(item: string, face: "input" | "output" = "output"): Promise<Buffer> {
    return settled(this.#native.body(text("item", item), text("face", face)));
  }

  /** Estimated tokens of the context: as shown, and whole. */
  async tokens(): Promise<[number, number]> {
    return this.#call("tokens");
  }

  /** Items whose texts hold all patterns; `lines` around each match come along. */
  async search(patterns: string | readonly string[], options?: SearchOptions): Promise<shapes.Found> {
    return this.#call("search", looked(patterns, read("View.search", options)));
  }

  /** The todo list. */
  async todos(): Promise<shapes.Todos> {
    return this.#call("todos");
  }

  /** What is to be remembered; with `all` everything that ever was, and `standing` says what holds. */
  async memory(options?: { all?: boolean }): Promise<shapes.MemoryRow[]> {
    return this.#call("memory", read("View.memory", options));
  }

  // For adapters, who pair a call with its end by place: an id names a call for a moment only.

  /** Texts that stand in for outputs that the context does not show whole, each by the seq of the event that ended its call. */
  async replaced(): Promise<Map<number, string>> {
    return new Map(await this.#call<[number, string][]>("replaced"));
  }

  /** How often the session went back to an earlier point. While it stays the same, records are only added. */
  async rewindCount(): Promise<number> {
    return this.#call("rewind_count");
  }

  /** The host's own records on the active branch, byte for byte, each with its seq; see `Entry.ofRecord` and `Entry.hostRecord`. */
  async records(options?: { after?: number }): Promise<{ seq: number; bytes: Buffer }[]> {
    const it = read("View.records", options);
    return settled(this.#native.records(count("after", it.after)));
  }

  /** Every item, oldest first, as `history` has them. */
  async *[Symbol.asyncIterator](): AsyncIterableIterator<shapes.ItemRow> {
    yield* await this.history();
  }

  /** What `console.log` shows. */
  [inspected](): string {
    return `View { seq: ${this.seq} }`;
  }

  /** The body of a request, a transcript, a page (`html`) or spans (`otlp`). */
  async export(format: shapes.ExportFormat, options?: ExportOptions): Promise<Buffer> {
    return settled(this.#native.export(named({ format, ...read("View.export", options) })));
  }
}
