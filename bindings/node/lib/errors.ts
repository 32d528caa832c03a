/** What can go wrong, by what a caller can do about it. */

/** Any error of acpdb. `code` stays the same while texts may improve. A value of the wrong type is a `TypeError`. */
export class AcpdbError extends Error {
  static readonly code: string = "error";
  readonly code: string;
  constructor(text: string) {
    super(text);
    this.code = new.target.code;
    this.name = new.target.name;
  }
}

/** A value cannot be used; the text says what to give instead. */
export class InvalidError extends AcpdbError {
  static override readonly code = "invalid";
}
/** The handle was closed, or used up. Open the store again. */
export class ClosedError extends AcpdbError {
  static override readonly code = "closed";
}
/** Another process held the write lock for longer than this handle waits. Try again. */
export class BusyError extends AcpdbError {
  static override readonly code = "busy";
}
/** Another writer was first, and nothing was recorded. Read again and retry. */
export class HeadMovedError extends AcpdbError {
  static override readonly code = "head_moved";
}
/** A command was refused, and nothing was recorded; the text says what to change. */
export class RejectedError extends AcpdbError {
  static override readonly code = "rejected";
}
/** There is no such thing. */
export class NotFoundError extends AcpdbError {
  static override readonly code = "not_found";
}
/** Several things go by that name. Give more of it, or the seq. */
export class AmbiguousError extends AcpdbError {
  static override readonly code = "ambiguous";
}
/** The commit is over a limit. Split it. */
export class TooLargeError extends AcpdbError {
  static override readonly code = "too_large";
}
/** The disk is full, and nothing was recorded. Free some space and retry. */
export class NoSpaceError extends AcpdbError {
  static override readonly code = "no_space";
}
/** The store was opened for reading, or cannot be written. */
export class ReadOnlyError extends AcpdbError {
  static override readonly code = "read_only";
}
/** An earlier write could not be made durable. Open the store again to append; reads go on. */
export class PoisonedError extends AcpdbError {
  static override readonly code = "poisoned";
}
/** A file of the store was replaced while it was open. Open it again. */
export class ReplacedError extends AcpdbError {
  static override readonly code = "replaced";
}
/** The handle was made by the parent of this process. Open the store again in this one. */
export class ForkedError extends AcpdbError {
  static override readonly code = "forked";
}
/** A key is needed and cannot be had: none was given, it is another one, or its file is lost. */
export class LockedError extends AcpdbError {
  static override readonly code = "locked";
}
/** Another worker took the store over. What was not acknowledged may be kept or not. Open the store again to take it back. */
export class FencedError extends AcpdbError {
  static override readonly code = "fenced";
}
/** Recorded here, and not known to be at the remote. The next commit that is acknowledged brings it there, too. */
export class UnshippedError extends AcpdbError {
  static override readonly code = "unshipped";
}
/** The folder is on a file system whose locks and syncs cannot be relied on. Use a local disk. */
export class UntrustedFileSystemError extends AcpdbError {
  static override readonly code = "untrusted_file_system";
}
/** There is no store in this folder. */
export class NotAStoreError extends AcpdbError {
  static override readonly code = "not_a_store";
}
/** The store was written by a newer acpdb. Update this one. */
export class NewerFormatError extends AcpdbError {
  static override readonly code = "newer_format";
}
/** A newer acpdb upgraded the store while this handle was open. Open it again. */
export class UpgradedError extends AcpdbError {
  static override readonly code = "upgraded";
}
/** Recorded bytes are damaged; the rest stays readable. `Store.verify` says what is affected. */
export class CorruptError extends AcpdbError {
  static override readonly code = "corrupt";
}
/** The bytes were erased; their digest and the record of the erasure stay. */
export class ErasedError extends AcpdbError {
  static override readonly code = "erased";
}
/** The file system refused. */
export class StorageError extends AcpdbError {
  static override readonly code = "storage";
}

const classes: Record<string, typeof AcpdbError> = Object.fromEntries(
  [
    AmbiguousError, BusyError, ClosedError, CorruptError, ErasedError, FencedError, ForkedError, HeadMovedError, InvalidError,
    LockedError, NewerFormatError, NoSpaceError, NotAStoreError, NotFoundError, PoisonedError, ReadOnlyError, RejectedError,
    ReplacedError, StorageError, TooLargeError, UnshippedError, UntrustedFileSystemError, UpgradedError,
  ].map((each) => [each.code, each]),
);

/** The error of this package that an error of the engine is. */
export function lifted(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  let told: { code?: unknown; text?: unknown };
  try {
    told = JSON.parse(error.message) as typeof told;
  } catch {
    return error;
  }
  if (typeof told?.code !== "string" || typeof told.text !== "string") return error;
  // The engine names an argument as the list does: `tokens_max`.
  const text = told.text.replace(/^[a-z]+(_[a-z]+)+(?= is )/, (name) => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()));
  if (told.code === "type") return Object.assign(new TypeError(text), { code: "ERR_INVALID_ARG_TYPE" });
  return new (classes[told.code] ?? AcpdbError)(text);
}

/** What the engine gives, or an error of this package. */
export async function settled<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw lifted(error);
  }
}

/** As `settled`, of a call that gives its value at once. */
export function done<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw lifted(error);
  }
}
