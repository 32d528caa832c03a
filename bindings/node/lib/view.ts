/** Frozen views of a session. */

import { settled } from "./errors.js";
import type { NativeView } from "./native.js";
import { read } from "./options.js";
import type * as shapes from "./shapes.js";
import { count, inspected, optional, optionalCount, several, snake, text } from "./values.js";

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
export function looked(patterns: unknown, it: SearchOptions): string {
  return JSON.stringify({
    patterns: several("patterns", patterns),
    filter: text("filter", it.filter),
    regex: it.regex,
    word: it.word,
    case: it.case,
    lines: count("lines", it.lines),
    limit: count("limit", it.limit),
  });
}

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

  async #ask<T>(question: string, values: object): Promise<T> {
    return JSON.parse(await settled(this.#native.ask(question, JSON.stringify(snake(values))))) as T;
  }

  /** The context as data: what the model sees, or with the layer `recorded` what the host had; of the newest items `last`. */
  async context(options?: ContextOptions): Promise<shapes.Context> {
    const it = read("View.context", options);
    return this.#ask("context", { layer: text("layer", it.layer), last: optionalCount("last", it.last) });
  }

  /** Every item, oldest first: of one file or tool, or those that a filter lets pass. */
  async history(options?: HistoryOptions): Promise<shapes.ItemRow[]> {
    const it = read("View.history", options);
    return this.#ask("history", {
      file: optional("file", it.file),
      tool: optional("tool", it.tool),
      filter: text("filter", it.filter),
      limit: optionalCount("limit", it.limit),
    });
  }

  /** An item and what superseded it, oldest first. */
  async chain(item: string): Promise<shapes.Chain> {
    return this.#ask("chain", { item: text("item", item) });
  }

  /** Why an item is in the context, or is not. */
  async explain(item: string): Promise<shapes.Explained> {
    return this.#ask("explain", { item: text("item", item) });
  }

  /** Whether the model sees an item, whole. */
  async isVisible(item: string): Promise<boolean> {
    return this.#ask("is_visible", { item: text("item", item) });
  }

  /** What was recorded of an item, byte for byte. What the context shows of it plays no part. */
  async body(item: string, face: "input" | "output" = "output"): Promise<Buffer> {
    return settled(this.#native.body(text("item", item), text("face", face)));
  }

  /** Estimated tokens of the context: as shown, and whole. */
  async tokens(): Promise<[number, number]> {
    return this.#ask("tokens", {});
  }

  /** Items whose texts hold all patterns; `lines` around each match come along. */
  async search(patterns: string | readonly string[], options?: SearchOptions): Promise<shapes.Found> {
    const question = looked(patterns, read("View.search", options));
    return JSON.parse(await settled(this.#native.ask("search", question))) as shapes.Found;
  }

  /** The todo list. */
  async todos(): Promise<shapes.Todos> {
    return this.#ask("todos", {});
  }

  /** What is to be remembered; with `all` everything that ever was, and `standing` says what holds. */
  async memory(options?: { all?: boolean }): Promise<shapes.MemoryRow[]> {
    return this.#ask("memory", read("View.memory", options));
  }

  // For adapters, who pair a call with its end by place: an id names a call for a moment only.

  /** Texts that stand in for outputs that the context does not show whole, each by the seq of the event that ended its call. */
  async replaced(): Promise<Map<number, string>> {
    return new Map(await this.#ask<[number, string][]>("replaced", {}));
  }

  /** How often the session went back to an earlier point. While it stays the same, records are only added. */
  async rewindCount(): Promise<number> {
    return this.#ask("rewind_count", {});
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
    const it = read("View.export", options);
    const exporting = { format: text("format", format), ...it, model: optional("model", it.model) };
    return settled(this.#native.export(JSON.stringify(snake(exporting))));
  }
}
