/**
 * Conversations that a framework tells whole with each request: what of them is new, and what stands in for old outputs.
 *
 * ```text
 * told     [prompt, call, output, call, output]       a list that grows, begins anew, or lost its beginning
 * known     prompt  call  output                      marks in the log, one for each unit
 * new                            call  output         recorded, each once
 * ```
 *
 * A unit is known by its place: a list that continues the one before is known as far as that went. Where it does not, the longest
 * common order of both says what is known. The prompt of a new run is new, whatever it says.
 */

import { createHash } from "node:crypto";

import { Entry, type Session } from "../index.js";
import { Calls, History, Turns, dumped, type Use } from "./records.mjs";

/** Sessions that are held in memory. */
const HELD_MAX = 256;

/** A prompt, a text of the model, a call, or the end of a call. */
export interface Unit {
  readonly kind: "system" | "user" | "assistant" | "call" | "end" | "other";
  /** The fact, given the name of its call. */
  readonly make: (call: string) => Entry;
  /** What tells it from others. Of an end it is nothing: its call does, and its output may have been replaced. */
  readonly says?: unknown;
  /** The framework's id of a call. */
  readonly id?: string;
  /** The first of an answer of the model: a step begins. */
  readonly begins?: boolean;
}

/** What the log keeps of a unit, to know it again. */
interface Mark {
  readonly unit?: Unit["kind"];
  readonly id?: string;
  readonly is?: string;
}

function markOf({ kind, id = "", says }: Unit): Mark {
  const named = kind === "call" || kind === "end" ? { id } : {};
  if (kind === "end") return { unit: kind, ...named };
  const is = createHash("sha256").update(dumped([says, id])).digest("hex").slice(0, 24);
  return { unit: kind, ...named, is };
}

/** What a mark says of calls. A record of somebody else says nothing. */
function usesOf({ unit, id = "" }: Mark): readonly Use[] {
  if (unit === "call" || unit === "end") return [[unit, id]];
  return unit === "user" ? [["turn", ""]] : [];
}

const same = (one: Mark | undefined, other: Mark | undefined): boolean =>
  one?.unit === other?.unit && one?.id === other?.id && one?.is === other?.is;

/** What was told of one session. */
export class Told {
  readonly #session: Session;
  readonly #history: History<Mark>;
  readonly #turns = new Turns();
  #restarts = 0;
  #before: readonly Mark[] | undefined;
  /** The list was answered, and the answer is not recorded yet. */
  #isAnswered = false;
  #at: readonly (number | undefined)[] = [];

  constructor(session: Session) {
    this.#session = session;
    this.#history = new History<Mark>(session, usesOf);
  }

  /**
   * Records what is new. Gives what stands in for outputs that are not shown whole, by their places in `units`. `begins` says whether
   * a run begins with this list, if the framework knows.
   */
  async tell(units: readonly Unit[], begins?: boolean): Promise<Map<number, string>> {
    return this.#turns.take(async () => {
      let { known, view } = await this.#history.read();
      if (this.#restarts !== this.#history.restarts) {
        [this.#restarts, this.#before] = [this.#history.restarts, undefined];
      }
      const marks = units.map(markOf);
      // The same list again, though it was answered, is another run's.
      const isAgain = this.#isAnswered && this.#before?.length === marks.length;
      this.#isAnswered = false;
      const at = this.#known(known.map(({ value }) => value), marks, begins ?? (isAgain || undefined));
      const fresh = [...at.keys()].filter((place) => at[place] === undefined);
      if (fresh.length > 0) {
        await this.#record(fresh.map((place) => [units[place], marks[place]] as [Unit, Mark]));
        let after = known.length;
        ({ known, view } = await this.#history.read());
        for (const place of fresh) {
          const where = known.findIndex(({ value }, n) => n >= after && same(value, marks[place]));
          if (where < 0) continue;
          [at[place], after] = [where, where + 1];
        }
      }
      [this.#before, this.#at] = [marks, at];
      const replaced = (await view?.replaced()) ?? new Map<number, string>();
      const shown = new Map<number, string>();
      at.forEach((where, place) => {
        const text = units[place]?.kind === "end" && where !== undefined ? replaced.get(known[where]?.seq ?? 0) : undefined;
        if (text !== undefined) shown.set(place, text);
      });
      return shown;
    });
  }

  /** Records the answer to the list that was told last. */
  async answered(units: readonly Unit[]): Promise<void> {
    if (units.length === 0) return;
    await this.#turns.take(async () => {
      const marked = units.map((unit) => [unit, markOf(unit)] as [Unit, Mark]);
      const { known } = await this.#history.read();
      await this.#record(marked);
      if (this.#before === undefined) return;
      this.#before = [...this.#before, ...marked.map(([, mark]) => mark)];
      this.#at = [...this.#at, ...marked.map((_, place) => known.length + place)];
    });
  }

  /** An answer came that the next list will tell. */
  answeredLater(): void {
    this.#isAnswered = true;
  }

  async #record(marked: readonly [Unit, Mark][]): Promise<void> {
    const entries = await this.#history.entries(marked.map(([, mark]) => mark), (mark, [name = ""], place) => {
      const unit = marked[place]?.[0];
      if (unit === undefined) return [];
      const made = unit.make(name).ofRecord(dumped(mark));
      return unit.begins === true ? [Entry.step(), made] : [made];
    });
    await this.#session.append(...entries);
  }

  /** For each unit the record that it is, if it is known. */
  #known(known: readonly Mark[], told: readonly Mark[], given: boolean | undefined): (number | undefined)[] {
    const before = this.#before;
    const continues = before !== undefined && before.length <= told.length && before.every((mark, place) => same(mark, told[place]));
    const begins = given ?? !continues;
    let end = told.length;
    // The prompt of a run is new, even if it says what an earlier one said.
    while (begins && told[end - 1]?.unit === "user") end -= 1;
    const at: (number | undefined)[] = told.map(() => undefined);
    // A list that says no more than the one before is a run's that begins anew; a longer one has the prompt behind what was told.
    if (continues && (before.length <= end || before.length < told.length)) {
      this.#at.forEach((where, place) => (at[place] = where));
      return at;
    }
    const texts = (marks: readonly Mark[]): [string, number][] =>
      marks.flatMap((mark, place) => (mark.unit === "end" ? [] : [[dumped(mark), place] as [string, number]]));
    const [these, those] = [texts(told.slice(0, end)), texts(known)];
    for (const [this_, that] of common(these.map(([text]) => text), those.map(([text]) => text))) {
      const place = these[this_]?.[1];
      if (place !== undefined) at[place] = those[that]?.[1];
    }
    // An end is known if its call is: it may say something else by now.
    const endOf = new Map([...paired(known)].map(([place, call]) => [call, place]));
    for (const [place, call] of paired(told.slice(0, end))) at[place] = endOf.get(at[call] ?? -1);
    return at;
  }
}

/** What was told of sessions, by their keys. Those that were asked for longest ago are read again. */
export class Tolds {
  readonly #session: (key: string) => Session;
  readonly #held = new Map<string, Told>();

  constructor(session: (key: string) => Session) {
    this.#session = session;
  }

  /** What was told of the session of a key. */
  of(key: string): Told {
    const told = this.#held.get(key) ?? new Told(this.#session(key));
    this.#held.delete(key);
    this.#held.set(key, told);
    const [oldest] = this.#held.keys();
    if (this.#held.size > HELD_MAX && oldest !== undefined) this.#held.delete(oldest);
    return told;
  }
}

/** Places of ends, each with the place of its call. */
function paired(marks: readonly Mark[]): Map<number, number> {
  const [calls, open, found] = [new Calls(), new Map<string, number>(), new Map<number, number>()];
  marks.forEach((mark, place) => {
    for (const use of usesOf(mark)) {
      const name = calls.name(use);
      const call = open.get(name);
      if (use[0] === "call") open.set(name, place);
      else if (use[0] === "end" && call !== undefined && open.delete(name)) found.set(place, call);
    }
  });
  return found;
}

/** The longest common order of both, in pairs of places; of equals the latest known. */
export function common(told: readonly string[], known: readonly string[]): [number, number][] {
  interface Step {
    place: number;
    where: number;
    before: Step | undefined;
  }
  const places = new Map<string, number[]>();
  known.forEach((one, where) => places.set(one, [...(places.get(one) ?? []), where]));
  // Hunt and Szymanski, from the end: the best last step of each length.
  const steps: Step[] = [];
  for (let place = told.length - 1; place >= 0; place -= 1) {
    for (const where of places.get(told[place] ?? "") ?? []) {
      let [low, high] = [0, steps.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if ((steps[middle]?.where ?? 0) > where) low = middle + 1;
        else high = middle;
      }
      steps[low] = { place, where, before: steps[low - 1] };
    }
  }
  const found: [number, number][] = [];
  for (let step = steps.at(-1); step !== undefined; step = step.before) found.push([step.place, step.where]);
  return found;
}
