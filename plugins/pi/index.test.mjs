// What of the extension needs no Pi: changes to messages, and a program that is missing, broken or slow.
//   node --test plugins/pi/index.test.mjs        # Node 22.18 or later, which reads TypeScript
import assert from "node:assert/strict"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import acpdb, { Program, apply } from "./index.ts"

const messages = () => [
  { role: "user", content: "Look" },
  { role: "assistant", content: [
    { type: "thinking", thinking: "Hm", thinkingSignature: "s1" },
    { type: "toolCall", id: "c1", name: "read", arguments: { path: "a" } },
    { type: "toolCall", id: "c2", name: "read", arguments: { path: "a" }, thoughtSignature: "s" }] },
  { role: "toolResult", toolCallId: "c1", content: [{ type: "text", text: "long" }, { type: "image", data: "" }], isError: false },
  { role: "toolResult", toolCallId: "c2", content: [{ type: "image", data: "" }], isError: false },
  { role: "assistant", content: [{ type: "thinking", thinking: "Alone", thinkingSignature: "s2" }] },
]

test("results, parameters and reasoning change, and Pi's own messages do not", () => {
  const own = messages()
  const shown = apply(own, {
    changes: [
      { call: "c1", output: "[superseded]", input: '{"path":"[gone]"}', hash: "r_1" },
      { call: "c2", input: '{"path":"[gone]"}', hash: "r_2" },
      { call: "c9", output: "of another session" }],
    stale_signatures: ["s1", "s2"],
  })
  const [user, first, one, two, last] = shown
  assert.deepEqual(own, messages())
  assert.equal(user, own[0])
  assert.deepEqual(first.content.map((part) => [part.type, part.arguments?.path]), [["toolCall", "[gone]"], ["toolCall", "a"]])
  assert.deepEqual(one.content, [{ type: "text", text: "[superseded]\n[r_1]" }])
  assert.deepEqual(two.content, [{ type: "image", data: "" }, { type: "text", text: "[r_2]" }])
  assert.deepEqual(last.content, own[4].content, "a message is not left empty")
})

test("nothing said is nothing changed", () => {
  assert.deepEqual(apply(messages(), { changes: [] }), messages())
  assert.deepEqual(apply(messages(), {}), messages())
  assert.deepEqual(apply(messages(), { changes: [{ call: "c1", input: "no JSON" }] }), messages())
})

/** A program for the extension, in place of acpdb. */
function script(body) {
  const path = join(mkdtempSync(join(tmpdir(), "acpdb-pi-")), "program.mjs")
  writeFileSync(path, body)
  return [process.execPath, path]
}

const answers = (answer) => script(`
  import { createInterface } from "node:readline"
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, op } = JSON.parse(line)
    ${answer}
  }`)

test("a program answers each question by its number", async () => {
  const program = new Program(answers("console.log(JSON.stringify({ id, text: op }))"))
  const said = await Promise.all(["hello", "stats", "log"].map((op) => program.ask(op, {})))
  assert.deepEqual(said.map((answer) => answer.text), ["hello", "stats", "log"])
  program.end()
})

test("a program that is missing, ends or says nonsense is no answer, and is left alone after three times", async () => {
  for (const words of [["/no/such/acpdb"], script("process.exit(1)"), answers("process.exit(1)")]) {
    const program = new Program(words)
    for (let count = 0; count < 3; count++) assert.equal(await program.ask("context", {}), undefined)
    assert.equal(program.start(), false)
  }
  const program = new Program(answers('console.log("nonsense"); console.log(JSON.stringify({ id, text: "yes" }))'))
  assert.equal((await program.ask("stats", {})).text, "yes")
  program.end()
})

test("Pi goes on with its own messages", async () => {
  const handlers = new Map()
  const pi = { on: (name, handler) => handlers.set(name, handler), registerCommand() {}, registerTool() {} }
  const path = process.env.PATH
  process.env.PATH = ""
  await acpdb(pi)
  process.env.PATH = path
  const manager = { getSessionFile: () => "/tmp/none.jsonl", getSessionId: () => "s", getLeafId: () => null, getEntries: () => [] }
  for (const sessionManager of [manager, { ...manager, getSessionFile: () => undefined }, {}]) {
    const ctx = { sessionManager, cwd: "/", model: undefined }
    for (const name of ["context", "before_agent_start", "agent_end", "session_shutdown"]) {
      assert.equal(await handlers.get(name)({ messages: messages() }, ctx), undefined, name)
    }
  }
})
