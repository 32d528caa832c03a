/**
 * What changed between values: copies from values that are known, and bytes that are new.
 *
 * A list that grew by an element is its head, a copy of all that stood before, and the new element. Nothing is known of the form of the
 * bytes: the copy is found by comparing.
 */

/** Takes so many of the new bytes; or copies from a source: its number, from where, how many. */
export type Step = number | [source: number, begin: number, length: number];

/** Shorter copies cost more than they save. */
const COPY_BYTES_MIN = 24;
/** How often a beginning of a copy is looked for in vain, until the rest is taken for new. */
const MISSES_MAX = 64;

/** Steps that make a value from sources, the likeliest first; and the bytes that are new. */
export function changes(made: Uint8Array, sources: readonly Uint8Array[]): { steps: Step[]; fresh: Buffer } {
  const value = view(made);
  const known = sources.map(view);
  const steps: Step[] = [];
  const fresh: Buffer[] = [];
  const [first] = known;
  let tail = first === undefined ? 0 : sameEnd(first, value);
  if (tail < COPY_BYTES_MIN) tail = 0;
  const end = value.length - tail;
  const take = (begin: number, until: number): void => {
    if (until <= begin) return;
    steps.push(until - begin);
    fresh.push(value.subarray(begin, until));
  };
  let hint: [number, number] | undefined = [0, 0];
  let [taken, at, stride, misses] = [0, 0, 1, 0];
  while (at + COPY_BYTES_MIN <= end && misses < MISSES_MAX && known.length > 0) {
    const found = copyAt(value, at, end, known, hint);
    if (found === undefined) {
      [misses, hint, at, stride] = [misses + 1, undefined, at + stride, Math.min(2 * stride, COPY_BYTES_MIN)];
      continue;
    }
    let [source, begin, length] = found;
    // The search went on in strides, so that the copy may begin earlier.
    while (at > taken && begin > 0 && value[at - 1] === known[source]?.[begin - 1]) {
      [at, begin, length] = [at - 1, begin - 1, length + 1];
    }
    take(taken, at);
    steps.push([source, begin, length]);
    at += length;
    [taken, hint, stride] = [at, [source, begin + length], 1];
  }
  take(taken, end);
  if (first !== undefined && tail > 0) steps.push([0, first.length - tail, tail]);
  return { steps, fresh: Buffer.concat(fresh) };
}

/** The value that steps make, and how many of the new bytes they took. */
export function applied(steps: readonly Step[], fresh: Uint8Array, sources: readonly Uint8Array[]): { value: Uint8Array; taken: number } {
  let taken = 0;
  const parts = steps.map((step) => {
    if (typeof step === "number") {
      taken += step;
      return fresh.subarray(taken - step, taken);
    }
    const [source, begin, length] = step;
    return (sources[source] ?? new Uint8Array()).subarray(begin, begin + length);
  });
  return { value: new Uint8Array(Buffer.concat(parts)), taken };
}

const view = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);

function copyAt(
  value: Buffer,
  at: number,
  end: number,
  known: readonly Buffer[],
  hint: [number, number] | undefined,
): [number, number, number] | undefined {
  const likely = hint === undefined ? undefined : known[hint[0]];
  if (likely !== undefined && hint !== undefined) {
    const length = same(likely, hint[1], value, at, end);
    if (length >= COPY_BYTES_MIN) return [hint[0], hint[1], length];
  }
  const window = value.subarray(at, at + COPY_BYTES_MIN);
  for (const [source, bytes] of known.entries()) {
    const begin = bytes.indexOf(window);
    if (begin >= 0) return [source, begin, same(bytes, begin, value, at, end)];
  }
  return undefined;
}

/** How many bytes are the same from two places on. */
function same(one: Buffer, i: number, other: Buffer, j: number, end: number): number {
  const most = Math.min(one.length - i, end - j);
  let count = 0;
  while (count < most && one[i + count] === other[j + count]) count += 1;
  return count;
}

/** How many bytes are the same at both ends, but not all of either. */
function sameEnd(one: Buffer, other: Buffer): number {
  const most = Math.min(one.length, other.length) - 1;
  let count = 0;
  while (count < most && one[one.length - 1 - count] === other[other.length - 1 - count]) count += 1;
  return count;
}
