/** Facts, ready to be appended. Fields are called as in the JSON lines of `acpdb append`. */

import { read } from "./options.js";
import { bytes, count, dumped, json, list, optional, optionalCount, snake, text, wrongType, type Json, type Text } from "./values.js";
import type { FileChanger, Lifespan, MemoryKind, Outcome, Role } from "./shapes.js";
import { InvalidError } from "./errors.js";

interface Piece {
  kind: "text" | "reasoning" | "media" | "opaque";
  body: Text;
  signature?: Text;
  mediaType?: string;
}

const made = Symbol("made by a factory");

/** A part of a message or of an output. */
export class Part {
  readonly #made = true;
  /** @internal */
  readonly piece: Piece;
  private constructor(key: symbol, piece: Piece) {
    if (key !== made) throw new InvalidError("a part is made by Part.text, Part.reasoning, Part.media or Part.opaque");
    this.piece = piece;
  }

  /** @internal */
  static is(value: unknown): value is Part {
    return typeof value === "object" && value !== null && #made in value;
  }

  /** A text. */
  static text(text: Text): Part {
    return new Part(made, { kind: "text", body: bytes("text", text) });
  }

  /** The model's reasoning, with the provider's signature if there is one. */
  static reasoning(text: Text, signature?: Text): Part {
    const body = bytes("text", text);
    return new Part(made, { kind: "reasoning", body, ...(signature === undefined ? {} : { signature: bytes("signature", signature) }) });
  }

  /** An image or document, as the host stored it. */
  static media(data: Text, mediaType?: string): Part {
    const type = optional("mediaType", mediaType);
    return new Part(made, { kind: "media", body: bytes("data", data), ...(type === undefined ? {} : { mediaType: type }) });
  }

  /** Something that is kept and sent, and not interpreted. */
  static opaque(data: Text): Part {
    return new Part(made, { kind: "opaque", body: bytes("data", data) });
  }
}

/** A text, bytes, a part or several. */
export type Parts = Text | Part | readonly Part[];

/** A description, and the texts that it points to. */
interface Description {
  fact: string;
  [field: string]: unknown;
}

/** One fact. Immutable; may be appended to several sessions. */
export class Entry {
  readonly #made = true;
  /** @internal */
  readonly description: Description;
  /** @internal */
  readonly texts: readonly Text[];
  private constructor(key: symbol, description: Description, texts: readonly Text[]) {
    if (key !== made) throw new InvalidError("an entry is made by Entry.message, Entry.toolStarted and the others");
    this.description = description;
    this.texts = texts;
  }

  /** @internal */
  static is(value: unknown): value is Entry {
    return typeof value === "object" && value !== null && #made in value;
  }

  /** @internal */
  static of(description: Description, texts: readonly Text[]): Entry {
    return new Entry(made, description, texts);
  }

  /** A message with a text, or with parts. */
  static message(role: Role, text_: Parts, options?: { key?: string; origin?: string }): Entry {
    const it = read("Entry.message", options);
    const made_ = new Making("message", it.origin);
    return made_.entry({ role: text("role", role), key: optional("key", it.key), parts: made_.parts("text", text_) });
  }

  /** A prompt of the user begins. */
  static prompt(key: string, options?: { origin?: string }): Entry {
    const it = read("Entry.prompt", options);
    return new Making("prompt", it.origin).entry({ key: text("key", key) });
  }

  /** A step of the model begins. Without a key each begins a new one. */
  static step(key?: string, options?: { number?: number; origin?: string }): Entry {
    const it = read("Entry.step", options);
    const number = optionalCount("number", it.number);
    return new Making("step", it.origin).entry({ key: optional("key", key), number });
  }

  /** A tool was called, with parameters as an object, or as the very JSON that the model wrote. */
  static toolStarted(call: string, tool: string, params: Json, options?: { message?: string; origin?: string }): Entry {
    const it = read("Entry.tool_started", options);
    const made_ = new Making("tool_started", it.origin);
    return made_.entry({
      call: text("call", call),
      tool: text("tool", tool),
      params: made_.put(json("params", params)),
      message: optional("message", it.message),
    });
  }

  /** A call ended: with an output, or with an error. */
  static toolFinished(
    call: string,
    output?: Parts,
    options?: { error?: Parts; outcome?: Outcome; details?: Json; origin?: string },
  ): Entry {
    const it = read("Entry.tool_finished", options);
    if (output !== undefined && it.error !== undefined) {
      throw new InvalidError("a call ends with output or error, not with both");
    }
    const made_ = new Making("tool_finished", it.origin);
    return made_.entry({
      call: text("call", call),
      output: output === undefined ? undefined : made_.parts("output", output),
      error: it.error === undefined ? undefined : made_.parts("error", it.error),
      outcome: optional("outcome", it.outcome),
      details: it.details === undefined ? undefined : made_.put(json("details", it.details)),
    });
  }

  /** The session's todo list, whole: a list of objects with `content` and `status`. */
  static todos(items: readonly Json[], options?: { origin?: string }): Entry {
    const it = read("Entry.todos", options);
    if (!Array.isArray(items)) throw wrongType("items", "a list of objects, one a todo", items);
    const made_ = new Making("todos", it.origin);
    return made_.entry({ items: made_.put(dumped("items", items)) });
  }

  /** A fact, preference, decision or note that outlives this message. */
  static memory(
    value: string,
    options?: {
      kind?: MemoryKind;
      id?: string;
      category?: string;
      key?: string;
      subject?: string;
      rationale?: string;
      alternatives?: readonly string[];
      relatedFiles?: readonly string[];
      confidence?: number;
      lifespan?: Lifespan;
      replaces?: readonly string[];
      origin?: string;
    },
  ): Entry {
    const it = read("Entry.memory", options);
    if (!Number.isFinite(it.confidence)) throw new InvalidError(`confidence is from 0 to 1, not ${it.confidence}`);
    const words = { kind: it.kind, id: it.id, category: it.category, key: it.key, subject: it.subject, rationale: it.rationale };
    for (const [name, word] of Object.entries(words)) optional(name, word);
    return new Making("memory", it.origin).entry({
      ...snake(words),
      value: text("value", value),
      alternatives: list("alternatives", it.alternatives),
      related_files: list("relatedFiles", it.relatedFiles),
      confidence: it.confidence,
      lifespan: optional("lifespan", it.lifespan),
      replaces: list("replaces", it.replaces),
    });
  }

  /** A file was changed by no call. */
  static fileChanged(path: string, options?: { by?: FileChanger; origin?: string }): Entry {
    const it = read("Entry.file_changed", options);
    return new Making("file_changed", it.origin).entry({ path: text("path", path), by: optional("by", it.by) });
  }

  /** System prompt, tools and model of what comes. */
  static request(options?: { system?: Text; tools?: Json; model?: string; params?: Json; origin?: string }): Entry {
    const it = read("Entry.request", options);
    const made_ = new Making("request", it.origin);
    return made_.entry({
      system: it.system === undefined ? undefined : made_.put(bytes("system", it.system)),
      tools: it.tools === undefined ? undefined : made_.put(json("tools", it.tools)),
      model: optional("model", it.model),
      params: it.params === undefined ? undefined : made_.put(json("params", it.params)),
    });
  }

  /** Something else of the host's, kept as it is: `record` says what it is. */
  static hostRecord(record: string, raw?: Text, options?: { about?: string; origin?: string }): Entry {
    const it = read("Entry.host_record", options);
    const made_ = new Making("host_record", it.origin);
    const kept = raw === undefined ? undefined : made_.put(bytes("raw", raw));
    return made_.entry({ record: text("record", record), raw: kept, about: optional("about", it.about) });
  }

  /** This fact, with the host's own record that it comes from: `Session.records` gives it back byte for byte. */
  ofRecord(raw: Json): Entry {
    return new Entry(made, { ...this.description, wire: this.texts.length }, [...this.texts, json("raw", raw)]);
  }

  /** This fact, at this time of the host's: microseconds since 1970. */
  atTime(micros: number): Entry {
    return new Entry(made, { ...this.description, time: count("micros", micros) }, this.texts);
  }
}

/** An entry that is being made. */
class Making {
  readonly #fact: string;
  readonly #origin: string | undefined;
  readonly #texts: Text[] = [];

  constructor(fact: string, origin: unknown) {
    this.#fact = fact;
    this.#origin = optional("origin", origin);
  }

  put(given: Text): number {
    return this.#texts.push(given) - 1;
  }

  parts(what: string, given: unknown): object[] {
    const expected = "a string, a Uint8Array or a list of Part";
    if (typeof given === "string" || given instanceof Uint8Array) return [{ kind: "text", body: this.put(bytes(what, given)) }];
    const all: unknown[] = Array.isArray(given) ? given : [given];
    return all.map((part) => {
      if (!Part.is(part)) throw wrongType(what, expected, part);
      const { kind, body, signature, mediaType } = part.piece;
      return {
        kind,
        body: this.put(body),
        signature: signature === undefined ? undefined : this.put(signature),
        media_type: mediaType,
      };
    });
  }

  entry(fields: object): Entry {
    return Entry.of({ fact: this.#fact, ...fields, origin: this.#origin }, this.#texts);
  }
}

const placed = ["params", "details", "items", "system", "tools", "raw", "wire"];
const withParts = ["parts", "output", "error"];

/** Descriptions of entries as JSON, and their texts one behind the other. */
export function described(entries: readonly unknown[]): [string, Text[]] {
  const texts: Text[] = [];
  const all = entries.map((entry) => {
    if (!Entry.is(entry)) throw wrongType(Array.isArray(entry) ? "each argument (spread a list: append(...entries))" : "what is appended", "an Entry", entry);
    const first = texts.length;
    texts.push(...entry.texts);
    return first === 0 ? entry.description : moved(entry.description, first);
  });
  return [JSON.stringify(all), texts];
}

/** The description, with its texts `by` places further on. */
function moved(description: Description, by: number): Description {
  const copy: Description = { ...description };
  for (const name of placed) {
    const place = copy[name];
    if (typeof place === "number") copy[name] = place + by;
  }
  for (const name of withParts) {
    const parts = copy[name];
    if (!Array.isArray(parts)) continue;
    copy[name] = (parts as { body: number; signature?: number }[]).map((part) => ({
      ...part,
      body: part.body + by,
      signature: part.signature === undefined ? undefined : part.signature + by,
    }));
  }
  return copy;
}
