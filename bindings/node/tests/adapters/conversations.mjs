// Random conversations, and the judge of what an adapter sends and records of them. Neither knows an adapter.
//
// Ids of calls are those that models give: unique, restarting with each answer or run, the tool's name, or empty; also twice in one
// answer.

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";

const PATHS = ["a.rs", "b.rs", "c.rs"];

/** Draws that are the same for the same seed. */
export class Draw {
  #state;
  constructor(seed) {
    this.#state = (seed + 1) * 2654435769;
  }
  below(count) {
    this.#state = (Math.imul(this.#state ^ (this.#state >>> 15), 2246822519) + 3266489917) >>> 0;
    return ((this.#state ^ (this.#state >>> 13)) >>> 0) % count;
  }
  chance(share) {
    return this.below(1000) < share * 1000;
  }
  choice(of) {
    return of[this.below(of.length)];
  }
}

export function runs(draw) {
  const versions = Object.fromEntries(PATHS.map((path) => [path, 0]));
  const style = draw.choice(["unique", "restart", "run", "tool", "empty", "one", "mixed"]);
  let count = 0;
  const id = (tool, place, inRun) => {
    const how = style === "mixed" ? draw.choice(["unique", "restart", "tool", "empty"]) : style;
    return { unique: `call_${count}`, restart: `${tool}:${place}`, run: `call_${inRun}`, tool, empty: "", one: "x" }[how];
  };
  return Array.from({ length: 1 + draw.below(4) }, () => {
    let inRun = 0;
    const turns = Array.from({ length: draw.below(5) }, () =>
      Array.from({ length: draw.choice([1, 1, 1, 2, 3]) }, (_, place) => {
        const [tool, path] = [draw.choice(["read", "read", "read", "edit"]), draw.choice(PATHS)];
        count += 1;
        inRun += 1;
        if (tool === "edit") versions[path] += 1;
        const args = tool === "edit" ? { filePath: path, oldString: "x", newString: String(versions[path]) } : { filePath: path };
        const output = `${path} at ${versions[path]} by ${tool}\n`.repeat(30);
        return { id: id(tool, place, inRun), tool, args, output, isFinished: true };
      }),
    );
    const last = turns.at(-1);
    if (last !== undefined && draw.chance(0.15)) for (const call of last.slice(draw.below(last.length))) call.isFinished = false;
    return { prompt: draw.choice(["look", "look again", "go on"]), turns, answer: draw.choice(["done", `done ${count}`]), continues: draw.chance(0.5) };
  });
}

/** What really happened, in the order of the calls. */
export class Truth {
  calls = [];

  /** A run broke off, and the framework never told its last calls. */
  lose(turn) {
    this.calls = this.calls.filter((it) => !turn.includes(it));
  }

  /** Each output is whole unless a later equal call, or an edit of the file, stands after it. */
  judge(finished, outputs) {
    assert.equal(outputs.length, finished.length);
    finished.forEach((call, number) => {
      if (outputs[number] === call.output) return;
      const later = this.calls.slice(this.calls.indexOf(call) + 1);
      const isEqual = (it) => it.tool === call.tool && isDeepStrictEqual(it.args, call.args);
      const excuse = later.some((it) => it.isFinished && (isEqual(it) || (it.tool === "edit" && it.args.filePath === call.args.filePath)));
      assert.ok(excuse, `${call.tool} ${call.args.filePath} is sent as ${JSON.stringify(outputs[number])}`);
    });
  }

  /** The log has each call once, with what it was given and what it gave. */
  async check(session) {
    const view = await session.view();
    const rows = (await view.history()).filter((row) => row.kind === "call");
    const told = [];
    for (const row of rows) {
      told.push([row.tool, JSON.parse(String(await view.body(row.item, "input"))), String(await view.body(row.item))]);
    }
    assert.deepEqual(told, this.calls.map((it) => [it.tool, it.args, it.isFinished ? it.output : ""]));
  }
}
