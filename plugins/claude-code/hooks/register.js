// What acpdb does in Claude Code's own process, where the host runs modules:
//
//   a row of a result is about to be kept  --> acpdb reads the session so far; in mode `prune` a result that the model still
//                                              sees becomes a pointer, and the host's recording keeps the original beside it
//   the conversation is to be made shorter --> in mode `prune` acpdb's own placeholders, without a model; else the host's summary
//   /acpdb why FILE                        --> answered without a model
//
// The first question at the start of a session asks whether the program knows modules. If it does, the hooks for calls say nothing;
// if it does not, or fails three times in a row, they are there. Whatever goes wrong, the row or the compaction goes on as the
// host has it.
const MODULE = 1
const WAIT_MS = { 'session.start': 3000, 'session.append': 2000, 'session.compact': 8000 }
const FAILURES_MAX = 3

// Lives as long as the host's process. `again`: conversations whose rows a compaction writes anew, decided on before; by their
// subagents, '' is the session's own.
const state = { words: undefined, mode: 'suggest', isActive: false, failures: 0, again: new Set() }

/** What the program answers; undefined if it does not. */
async function ask($, event, more) {
  try {
    const { transcriptPath } = await $.session.info()
    // A session that is kept nowhere is not recorded either.
    if (!transcriptPath) return undefined
    const told = { session_id: await $.session.id(), cwd: await $.session.cwd(), transcript_path: transcriptPath, ...more }
    const stdin = JSON.stringify({ hook_event_name: event, ...told })
    const env = await $.process.hookEnv()
    const done = await $.process.run(state.words, { stdin, timeoutMs: WAIT_MS[event], env })
    const answer = JSON.parse(done.stdout)
    state.failures = 0
    return answer
  } catch {
    state.failures += 1
    if (state.failures >= FAILURES_MAX && state.isActive) await rest($)
    return undefined
  }
}

/** Gives the calls back to the hooks. */
async function rest($) {
  state.isActive = false
  await $.env.set('ACPDB_MODULE', '')
}

async function greet($) {
  state.mode = (await $.env.get('ACPDB_MODE')) || 'suggest'
  state.words = [(await $.env.get('ACPDB_PROGRAM')) || 'acpdb', 'hook', 'claude-code', '--mode', state.mode]
  const answer = await ask($, 'session.start', {})
  if (answer?.module !== MODULE) return
  // For scripts of this process alone: a host that is started within this one has another number.
  const { CLAUDE_PID } = await $.process.hookEnv()
  if (!CLAUDE_PID) return
  const { deny } = await $.env.set('ACPDB_MODULE', CLAUDE_PID)
  state.isActive = !deny
}

export function register(on) {
  on('session.start', async ($, e, next) => {
    const started = await next(e)
    try {
      await $.command.register({
        name: 'acpdb',
        description: 'What is in the context and why; restore what was hidden',
        argumentHint: 'why FILE | restore ID | stats',
      })
    } catch {}
    try {
      await greet($)
    } catch {}
    return started
  }).catch(($, e, next) => next(e))

  on('session.append', { door: ['compaction', 'response', 'tool-result'] }, async ($, e, next) => {
    const loop = e.agentId ?? ''
    if (e.door === 'compaction') {
      if (e.message.name === 'compact_boundary') state.again.add(loop)
      return next(e)
    }
    if (e.door === 'response') {
      if (e.origin.model !== '<synthetic>') state.again.delete(loop)
      return next(e)
    }
    if (!state.isActive || state.again.has(loop)) return next(e)
    const more = { agent_id: e.agentId, row: e }
    if (state.mode !== 'prune') {
      const kept = await next(e)
      await ask($, 'session.append', more)
      return kept
    }
    const answer = await ask($, 'session.append', more)
    if (typeof answer?.text !== 'string') return next(e)
    const content = e.message.content.map((block) => (block.type === 'tool_result' ? { ...block, content: answer.text } : block))
    return next({ ...e, message: { ...e.message, content } })
  }).catch(($, e, next) => next(e))

  on('session.compact', { trigger: ['manual', 'auto', 'plugin'] }, async ($, e, next) => {
    if (!state.isActive || state.mode !== 'prune' || e.agentId) return next(e)
    const { trigger, instructions, messages } = e
    const answer = await ask($, 'session.compact', { compact: { trigger, instructions, messages } })
    return Array.isArray(answer?.messages) && answer.messages.length > 0 ? { messages: answer.messages } : next(e)
  }).catch(($, e, next) => next(e))

  on('command.run', { command: 'acpdb' }, async ($, e) => {
    try {
      const env = await $.process.hookEnv()
      const asked = (e.args ?? '').split(/\s+/).filter((word) => word !== '')
      const done = await $.process.run([env.CLAUDE_PLUGIN_ROOT + '/scripts/ask.sh', ...asked], { timeoutMs: 20000, env })
      return { text: done.stdout || done.stderr || 'acpdb said nothing' }
    } catch (error) {
      return { text: 'acpdb does not answer: ' + String(error) }
    }
  }).catch(() => ({ text: 'acpdb does not answer' }))
}
