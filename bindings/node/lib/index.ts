/**
 * acpdb: the context of AI agents as an append-only log, with the reason each thing is in or out.
 *
 * ```ts
 * await using store = await open("agent.db");
 * const session = store.session("run-1", { project: "shop" });
 * await session.append(Entry.message("user", "why is the build red?"));
 * const request = (await (await session.step()).context("anthropic")).body;
 * ```
 */

export { Entry, Part, type Parts } from "./entry.js";
export {
  AcpdbError, AmbiguousError, BusyError, ClosedError, CorruptError, ErasedError, FencedError, ForkedError, HeadMovedError, InvalidError,
  LockedError, NewerFormatError, NoSpaceError, NotAStoreError, NotFoundError, PoisonedError, ReadOnlyError, RejectedError,
  ReplacedError, StorageError, TooLargeError, UnshippedError, UntrustedFileSystemError, UpgradedError,
} from "./errors.js";
export type { Receipt } from "./native.js";
export { Session, Step, Ticket, type AtOption, type ServeOptions, type Served } from "./session.js";
export type * from "./shapes.js";
export {
  Store, Stores, Subscription, lint, open, openAll, openRemote, restore, storesIn, verify, type OpenOptions, type ReadOptions, type RemoteOptions, type SessionOptions,
} from "./store.js";
export type { Text } from "./values.js";
export { View, type ContextOptions, type ExportOptions, type HistoryOptions, type SearchOptions } from "./view.js";
