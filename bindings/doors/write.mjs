// Records the lines of `acpdb append --stdin` that stand on standard input, through the package: one commit a line.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

// From the package that the caller names: where it was installed.
const { Entry, open } = createRequire(process.argv[3])("acpdb");

const fact = ([what, it]) => {
  switch (what) {
    case "turn": return Entry.step();
    case "message": return Entry.message(it.role, it.text);
    case "tool_started": return Entry.toolStarted(it.call, it.tool, it.params);
    case "tool_finished": return Entry.toolFinished(it.call, it.output, { error: it.error });
    case "todos": return Entry.todos(it);
    case "memory": return Entry.memory(it.value, { kind: it.kind, key: it.key, id: it.id });
    case "file_changed": return Entry.fileChanged(it.path);
    default: throw new Error(what);
  }
};

// Under `os` small commits are done at once where nothing has to be waited for; whoever has to wait goes to another thread.
const durability = process.argv[4] ?? "sync";
const store = await open(process.argv[2], { anyFileSystem: true, lockWait: 60, durability });
const pending = [];
for await (const raw of createInterface({ input: process.stdin })) {
  const line = JSON.parse(raw);
  const entries = line.events.flatMap((event) => Object.entries(event).map(fact));
  // Nothing is awaited: the order of the calls is the order of the commits.
  if (durability === "os" && pending.length % 3 === 0) await Promise.all(pending);
  pending.push(store.session(line.session, { project: line.project }).append(...entries));
}
await Promise.all(pending);
await store.close();
