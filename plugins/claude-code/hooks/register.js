// The command /acpdb, where the host runs modules in its own process. Whatever is missing here, the hooks record all the same,
// and /acpdb:ask is there.
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
    return started
  }).catch(($, e, next) => next(e))

  on('command.run', { command: 'acpdb' }, async ($, e) => {
    try {
      const env = await $.process.hookEnv()
      const words = (e.args ?? '').split(/\s+/).filter((word) => word !== '')
      const ask = [env.CLAUDE_PLUGIN_ROOT + '/scripts/ask.sh', ...words]
      const done = await $.process.run(ask, { timeoutMs: 20000, env })
      return { text: done.stdout || done.stderr || 'acpdb said nothing' }
    } catch (error) {
      return { text: 'acpdb does not answer: ' + String(error) }
    }
  }).catch(() => ({ text: 'acpdb does not answer' }))
}
