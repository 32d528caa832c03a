/**
 * Claude Agent SDK: a `SessionStore` over acpdb.
 *
 * ```ts
 * query({ prompt, options: { sessionStore: new AcpdbSessionStore(store) } });
 * ```
 *
 * Transcripts are read as they come: messages, calls, results and todo lists become facts, so that everything of acpdb works on
 * them; `load` gives the lines back as they were. Deleting a session leaves its branch: the bytes stay in the log until they are
 * erased.
 */

import { foldSessionSummary } from "@anthropic-ai/claude-agent-sdk";
import type { SessionKey, SessionStore, SessionStoreEntry, SessionSummaryEntry } from "@anthropic-ai/claude-agent-sdk";

import type { Session, Store, StreamName } from "../index.js";
import { Turns, clear, kept, load, type Known } from "./records.mjs";

const HOST = "claude-code";
/** A record of our own: a session that was deleted begins anew, and what was known before is new again. */
const BEGUN = "acpdb_begun";

/** The name of a session: project, session and subpath, each quoted. */
function named(key: SessionKey): string {
  const parts = [key.projectKey, key.sessionId, ...(key.subpath ? [key.subpath] : [])];
  return parts.map((part) => encodeURIComponent(part)).join("/");
}

const whole = (key: { projectKey: string; sessionId: string }): SessionKey => ({
  projectKey: key.projectKey,
  sessionId: key.sessionId,
});

/** Sessions of the Claude Agent SDK in an acpdb store. */
export class AcpdbSessionStore implements SessionStore {
  readonly #store: Store;
  readonly #turns = new Turns();
  readonly #prefixes = new Map<string, string>();
  readonly #summaries = new Map<string, { last: number; summary: SessionSummaryEntry | undefined }>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** The session behind a key, to look into with all that acpdb has. */
  session(key: SessionKey): Session {
    const parent = key.subpath ? { parent: named(whole(key)) } : {};
    return this.#store.session(named(key), { host: HOST, project: key.projectKey, ...parent });
  }

  async append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    if (entries.length === 0) return;
    const lines = Buffer.from(entries.map((entry) => JSON.stringify(entry)).join("\n"));
    await this.#turns.take(async () => {
      const session = this.session(key);
      const name = named(key);
      const prefix = this.#prefixes.get(name) ?? (await this.#prefix(session));
      this.#prefixes.set(name, prefix);
      await session.appendLines(HOST, lines, { prefix });
    });
  }

  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    const entries = await this.#entries(key);
    return entries.length === 0 ? null : entries.map(({ value }) => value);
  }

  async listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]> {
    return (await this.#sessions(projectKey)).map(({ sessionId, mtime }) => ({ sessionId, mtime }));
  }

  async listSessionSummaries(projectKey: string): Promise<SessionSummaryEntry[]> {
    return this.#turns.take(async () => {
      const summaries: SessionSummaryEntry[] = [];
      for (const { sessionId, mtime } of await this.#sessions(projectKey)) {
        const key = { projectKey, sessionId };
        const known = this.#summaries.get(named(key)) ?? { last: 0, summary: undefined };
        const fresh = await this.#entries(key, known.last);
        const newest = fresh.at(-1);
        if (newest !== undefined) {
          known.summary = foldSessionSummary(known.summary, key, fresh.map(({ value }) => value), { mtime });
          known.last = newest.seq;
          this.#summaries.set(named(key), known);
        }
        if (known.summary !== undefined) summaries.push({ ...known.summary, mtime });
      }
      return summaries;
    });
  }

  async delete(key: SessionKey): Promise<void> {
    const subpaths = key.subpath ? [] : await this.listSubkeys(key);
    for (const one of [key, ...subpaths.map((subpath) => ({ ...whole(key), subpath }))]) {
      await this.#turns.take(async () => {
        await clear(this.session(one));
        this.#prefixes.delete(named(one));
        this.#summaries.delete(named(one));
      });
    }
  }

  async listSubkeys(key: { projectKey: string; sessionId: string }): Promise<string[]> {
    const beginning = `${named(whole(key))}/`;
    const found: string[] = [];
    for (const name of await this.#names()) {
      if (!name.id.startsWith(beginning)) continue;
      const subpath = decodeURIComponent(name.id.slice(beginning.length));
      if ((await this.#entries({ ...whole(key), subpath })).length > 0) found.push(subpath);
    }
    return found;
  }

  /** What makes facts of this life of a session differ from those of an earlier one that was deleted. */
  async #prefix(session: Session): Promise<string> {
    const [first] = await load<Record<string, unknown>>(session);
    if (first !== undefined) return typeof first.value[BEGUN] === "string" ? first.value[BEGUN] : "";
    if ((await this.#names()).every((name) => name.id !== session.key)) return "";
    const prefix = `after-${await this.#store.head()}:`;
    await session.append(kept({ [BEGUN]: prefix }, "begun"));
    return prefix;
  }

  async #entries(key: SessionKey, after = 0): Promise<Known<SessionStoreEntry>[]> {
    const known = await load<SessionStoreEntry>(this.session(key), after);
    return known.filter(({ value }) => !(BEGUN in value));
  }

  async #names(): Promise<StreamName[]> {
    return (await this.#store.names()).filter((name) => name.host === HOST);
  }

  /** Sessions of a project that hold anything: their ids, and when their heads were recorded in milliseconds. */
  async #sessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]> {
    const found = [];
    for (const name of await this.#names()) {
      const [project, id, ...more] = name.id.split("/").map((part) => decodeURIComponent(part));
      if (project !== projectKey || id === undefined || more.length > 0) continue;
      const event = await this.#store.event(name.head);
      if (event === null || (await this.#entries({ projectKey, sessionId: id })).length === 0) continue;
      found.push({ sessionId: id, mtime: Math.floor(event.recorded_at / 1000) });
    }
    return found;
  }
}
