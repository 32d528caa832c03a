/** Records of a framework on the active branch of a session: what all adapters share. */

import { Entry, NotFoundError, type Session } from "../index.js";

/** A record, and its seq. */
export interface Known<T> {
  readonly seq: number;
  readonly value: T;
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

/** What the context shows of outputs that it does not show whole, by the id of their call. */
export async function prunedOutputs(session: Session): Promise<Map<string, string>> {
  const shown = new Map<string, string>();
  for (const item of (await session.context()).items) {
    const { call, output } = item;
    if (call !== null && output !== null && output.state !== "whole" && output.text) shown.set(call, output.text);
  }
  return shown;
}

/** A record that says nothing to the context. */
export function kept(record: object, what: string): Entry {
  return Entry.hostRecord(what).ofRecord(record);
}

/** The text of a content: of its parts that have one, in order. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) {
    const parts = content.map((part: unknown) => (typeof part === "string" ? part : (part as { text?: unknown } | null)?.text));
    return parts.filter((part) => typeof part === "string" && part !== "").join("\n");
  }
  return content === undefined || content === null ? "" : JSON.stringify(content);
}

/** Parameters as the model wrote them; what is no JSON as a text in an object. */
export function params(given: unknown): unknown {
  if (typeof given !== "string") return given ?? {};
  try {
    JSON.parse(given);
    return given;
  } catch {
    return { arguments: given };
  }
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
