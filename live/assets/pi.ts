// acpdb inside Pi: what the model is shown, recorded and kept short.
//
//   Pi --file of the session--> context --JSON lines--> acpdb plugin pi     what is new in the file is recorded
//                                       <--changes------                    what is stale is shown shorter
//
// Only what is sent is changed, never what Pi keeps. Whatever goes wrong here, Pi sends its own messages: acpdb may be
// missing, slow, broken or killed. No dependencies; types alone could be imported, and are not needed.
import { spawn } from "node:child_process"

// What `acpdb attach pi` was told.
const ATTACHED = {}

type Op = "hello" | "record" | "context" | "due" | "tool" | "stats" | "log"
type Change = { call?: string; input?: string; output?: string; hash?: string }
type Answer = {
  id?: number
  error?: string
  text?: string
  changes?: Change[]
  stale_signatures?: string[]
  tools?: { name: string; description: string; input: Record<string, any> }[]
}

const WAIT_MS: Record<Op, number> = {
  hello: 2000, record: 2000, context: 2000, due: 2000, tool: 20000, stats: 5000, log: 5000,
}
// A program that keeps failing is left alone for a while.
const REST_MS = 30000
const FAILURES_MAX = 3

/** The program, started when it is needed, and again when it ended. */
export class Program {
  words: string[]
  child: any = undefined
  number = 0
  waiting = new Map<number, (answer: Answer | undefined) => void>()
  failures = 0
  restUntil = 0
  isLate = false

  constructor(words: string[]) {
    this.words = words
  }

  start(): boolean {
    if (this.child) return true
    if (Date.now() < this.restUntil) return false
    let child: any
    try {
      child = spawn(this.words[0], this.words.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
    } catch {
      this.ended(undefined)
      return false
    }
    this.child = child
    this.isLate = false
    let rest = ""
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (piece: string) => {
      const lines = (rest + piece).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) this.take(line)
    })
    child.on("error", () => this.ended(child))
    child.on("exit", () => this.ended(child))
    child.stdin.on("error", () => this.ended(child))
    // Pi may end while it runs: its input ends then, and it with it.
    for (const one of [child, child.stdin, child.stdout]) one.unref?.()
    return true
  }

  ended(child: any) {
    if (child !== this.child) return
    this.child = undefined
    this.failures += 1
    if (this.failures >= FAILURES_MAX) this.restUntil = Date.now() + REST_MS
    for (const done of this.waiting.values()) done(undefined)
    this.waiting.clear()
  }

  take(line: string) {
    let answer: Answer
    try {
      answer = JSON.parse(line)
    } catch {
      return
    }
    this.failures = 0
    this.isLate = false
    const done = this.waiting.get(answer.id ?? 0)
    this.waiting.delete(answer.id ?? 0)
    if (done) done(answer)
  }

  /** The answer; undefined if there is none in time. */
  ask(op: Op, request: object): Promise<Answer | undefined> {
    // One answer that is late is enough to wait for.
    if (!this.start() || this.isLate) return Promise.resolve(undefined)
    const id = ++this.number
    const child = this.child
    return new Promise((done) => {
      const timer = setTimeout(() => {
        this.isLate = true
        this.waiting.set(id, () => {})
        done(undefined)
      }, WAIT_MS[op])
      this.waiting.set(id, (answer) => {
        clearTimeout(timer)
        done(answer)
      })
      try {
        child.stdin.write(JSON.stringify({ id, op, ...request }) + "\n")
      } catch {
        this.ended(child)
        done(undefined)
      }
    })
  }

  end() {
    this.child?.stdin.end()
  }
}

const textOf = (text: string) => [{ type: "text", text }]

/** A result as acpdb says: another text, and the hash by which the model names it. */
function result(message: any, one: Change): any {
  let content = message.content
  if (one.output !== undefined) content = textOf(one.output)
  if (one.hash !== undefined) {
    const at = content.findLastIndex((part: any) => part.type === "text")
    const mark = "\n[" + one.hash + "]"
    content = at < 0 ? [...content, ...textOf(mark.trim())]
      : content.map((part: any, place: number) => (place === at ? { ...part, text: part.text + mark } : part))
  }
  return content === message.content ? message : { ...message, content }
}

/** A call as acpdb says; one that the provider has signed stays as it is. */
function call(part: any, one: Change): any {
  if (one.input === undefined || part.thoughtSignature) return part
  try {
    return { ...part, arguments: JSON.parse(one.input) }
  } catch {
    return part
  }
}

/** Messages as acpdb says. Pi's own are not touched. */
export function apply(messages: any[], answer: Answer): any[] {
  const calls = new Map((answer.changes ?? []).map((one) => [one.call, one]))
  const stale = new Set(answer.stale_signatures ?? [])
  return messages.map((message) => {
    if (message.role === "toolResult") {
      const one = calls.get(message.toolCallId)
      return one ? result(message, one) : message
    }
    if (message.role !== "assistant" || !Array.isArray(message.content)) return message
    const isGone = (part: any) => part.type === "thinking" && stale.has(part.thinkingSignature)
    const kept = message.content.filter((part: any) => !isGone(part))
    const content = (kept.length > 0 ? kept : message.content).map((part: any) => {
      const one = part.type === "toolCall" ? calls.get(part.id) : undefined
      return one ? call(part, one) : part
    })
    return { ...message, content }
  })
}

/** Ends well, whatever happens. */
const safely = (handler: (event: any, ctx: any) => Promise<any>) => async (event: any, ctx: any) => {
  try {
    return await handler(event, ctx)
  } catch {
    return undefined
  }
}

/** What acpdb has to know of a session; undefined: Pi does not write it to disk. */
function about(ctx: any): { session: string; recording: string; folder: string } | undefined {
  const recording = ctx.sessionManager.getSessionFile()
  return recording && { session: ctx.sessionManager.getSessionId(), recording, folder: ctx.cwd }
}

export default async function acpdb(pi: any): Promise<void> {
  const set: any = { program: "acpdb", mode: "suggest", ...ATTACHED }
  const program = new Program([
    set.program, ...(set.db ? ["--db", set.db] : []),
    "plugin", "pi", "--mode", set.mode,
  ])
  // Sessions that were told what is due at their start.
  const greeted = new Set<string>()

  pi.on("context", safely(async (event, ctx) => {
    const session = about(ctx)
    if (!session) return undefined
    const answer = await program.ask("context", {
      ...session,
      model: ctx.model?.id ?? "",
      is_prompt: event.messages.at(-1)?.role === "user",
      key: ctx.sessionManager.getLeafId() ?? "",
    })
    return Array.isArray(answer?.changes) ? { messages: apply(event.messages, answer) } : undefined
  }))

  pi.on("before_agent_start", safely(async (_, ctx) => {
    const session = about(ctx)
    if (set.mode === "record" || !session) return undefined
    // One that goes on was told when it began: with a prompt, a reminder or a reflection may be due.
    const begun = greeted.has(session.session)
      || ctx.sessionManager.getEntries().some((entry: any) => entry.type === "message")
    greeted.add(session.session)
    const answer = await program.ask("due", { ...session, begun })
    return answer?.text ? { message: { customType: "acpdb", content: answer.text, display: false } } : undefined
  }))

  const record = safely(async (_, ctx) => {
    const session = about(ctx)
    if (session) await program.ask("record", session)
  })
  pi.on("agent_end", record)
  pi.on("session_shutdown", safely(async (event, ctx) => {
    await record(event, ctx)
    program.end()
  }))

  pi.registerCommand("acpdb", {
    description: "acpdb: stats, or log",
    handler: async (words: string, ctx: any) => {
      const op = words.trim() === "log" ? "log" : "stats"
      const answer = await program.ask(op, about(ctx) ?? {})
      const text = answer?.text ?? "acpdb does not answer: " + (answer?.error ?? "acpdb attach --status says why")
      ctx.ui.notify(text, "info")
    },
  })

  const hello = set.mode === "record" ? undefined : await program.ask("hello", {})
  for (const tool of hello?.tools ?? []) {
    const { session: _, ...properties } = tool.input.properties
    pi.registerTool({
      name: tool.name,
      label: tool.name,
      description: tool.description,
      parameters: { ...tool.input, properties },
      execute: async (_id: string, args: object, _signal: unknown, _update: unknown, ctx: any) => {
        const answer = await program.ask("tool", { ...about(ctx), name: tool.name, arguments: args })
        return { content: textOf(answer?.text ?? "acpdb: " + (answer?.error ?? "no answer")), details: {} }
      },
    })
  }
}
