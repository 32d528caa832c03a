/**
 * Options of all operations and their defaults. A test compares this table with `surface.toml`; option names that it does not
 * have are refused, so that a misspelt one is not passed over.
 */

import { InvalidError } from "./errors.js";
import { wrongType } from "./values.js";

const none = undefined;
const looked = { filter: "", regex: false, word: false, case: false, lines: 0, limit: 1000 };
const exported = { selection: "current", model: none, syntheticResults: false, serverSide: false };
const at = { at: none };
const key = { keyFile: none, passphrase: none };
const erasing = { reason: "", by: "host" };

export const defaults = {
  open: {
    readOnly: false, create: true, durability: "sync", lockWait: 5.0, index: true, redact: false, anyFileSystem: false,
    ...key,
  },
  open_remote: { owner: "acpdb", create: true, lockWait: 5.0, index: true, redact: false, anyFileSystem: false, ...key },
  open_all: { anyFileSystem: false, ...key },
  restore: { anyFileSystem: false, ...key },
  verify: { deep: false },
  lint: { model: none, previous: none },
  "Entry.message": { key: none, origin: none },
  "Entry.prompt": { origin: none },
  "Entry.step": { number: none, origin: none },
  "Entry.tool_started": { message: none, origin: none },
  "Entry.tool_finished": { error: none, outcome: none, details: none, origin: none },
  "Entry.todos": { origin: none },
  "Entry.memory": {
    kind: "fact", id: "", category: "", key: none, subject: none, rationale: none, alternatives: [], relatedFiles: [],
    confidence: 0.8, lifespan: none, replaces: [], origin: none,
  },
  "Entry.file_changed": { by: none, origin: none },
  "Entry.request": { system: none, tools: none, model: none, params: none, origin: none },
  "Entry.host_record": { about: none, origin: none },
  "Session.append_lines": { prefix: "", salt: none },
  "Session.context": { format: none, at: none, layer: "current", last: none, model: none },
  "Session.history": { ...at, file: none, tool: none, filter: "", limit: none },
  "Session.chain": at,
  "Session.explain": at,
  "Session.search": { ...at, ...looked },
  "Session.todos": at,
  "Session.memory": { ...at, all: false },
  "Session.records": { ...at, after: 0 },
  "Session.export": { ...at, ...exported },
  "Session.restore": { pin: false },
  "Session.fork": { ...at, title: none },
  "Session.retract": { reason: none },
  "Session.supersede": { reason: none },
  "Step.context": {
    model: none, mode: none, tokensMax: none, cold: false, prefixTokens: 0, inject: false, breakpoints: false,
  },
  "Store.session": {
    host: "acpdb", project: none, cwd: none, title: none, parent: none, parentCall: none,
  },
  "Store.search": looked,
  "Store.subscribe": { timeout: none },
  "Store.memory": { project: none, at: none, all: false },
  "Store.memory_head": { project: none },
  "Store.remember": { project: none },
  "Store.retract": { project: none, reason: none },
  "Store.reinforce": { project: none },
  "Store.simulate": { session: none, policies: [], modes: [], price: "anthropic" },
  "Store.set_policy": { reason: none },
  "Store.verify": { deep: false },
  "Store.erase": { ...erasing, dryRun: false },
  "Store.erase_records": erasing,
  "Store.seal": { active: false },
  "Stores.search": looked,
  "View.context": { layer: "current", last: none },
  "View.history": { file: none, tool: none, filter: "", limit: none },
  "View.search": looked,
  "View.memory": { all: false },
  "View.records": { after: 0 },
  "View.export": exported,
} as const satisfies Record<string, Record<string, unknown>>;

type Operation = keyof typeof defaults;

/** The options of a call: as given, else by default. */
export function read<T extends object>(operation: Operation, given: T | undefined): T {
  const known: Record<string, unknown> = defaults[operation];
  if (given === undefined) return { ...known } as T;
  if (typeof given !== "object" || given === null || Array.isArray(given)) throw wrongType("options", "an object", given);
  const all: Record<string, unknown> = { ...known };
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(known, name)) {
      throw new InvalidError(`there is no option ${JSON.stringify(name)}; there are ${Object.keys(known).join(", ")}`);
    }
    if (value === undefined || value === null) continue;
    const usual = known[name];
    if (usual !== undefined && (typeof value !== typeof usual || Array.isArray(value) !== Array.isArray(usual))) {
      throw wrongType(name, Array.isArray(usual) ? "a list" : `a ${typeof usual}`, value);
    }
    all[name] = value;
  }
  return all as T;
}
