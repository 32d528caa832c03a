/**
 * Records of a framework on the active branch of a session: what all adapters share.
 *
 * An id that a framework gives to a call names it for a moment only: models use ids again, in the next answer, in the next run, or
 * twice in one answer. So a call is known by its place. The log pairs the n-th call of an id with its n-th end, and what stands in
 * for an output is asked for by the event that ended the call.
 */

import { Entry, HeadMovedError, NotFoundError, type Receipt, type Session, type View } from "../index.js";

/** A record, and its seq. */
export interface Known<T> {
  readonly seq: number;
  readonly value: T;
}

/** What a record says of calls; anything but a call and an end ends an answer of the model. */
export type Use = readonly [kind: "call" | "end" | "turn", id: string];

/** A record as it is kept. What JSON has no form for becomes a text, or null. */
export function dumped(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => (typeof inner === "bigint" ? String(inner) : inner)) ?? "null";
}

/** A text whose characters are whole: halves of surrogate pairs are replaced. The record beside it has them. */
export const whole = (said: string): string => said.toWellFormed();

/** The text of a content: of its parts that have one, in order. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) {
    const parts = content.map((part: unknown) => (typeof part === "string" ? part : (part as { text?: unknown } | null)?.text));
    return parts.filter((part) => typeof part === "string" && part !== "").join("\n");
  }
  return content === undefined || content === null ? "" : dumped(content);
}

/** A value with the names of each object in order. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, one]) => [name, sorted(one)]));
}

// Facts. None of them is refused for a text of the framework.

/** A record that says nothing to the context. */
export function kept(record: object, what: string): Entry {
  return Entry.hostRecord(whole(what)).ofRecord(dumped(record));
}

/** A message. */
export function said(role: "system" | "user" | "assistant", content: unknown): Entry {
  return Entry.message(role, whole(textOf(content)));
}

/** A call begins. Parameters are as the model wrote them; what is no JSON is a text in an object. */
export function started(name: string, tool: unknown, given: unknown): Entry {
  return Entry.toolStarted(name, whole(String(tool || "tool")), params(given));
}

/** A call ends. */
export function ended(name: string, output: unknown, failed = false): Entry {
  const shown = whole(textOf(output));
  return failed ? Entry.toolFinished(name, undefined, { error: shown }) : Entry.toolFinished(name, shown);
}

function params(given: unknown): string {
  if (typeof given !== "string") return dumped(given ?? {});
  try {
    JSON.parse(given);
    return given.isWellFormed() ? given : dumped({ arguments: given });
  } catch {
    return dumped({ arguments: given });
  }
}

/**
 * Appends what is decided of the session as it was read: the seq of that view, and the facts. If another writer came between, it is read
 * and decided again. Undefined if there is nothing to append.
 */
export async function decided(
  session: Session,
  decide: () => Promise<{ head: number; entries: readonly Entry[] }>,
): Promise<Receipt | undefined> {
  for (;;) {
    const { head, entries } = await decide();
    if (entries.length === 0) return undefined;
    try {
      return await session.appendExpecting(head, ...entries);
    } catch (error) {
      if (!(error instanceof HeadMovedError)) throw error;
    }
  }
}

/** Names of calls in the log: ids of the framework, as long as these tell open calls apart. */
export class Calls {
  readonly #open = new Map<string, { answer: number; name: string }[]>();
  readonly #taken = new Set<string>();
  #answer = 0;
  #isAnswering = false;

  copy(): Calls {
    const made = new Calls();
    for (const [id, waiting] of this.#open) made.#open.set(id, [...waiting]);
    for (const name of this.#taken) made.#taken.add(name);
    [made.#answer, made.#isAnswering] = [this.#answer, this.#isAnswering];
    return made;
  }

  /** The name of a call that begins or ends. */
  name([kind, id]: Use): string {
    if (kind === "call") return this.#begin(id);
    this.#isAnswering = false;
    return kind === "end" ? this.#end(id) : "";
  }

  #begin(id: string): string {
    if (!this.#isAnswering) this.#answer += 1;
    this.#isAnswering = true;
    const base = whole(id) || "call";
    let name = base;
    for (let number = 2; this.#taken.has(name); number += 1) name = `${base}~${number}`;
    this.#taken.add(name);
    const waiting = this.#open.get(id) ?? [];
    waiting.push({ answer: this.#answer, name });
    this.#open.set(id, waiting);
    return name;
  }

  /** Of the newest answer that left calls of this id open, the first. */
  #end(id: string): string {
    const waiting = this.#open.get(id) ?? [];
    const newest = waiting.at(-1);
    if (newest === undefined) return whole(id) || "call";
    const [ended] = waiting.splice(waiting.findIndex(({ answer }) => answer === newest.answer), 1);
    const { name } = ended ?? newest;
    this.#taken.delete(name);
    return name;
  }
}

/** The records on the active branch of a session, read as far as they are new, and the names of their calls. */
export class History<T> {
  readonly session: Session;
  /** How often everything was read anew, since the session went back to an earlier point. */
  restarts = 0;
  readonly #uses: (record: T) => readonly Use[];
  readonly #turns = new Turns();
  #known: Known<T>[] = [];
  #calls = new Calls();
  #rewinds = 0;
  #last = 0;

  constructor(session: Session, uses: (record: T) => readonly Use[]) {
    this.session = session;
    this.#uses = uses;
  }

  /** The records, oldest first, each with its seq; and the view that has them, if the session is there. */
  async read(): Promise<{ known: readonly Known<T>[]; view: View | undefined }> {
    return this.#turns.take(async () => {
      let view: View;
      try {
        view = await this.session.view();
      } catch (error) {
        if (error instanceof NotFoundError) return { known: [], view: undefined };
        throw error;
      }
      const rewinds = await view.rewindCount();
      if (rewinds !== this.#rewinds) {
        [this.#known, this.#calls, this.#last, this.#rewinds] = [[], new Calls(), 0, rewinds];
        this.restarts += 1;
      }
      for (const { seq, bytes } of await view.records({ after: this.#last })) {
        const value = JSON.parse(bytes.toString()) as T;
        this.#known.push({ seq, value });
        this.#name(this.#calls, value);
      }
      this.#last = Math.max(this.#last, view.seq);
      return { known: [...this.#known], view };
    });
  }

  /** Facts of records that are to be appended. `make` is given the names of the calls that begin and end in each. */
  async entries(records: readonly T[], make: (record: T, names: readonly string[], place: number) => Entry[]): Promise<Entry[]> {
    await this.read();
    const calls = this.#calls.copy();
    return records.flatMap((record, place) => make(record, this.#name(calls, record), place));
  }

  #name(calls: Calls, record: T): string[] {
    const names = this.#uses(record).map((use) => [use[0], calls.name(use)] as const);
    return names.filter(([kind]) => kind !== "turn").map(([, name]) => name);
  }

  /** Goes back to before the first record. What was there stays in the log. */
  async clear(): Promise<void> {
    const [first] = (await this.read()).known;
    if (first !== undefined) await this.session.rewind(first.seq - 1);
  }
}

/** The records, oldest first; nothing for a session that is not there yet. */
export async function load<T>(session: Session, after = 0): Promise<Known<T>[]> {
  try {
    const records = await session.records({ after });
    return records.map(({ seq, bytes }) => ({ seq, value: JSON.parse(bytes.toString()) as T }));
  } catch (error) {
    if (error instanceof NotFoundError) return [];
    throw error;
  }
}

/** Goes back to before the first record. What was there stays in the log. */
export async function clear(session: Session): Promise<void> {
  const [first] = await load(session);
  if (first !== undefined) await session.rewind(first.seq - 1);
}

/** Runs works one after the other. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  take<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work, work);
    this.#last = mine.catch(() => undefined);
    return mine;
  }
}
