// Compiled under `--strict` against the package's declarations, and not run: what is right compiles, and each line below
// `@ts-expect-error` does not.

import { AcpdbError, Entry, InvalidError, Part, open, verify, type Context, type ItemRow, type Receipt, type Served } from "acpdb";

export async function right(): Promise<void> {
  await using store = await open("agent.db", { durability: "os", lockWait: 1 });
  using other = await open(new URL("file:///tmp/agent.db"), { readOnly: true });
  const session = store.session("s1", { host: "acpdb", project: "shop", parentCall: "c1" });
  const receipt: Receipt = await session.append(
    Entry.message("user", [Part.text("see"), Part.media(new Uint8Array(), "image/png")], { key: "m1", origin: "o1" }),
    Entry.toolFinished("c1", undefined, { error: "no such file", outcome: "failed" }),
    Entry.memory("pnpm", { kind: "preference", key: "package_manager", lifespan: "project" }),
  );
  const served: Served = await (await session.step()).context("openai", { mode: "append_only", tokensMax: 100_000, breakpoints: true });
  const marks: readonly number[] = served.breakpoints;
  const body: Buffer = await session.context({ format: "anthropic", at: new Date() });
  const data: Context = await session.context({ at: 12n, layer: "recorded" });
  const rows: ItemRow[] = await (await session.view("t3")).history({ file: "src/main.rs" });
  for await (const commit of store.subscribe(receipt.lastSeq, { timeout: 1 })) {
    const kinds: string[] = commit.events.map((event) => event.kind);
    console.log(kinds, served.body, marks, body, data.items[0]?.output?.text, rows[0]?.superseded_by, other.path);
  }
  const verdict: string = (await verify("agent.db", { deep: true })).verdict;
  try {
    await session.discard("#1", "call_2");
  } catch (error) {
    if (error instanceof AcpdbError) console.log(error.code, verdict);
  }
  const code: "invalid" = InvalidError.code;
  console.log(code);
}

export async function wrong(): Promise<void> {
  // @ts-expect-error: there is no such role
  Entry.message("usr", "x");
  // @ts-expect-error: a text is no number
  Entry.message("user", 7);
  // @ts-expect-error: there is no such option
  Entry.message("user", "x", { orgin: "o" });
  // @ts-expect-error: an entry is made by its factories
  new Entry();
  // @ts-expect-error: there is no such durability
  const store = await open("agent.db", { durability: "maybe" });
  // @ts-expect-error: a promise is not its value
  const head: number = store.head();
  // @ts-expect-error: a context without a format is no Buffer
  const body: Buffer = await store.session("s1").context();
  // @ts-expect-error: there is no such format
  await store.session("s1").export("docx");
  // @ts-expect-error: what is appended is made by Entry
  await store.session("s1").append({ fact: "message" });
  console.log(head, body);
}
