/** Values across the border: what a text, a number, JSON or a point in time may be. */

import { InvalidError } from "./errors.js";

/** A point in time: a seq, a text such as `"t3"`, `"-2t"`, `"@compact"` or `"2 hours ago"`, or a Date. */
export type At = number | bigint | string | Date;
/** A text, or bytes as they are. */
export type Text = string | Uint8Array;
/** All that JSON can say. */
export type Json = any;

/** The name of the method that `console.log` asks. */
export const inspected = Symbol.for("nodejs.util.inspect.custom");

/** A `TypeError` that says what was expected and what was given. */
export function wrongType(what: string, expected: string, found: unknown): TypeError {
  const given = found === null ? "null" : typeof found === "object" ? (found.constructor?.name ?? "an object") : typeof found;
  return Object.assign(new TypeError(`${what} is ${expected}, not ${given}`), { code: "ERR_INVALID_ARG_TYPE" });
}

const half = (what: string): InvalidError =>
  new InvalidError(
    `${what} holds half of a surrogate pair, which is no character; replace it with text.toWellFormed(), ` +
      "or give bytes where bytes are taken",
  );

/** A text whose characters are whole. */
export function text(what: string, value: unknown): string {
  if (typeof value !== "string") throw wrongType(what, "a string", value);
  if (!value.isWellFormed()) throw half(what);
  return value;
}

export function optional(what: string, value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : text(what, value);
}

export function list(what: string, values: unknown): string[] {
  if (!Array.isArray(values)) throw wrongType(what, "a list of strings", values);
  return values.map((value) => text(what, value));
}

/** One text or several. */
export function several(what: string, values: unknown): string[] {
  return typeof values === "string" ? [text(what, values)] : list(what, values);
}

/** A text or bytes. */
export function bytes(what: string, value: unknown): Text {
  if (value instanceof Uint8Array) return value;
  if (typeof value === "string") return text(what, value);
  throw wrongType(what, "a string or a Uint8Array", value);
}

/** A whole number from 0 that a seq or a count can be. */
export function count(what: string, value: unknown): number {
  if (typeof value === "bigint" && value >= 0n && value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
  if (typeof value === "bigint") throw new InvalidError(`${what} is a whole number from 0 to 2^53, not ${value}`);
  if (typeof value !== "number") throw wrongType(what, "a number", value);
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new InvalidError(`${what} is a whole number from 0 to 2^53, not ${value}`);
  }
  return value;
}

export function optionalCount(what: string, value: unknown): number | undefined {
  return value === undefined || value === null ? undefined : count(what, value);
}

/** Seconds from 0. */
export function duration(what: string, value: unknown): number {
  if (typeof value !== "number") throw wrongType(what, "a number of seconds", value);
  if (!(value >= 0) || value > 1e9) throw new InvalidError(`${what} is 0 seconds or more, and at most 10^9, not ${value}`);
  return value;
}

/** A value as compact JSON; a text or bytes are JSON already. */
export function json(what: string, value: unknown): Text {
  return typeof value === "string" || value instanceof Uint8Array ? bytes(what, value) : dumped(what, value);
}

/** Any value as compact JSON. Values that JSON would change without a word are refused. */
export function dumped(what: string, value: unknown): string {
  const checked = (key: string, inner: unknown): unknown => {
    if (typeof inner === "number" && !Number.isFinite(inner)) {
      throw new InvalidError(`${what} has no form in JSON: ${key || "it"} is ${inner}; give a number, or null`);
    }
    if (typeof inner === "bigint") {
      throw new InvalidError(`${what} has no form in JSON: ${key || "it"} is a BigInt; give a number, or a string of its digits`);
    }
    if (inner instanceof Map || inner instanceof Set) {
      const [kind, give] = inner instanceof Map ? ["Map", "Object.fromEntries(map)"] : ["Set", "a list"];
      throw new InvalidError(`${what} has no form in JSON: ${key || "it"} is a ${kind}; give ${give}`);
    }
    if (typeof inner === "function" || typeof inner === "symbol") {
      throw new InvalidError(`${what} has no form in JSON: ${key || "it"} is a ${typeof inner}; leave it out`);
    }
    if (!key.isWellFormed() || (typeof inner === "string" && !inner.isWellFormed())) throw half(what);
    return inner;
  };
  let made: string | undefined;
  try {
    made = JSON.stringify(value, checked);
  } catch (error) {
    if (error instanceof InvalidError) throw error;
    const why = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    throw new InvalidError(`${what} has no form in JSON: ${why}`);
  }
  if (made === undefined) throw wrongType(what, "a value that JSON has a form for", value);
  return made;
}

/** A point in time as the command line spells it. */
export function point(at: unknown): string | undefined {
  if (at === undefined || at === null) return undefined;
  if (typeof at === "string") return text("at", at);
  if (typeof at === "number" || typeof at === "bigint") {
    if ((typeof at === "number" && !Number.isSafeInteger(at)) || at < 1 || at > 18446744073709551615n) {
      throw new InvalidError(`at: a seq is a whole number from 1 to 18446744073709551615, not ${at}`);
    }
    return `#${at}`;
  }
  if (at instanceof Date) {
    if (Number.isNaN(at.getTime())) throw new InvalidError("at is a Date that is no time; give a valid one");
    return at.toISOString();
  }
  throw wrongType("at", "a seq, a text such as 't3', or a Date", at);
}

/** Names and values for the engine: `relatedFiles` becomes `related_files`; what is undefined is left out. */
export function snake(values: object): Record<string, unknown> {
  const entries = Object.entries(values).map(([name, value]) => [spelled(name), value]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}

/** The arguments of an operation as JSON. */
export function named(given: object): string {
  return dumped("an argument", snake(given));
}

/** The name as `surface.toml` spells it. */
export function spelled(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
