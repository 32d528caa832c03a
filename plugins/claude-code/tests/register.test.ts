// What the module asks of the program, and what it does with answers, late ones and none. Run by `claude plugin test`.
import { test, expect, mock } from 'claude-code/testing'

const RESULT = { tool_use_id: 'c2', type: 'tool_result', content: 'long' }
const row = (door: string, message: object, more: object = {}) => ({
  message: { type: 'user', role: 'user', content: [RESULT], ...message }, door, origin: { kind: 'tool', tool: 'Read' }, uuid: door + Math.random(), ...more,
})
const result = (more: object = {}) => row('tool-result', {}, more)
const boundary = () => row('compaction', { type: 'system', role: undefined, name: 'compact_boundary', content: [{ type: 'text', text: 'Compacted' }] }, { origin: { kind: 'engine' } })
const says = (model: string) => row('response', { type: 'assistant', role: 'assistant', content: [{ type: 'text', text: 'x' }] }, { origin: { kind: 'model', model } })
const POINTER = { text: '[2 lines, the same as above]' }
const ROWS = [{ role: 'user', text: 'Do it.', toolUses: [], handle: 'h1' }]

/** A session whose program answers by the event's name: an object, a text, or something that throws. */
function world(on, mode: string, answers: Record<string, unknown>) {
  const env: Record<string, string> = { ACPDB_MODE: mode }
  const asked: Record<string, any>[] = []
  const session = mock.session(on)
  on('session.info', () => ({ value: { transcriptPath: '/t/s1.jsonl' } }))
  on('session.id', () => ({ value: 's1' }))
  on('session.cwd', () => ({ value: '/p' }))
  on('session.start', ($, e) => ({ cwd: e.cwd }))
  on('command.register', () => ({ value: {} }))
  on('process.hookEnv', () => ({ value: { CLAUDE_PID: '77', CLAUDE_PLUGIN_ROOT: '/plugin' } }))
  on('env.get', ($, e) => ({ value: env[e.name] }))
  on('env.set', ($, e) => {
    env[e.name] = e.value
    return { value: {} }
  })
  on('process.run', ($, e) => {
    const told = JSON.parse((e.init ?? e).stdin)
    asked.push({ words: e.argv, ...told })
    const answer = answers[told.hook_event_name] ?? '{}'
    if (answer instanceof Error) throw answer
    return { value: { exitCode: 0, stdout: typeof answer === 'string' ? answer : JSON.stringify(answer), stderr: '' } }
  })
  on('session.compact', () => ({ messages: [{ role: 'user', text: 'the summary of the host', toolUses: [] }] }))
  const shown = () => session.appended().filter((kept) => kept.door === 'tool-result').map((kept) => kept.message.content[0].content)
  return { env, asked, shown }
}

const GREETED = { 'session.start': { module: 1 } }
const start = ($) => $.session.start({ cwd: '/p', surface: null, isInteractive: false })

test('a result becomes what the program says, and is told with its session', async ($, on) => {
  const { env, asked, shown } = world(on, 'prune', { ...GREETED, 'session.append': POINTER })
  await start($)
  expect(env.ACPDB_MODULE).toBe('77')
  await $.session.append(result({ agentId: 'a1' }))
  expect(shown()).toEqual([POINTER.text])
  const last = asked.at(-1)
  expect(last.words).toEqual(['acpdb', 'hook', 'claude-code', '--mode', 'prune'])
  expect([last.session_id, last.cwd, last.transcript_path, last.agent_id]).toEqual(['s1', '/p', '/t/s1.jsonl', 'a1'])
  expect(last.row.message.content[0]).toEqual(RESULT)
})

test('rows that a compaction writes again are not asked about', async ($, on) => {
  const { asked, shown } = world(on, 'prune', { ...GREETED, 'session.append': POINTER })
  await start($)
  for (const one of [boundary(), says('<synthetic>'), result(), result()]) await $.session.append(one)
  expect(shown()).toEqual(['long', 'long'])
  expect(asked.length).toBe(1)
  await $.session.append(says('claude-lab'))
  await $.session.append(result())
  expect(shown().at(-1)).toBe(POINTER.text)
})

test('in mode record a row is told and stays', async ($, on) => {
  const { asked, shown } = world(on, 'record', { ...GREETED, 'session.append': POINTER })
  await start($)
  await $.session.append(result())
  expect(shown()).toEqual(['long'])
  expect(asked.map((one) => one.hook_event_name)).toEqual(['session.start', 'session.append'])
})

test('a program that knows no modules is not asked again, and the hooks are told nothing', async ($, on) => {
  const { env, asked, shown } = world(on, 'prune', { 'session.append': POINTER })
  await start($)
  await $.session.append(result())
  expect([env.ACPDB_MODULE, asked.length, shown()]).toEqual([undefined, 1, ['long']])
})

test('after three failures in a row the hooks are there again', async ($, on) => {
  const { env, asked, shown } = world(on, 'prune', { ...GREETED, 'session.append': new Error('still running after 2000ms') })
  await start($)
  for (let count = 0; count < 5; count++) await $.session.append(result())
  expect(shown()).toEqual(['long', 'long', 'long', 'long', 'long'])
  expect([env.ACPDB_MODULE, asked.length]).toEqual(['', 4])
})

test('a compaction is what the program says, else what the host makes', async ($, on) => {
  const answers: Record<string, unknown> = { ...GREETED, 'session.compact': { messages: [{ role: 'user', text: 'folded', toolUses: [] }] } }
  const { asked } = world(on, 'prune', answers)
  await start($)
  const compact = async (more: object = {}) => (await $.session.compact({ trigger: 'manual', messages: ROWS, ...more })).messages[0].text
  expect(await compact()).toBe('folded')
  expect(asked.at(-1).compact).toEqual({ trigger: 'manual', messages: ROWS })
  expect(await compact({ agentId: 'a1' })).toBe('the summary of the host')
  for (const answer of [{}, '', 'no JSON', '{"messages":[]}', '{"messages":7}', new Error('ENOENT')]) {
    answers['session.compact'] = answer
    expect(await compact()).toBe('the summary of the host')
  }
})

test('only in mode prune a compaction is answered', async ($, on) => {
  const { asked } = world(on, 'suggest', { ...GREETED, 'session.compact': { messages: ROWS } })
  await start($)
  const done = await $.session.compact({ trigger: 'auto', messages: ROWS })
  expect([done.messages[0].text, asked.length]).toEqual(['the summary of the host', 1])
})
