// acpdb inside opencode: what the model is shown, recorded and kept short.
//
//   opencode --messages--> transform --JSON lines--> acpdb plugin opencode     what is new is recorded
//                                    <--changes------                          what is stale is shown shorter
//
// Only what is sent is changed, never what opencode keeps. Whatever goes wrong here, opencode sends its own messages:
// acpdb may be missing, slow, broken or killed. No dependencies.
import { spawn } from "node:child_process"

// What `acpdb attach opencode` was told; options of the plug-in stand above it.
const ATTACHED = {}

const WAIT_MS = { hello: 3000, record: 0, context: 2000, tool: 20000, compacting: 3000, stats: 5000, log: 5000 }
// A program that keeps failing is left alone for a while.
const REST_MS = 30000
const FAILURES_MAX = 3
// What a slow program has not read yet. Past it, it is ended.
const UNREAD_BYTES_MAX = 64 * 1024 * 1024

/** The program, started when it is needed, and again when it ended. */
class Program {
  constructor(words, folder) {
    this.words = words
    this.folder = folder
    this.child = undefined
    // Counts the starts, and what a program could not record: what was told before, it does not know.
    this.life = 0
    this.telling = new Set()
    this.number = 0
    this.waiting = new Map()
    this.failures = 0
    this.restUntil = 0
    this.isLate = false
  }

  start() {
    if (this.child) return true
    if (Date.now() < this.restUntil) return false
    let child
    try {
      child = spawn(this.words[0], this.words.slice(1), { cwd: this.folder, stdio: ["pipe", "pipe", "ignore"] })
    } catch {
      this.ended(undefined)
      return false
    }
    this.child = child
    this.life += 1
    this.isLate = false
    let rest = ""
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (piece) => {
      const lines = (rest + piece).split("\n")
      rest = lines.pop()
      for (const line of lines) this.take(line)
    })
    child.on("error", () => this.ended(child))
    child.on("exit", () => this.ended(child))
    child.stdin.on("error", () => this.ended(child))
    try {
      child.unref()
    } catch {}
    return true
  }

  ended(child) {
    if (child !== this.child) return
    this.child = undefined
    this.failures += 1
    if (this.failures >= FAILURES_MAX) this.restUntil = Date.now() + REST_MS
    for (const done of this.waiting.values()) done(undefined)
    this.waiting.clear()
    this.telling.clear()
  }

  take(line) {
    let answer
    try {
      answer = JSON.parse(line)
    } catch {
      return
    }
    this.failures = 0
    this.isLate = false
    if (this.telling.delete(answer.id) && answer.error !== undefined) this.life += 1
    const done = this.waiting.get(answer.id)
    this.waiting.delete(answer.id)
    if (done) done(answer)
  }

  /** The answer; undefined if there is none in time. `life`: only the program of that start may be asked. */
  ask(op, request, life) {
    if (life !== undefined && (!this.child || this.life !== life)) return Promise.resolve(undefined)
    // One answer that is late is enough to wait for.
    if (!this.start() || (this.isLate && op !== "record")) return Promise.resolve(undefined)
    const id = ++this.number
    const child = this.child
    if (request.messages) this.telling.add(id)
    return new Promise((done) => {
      const wait = WAIT_MS[op]
      if (wait) {
        const timer = setTimeout(() => {
          this.isLate = true
          this.waiting.set(id, () => {})
          done(undefined)
        }, wait)
        this.waiting.set(id, (answer) => {
          clearTimeout(timer)
          done(answer)
        })
      } else done({})
      try {
        child.stdin.write(JSON.stringify({ id, op, ...request }) + "\n")
        if (child.stdin.writableLength > UNREAD_BYTES_MAX) child.kill()
      } catch {
        this.ended(child)
        done(undefined)
      }
    })
  }
}

/** What is known of a session. */
class Session {
  constructor(id) {
    this.info = { id }
    this.hasInfo = false
    // Messages that were told, by id; and those of which events have told more since.
    this.told = new Set()
    this.gathered = new Map()
    this.life = 0
    // The life of the program that was told all there is, in its order. Only that one may be told what comes behind.
    this.synced = 0
  }

  message(id) {
    let message = this.gathered.get(id)
    if (!message) this.gathered.set(id, (message = { info: undefined, parts: new Map() }))
    return message
  }
}

/** A record with its ids first, as opencode's database gives it: so both are one record. */
const record = ({ id, sessionID, messageID, ...rest }) => ({ id, sessionID, messageID, ...rest })

const plain = (message) => ({ info: record(message.info), parts: [...message.parts.values()].map(record) })

/** Shows a message's parts as acpdb says. Parts are copied: opencode may keep its own. */
function change(message, changes) {
  const places = { text: 0, reasoning: 0 }
  const texts = new Map()
  const calls = new Map()
  const gone = new Set()
  for (const one of changes) {
    if (one.call !== undefined) calls.set(one.call, one)
    else if (one.text !== undefined) texts.set(one.text, one.shown)
    else if (one.reasoning !== undefined) gone.add(one.reasoning)
  }
  const parts = []
  for (const part of message.parts) {
    if (part.type === "text" && typeof part.text === "string") {
      const shown = texts.get(places.text++)
      if (shown === "") continue
      parts.push(shown === undefined ? part : { ...part, text: shown })
    } else if (part.type === "reasoning" && typeof part.text === "string") {
      if (!gone.has(places.reasoning++)) parts.push(part)
    } else if (part.type === "tool" && calls.has(part.callID)) {
      parts.push({ ...part, state: stateOf(part.state, calls.get(part.callID)) })
    } else parts.push(part)
  }
  message.parts.splice(0, message.parts.length, ...parts)
}

function stateOf(state, one) {
  const made = { ...state }
  if (one.input !== undefined) {
    try {
      made.input = JSON.parse(one.input)
    } catch {}
  }
  const name = state.status === "error" ? "error" : "output"
  if (state.status !== "completed" && state.status !== "error") return made
  if (one.output !== undefined) {
    made[name] = one.output
    if (made.attachments) made.attachments = []
    // opencode's own word for a result that it clears would stand above ours.
    if (made.time?.compacted) made.time = { ...made.time, compacted: undefined }
  }
  if (one.hash !== undefined && !made.time?.compacted) made[name] = (made[name] ?? "") + "\n[" + one.hash + "]"
  return made
}

/** A text of its own behind a message, as the user's. */
function note(sessionID, like, number, text) {
  const id = "msg_acpdb" + number
  const info = { ...like, id, sessionID, role: "user", time: { created: like.time?.created ?? 0 }, summary: undefined }
  return { info, parts: [{ id: "prt_acpdb" + number, sessionID, messageID: id, type: "text", text, synthetic: true }] }
}

function apply(messages, changes) {
  const byMessage = new Map()
  const notes = new Map()
  for (const one of changes) {
    const [map, key] = "note" in one ? [notes, one.after] : [byMessage, one.message]
    if (!map.has(key)) map.set(key, [])
    map.get(key).push(one)
  }
  for (const message of messages) {
    const own = byMessage.get(message.info.id)
    if (own) change(message, own)
  }
  if (notes.size === 0) return
  const lastUser = messages.findLast((message) => message.info.role === "user")
  if (!lastUser) return
  const all = []
  let number = 0
  for (const message of messages) {
    all.push(message)
    for (const one of notes.get(message.info.id) ?? []) {
      all.push(note(message.info.sessionID, lastUser.info, number++, one.note))
    }
  }
  messages.splice(0, messages.length, ...all)
}

/** Arguments of a tool as opencode takes them: it asks for each of them, so an empty one counts as none. */
function argumentsOf(input) {
  const args = {}
  for (const [name, schema] of Object.entries(input.properties)) {
    // opencode says which session it is.
    if (name === "session") continue
    const isNeeded = (input.required ?? []).includes(name)
    const { minimum, ...open } = schema
    args[name] = isNeeded ? schema : { ...open, description: (schema.description ?? "") + " (empty or 0: none)" }
  }
  return args
}

/** Ends well, whatever happens. */
const safely = (hook) => async (input, output) => {
  try {
    return await hook(input, output)
  } catch {
    return undefined
  }
}

const server = async (host, options) => {
  const set = { program: "acpdb", mode: "suggest", ...ATTACHED, ...(options ?? {}) }
  const words = [set.program, ...(set.db ? ["--db", set.db] : []),
    "plugin", "opencode", "--mode", set.mode]
  const program = new Program(words, host.directory)
  const sessions = new Map()
  const session = (id) => {
    let found = sessions.get(id)
    if (!found) sessions.set(id, (found = new Session(id)))
    // A program that was started anew knows only what the log has: told again, it adds nothing.
    if (found.life !== program.life) {
      found.life = program.life
      found.told.clear()
    }
    return found
  }

  /** opencode's own record of a session: its folder, title, parent. */
  const learn = async (known) => {
    if (known.hasInfo) return
    known.info = { directory: host.directory, ...known.info }
    const asked = host.client.session.get({ path: { id: known.info.id } })
    const got = await Promise.race([asked, new Promise((done) => setTimeout(done, 1000))])
    if (got?.data?.id === known.info.id) {
      known.info = got.data
      known.hasInfo = true
    }
  }

  const toast = (message) => {
    try {
      host.client.tui?.showToast?.({ body: { title: "acpdb", message, variant: "info" } })?.catch?.(() => {})
    } catch {}
  }

  const isSynced = (known) => program.child !== undefined && known.synced === program.life

  /** Tells what events have brought, of one message or of all. A program that was started anew waits for the whole. */
  const tell = (known, ids) => {
    if (!isSynced(known)) return
    const messages = []
    for (const id of ids) {
      const message = known.gathered.get(id)
      if (!message?.info) continue
      messages.push(plain(message))
      known.told.add(id)
      known.gathered.delete(id)
    }
    if (messages.length > 0) program.ask("record", { info: known.info, messages }, known.synced)
  }

  const hooks = {
    event: safely(async ({ event }) => {
      const about = event.properties ?? {}
      if (event.type === "session.created" || event.type === "session.updated") {
        const known = session(about.info.id)
        known.info = about.info
        known.hasInfo = true
      } else if (event.type === "message.updated") {
        const known = session(about.info.sessionID)
        const message = known.message(about.info.id)
        message.info = about.info
        const isWhole = about.info.role === "assistant" && (about.info.time?.completed || about.info.error)
        if (!isWhole) return
        await learn(known)
        tell(known, [about.info.id])
      } else if (event.type === "message.part.updated") {
        const part = about.part
        const known = session(part.sessionID)
        // Of a message that was told whole, a later change comes with the host's next request.
        if (known.told.has(part.messageID) && !known.gathered.has(part.messageID)) {
          known.told.delete(part.messageID)
          return
        }
        known.message(part.messageID).parts.set(part.id, part)
      } else if (event.type === "session.idle") {
        const known = session(about.sessionID)
        await learn(known)
        if (isSynced(known)) return tell(known, [...known.gathered.keys()])
        const all = await host.client.session.messages({ path: { id: known.info.id } })
        if (!Array.isArray(all?.data) || !program.start()) return
        const messages = all.data.map((message) => plain({ info: message.info, parts: new Map(message.parts.entries()) }))
        known.gathered.clear()
        known.synced = program.life
        program.ask("record", { info: known.info, messages, whole: true })
      } else if (event.type === "session.deleted") sessions.delete(about.info.id)
    }),

    "experimental.chat.messages.transform": safely(async (_, output) => {
      const messages = output.messages
      const last = messages.at(-1)
      if (!last) return
      const id = last.info.sessionID
      if (!program.start()) return
      const known = session(id)
      await learn(known)
      const whole = known.told.size === 0
      const fresh = []
      for (const message of messages) {
        if (known.told.has(message.info.id)) continue
        const gathered = known.gathered.get(message.info.id)
        // What the user typed may have been put into other words for this request alone.
        const own = message.info.role === "user" && gathered?.info && gathered.parts.size >= message.parts.length
        fresh.push(plain(own ? gathered : { info: message.info, parts: new Map(message.parts.entries()) }))
        known.told.add(message.info.id)
        known.gathered.delete(message.info.id)
      }
      known.synced = known.life
      const user = messages.findLast((message) => message.info.role === "user")?.info
      const steps = messages.flatMap((message) => message.parts.filter((part) => part.type === "step-start"))
      const answer = await program.ask("context", {
        info: known.info,
        messages: fresh,
        whole,
        model: user?.model?.modelID ?? "",
        is_prompt: last.info.role === "user",
        key: steps.at(-1)?.id ?? last.info.id,
      }, known.life)
      if (!Array.isArray(answer?.changes)) return
      apply(messages, answer.changes)
      if (answer.toast) toast(answer.toast)
    }),

    "experimental.session.compacting": safely(async (input, output) => {
      const answer = await program.ask("compacting", { session: input.sessionID })
      if (Array.isArray(answer?.texts)) output.context.push(...answer.texts)
    }),

    // `/acpdb stats` and `/acpdb log`: what was hidden, by rule, and what superseded what.
    "command.execute.before": safely(async (input, output) => {
      if (input.command !== "acpdb") return
      const op = (input.arguments ?? "").trim() === "log" ? "log" : "stats"
      const answer = await program.ask(op, { session: input.sessionID })
      const text = answer?.text ?? "acpdb does not answer: " + (answer?.error ?? "acpdb attach --status says why")
      toast(text)
      output.parts.splice(0, output.parts.length, { type: "text", text: "Repeat this as it stands:\n```\n" + text + "\n```" })
    }),

    config: safely(async (config) => {
      config.command = { acpdb: { template: "$ARGUMENTS", description: "acpdb: stats, or log" }, ...config.command }
    }),

    dispose: safely(async () => {
      program.child?.stdin.end()
    }),
  }

  const hello = set.mode === "record" ? undefined : await program.ask("hello", {})
  for (const tool of hello?.tools ?? []) {
    hooks.tool ??= {}
    hooks.tool[tool.name] = {
      description: tool.description,
      args: argumentsOf(tool.input),
      execute: async (args, context) => {
        const given = Object.entries(args).filter(([, value]) => value !== "" && value !== null && value !== 0)
        const request = { session: context.sessionID, name: tool.name, arguments: Object.fromEntries(given) }
        const answer = await program.ask("tool", request)
        return answer?.text ?? "acpdb: " + (answer?.error ?? "no answer")
      },
    }
  }
  return hooks
}

// As a function for those versions that call what a module gives, as a module with `server` for later ones.
const plugin = Object.assign((host, options) => server(host, options), { id: "acpdb", server })
export default plugin
