/** The engine as it was built for this platform. */

import type { Text } from "./values.js";

export interface Receipt {
  /** First seq of the commit; 0 if everything was known already. */
  readonly firstSeq: number;
  /** Last seq of the commit. */
  readonly lastSeq: number;
  /** Events recorded. */
  readonly eventCount: number;
  /** Entries that were known already and were skipped. */
  readonly knownCount: number;
  /** When the commit was recorded: microseconds since 1970. */
  readonly recordedAt: number;
  /** First item of each entry, in order; null for those that were known. */
  readonly items: readonly (string | null)[];
}

export interface NativeTicket {
  readonly lastSeq: number;
  wait(): Promise<Receipt>;
}

export interface NativeView {
  readonly seq: number;
  call(operation: string, json: string): Promise<string>;
  body(item: string, face: string): Promise<Buffer>;
  export(json: string): Promise<Buffer>;
  records(after: number): Promise<{ seq: number; bytes: Buffer }[]>;
}

export interface NativeSession {
  readonly key: string;
  readonly host: string;
  readonly stream: string;
  readonly durable: boolean;
  append(described: string, texts: Text[], head?: number): Promise<Receipt>;
  submit(described: string, texts: Text[], head?: number): Promise<NativeTicket>;
  appendLines(format: string, lines: Uint8Array, prefix: string, salt: string): Promise<number>;
  call(operation: string, json: string): Promise<string>;
  fork(key?: string, at?: string, title?: string): Promise<NativeSession>;
  giveUp(why: string): Promise<Receipt>;
  remember(described: string, texts: Text[]): Promise<string>;
  serve(json: string): Promise<{ body: Buffer; facts: string }>;
  view(at?: string): Promise<NativeView>;
}

export interface NativeSubscription {
  readonly nextSeq: number;
  look(): Promise<string | null>;
}

export interface NativeStore {
  readonly path: string;
  readonly id: string;
  readonly closed: boolean;
  close(): Promise<void>;
  closeNow(): void;
  session(options: string): NativeSession;
  call(operation: string, json: string): Promise<string>;
  remember(described: string, texts: Text[], project?: string): Promise<string>;
  export(): Promise<Buffer>;
  subscribe(after: number): NativeSubscription;
}

export interface NativeStores {
  members(): string;
  get(label: string): Promise<NativeStore>;
  release(): Promise<void>;
}

interface Native {
  openStore(options: string): Promise<NativeStore>;
  openRemote(options: string): Promise<NativeStore>;
  openStores(folders: string[], options: string): Promise<NativeStores>;
  storesIn(folder: string): Promise<string>;
  restoreBackup(options: string, folder: string): Promise<string>;
  verifyStore(path: string, deep: boolean): Promise<string>;
  lintRequest(body: Text, format: string, model?: string, previous?: Uint8Array): Promise<string>;
}

/** What the process says of itself, without the name of each socket's other end: asking for those can take minutes. */
function reported(): object | undefined {
  const report = process.report as (typeof process.report & { excludeNetwork?: boolean }) | undefined;
  if (report === undefined) return undefined;
  const before = report.excludeNetwork ?? false;
  report.excludeNetwork = true;
  try {
    return report.getReport();
  } finally {
    report.excludeNetwork = before;
  }
}

/** The name of this platform's package: `linux-x64-gnu`. */
function platform(): string {
  const { platform, arch } = process;
  if (platform === "linux") {
    const report = reported() as { header?: { glibcVersionRuntime?: string } } | undefined;
    return `linux-${arch}-${report?.header?.glibcVersionRuntime ? "gnu" : "musl"}`;
  }
  return `${platform}-${arch}`;
}

function load(): Native {
  if (process.platform === "win32") {
    throw new Error("acpdb runs on Linux and macOS; on Windows use it within WSL");
  }
  const name = `@acpdb/${platform()}`;
  let why = "";
  // The second is what `dev.sh` puts there; no package has it.
  for (const place of [name, "../acpdb.node"]) {
    try {
      return require(place) as Native;
    } catch (error) {
      why ||= error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    }
  }
  throw new Error(
    `acpdb has no engine for this platform: ${name} cannot be loaded (${why}); ` +
      "install again with optional dependencies, or build it with bindings/node/build.sh",
  );
}

export const native = load();
