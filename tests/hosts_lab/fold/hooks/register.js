// Answers a compaction with the session's own messages, their results cut: the host writes them anew behind the boundary.
const cut = (text) => (text.length > 40 ? text.slice(0, 40) + ' [cut]' : text)

export function register(on) {
  on('session.compact', { trigger: ['manual', 'auto'] }, async ($, e, next) => {
    const messages = []
    for (const { handle, ...given } of e.messages) {
      const isPrompt = given.role === 'user' && !(given.toolResults && given.toolResults.length)
      if (isPrompt) {
        messages.push({ ...given, handle })
        continue
      }
      const row = { ...given, toolUses: (given.toolUses ?? []).map(({ tool_use_id, tool, input }) => ({ tool_use_id, tool, input })) }
      if (given.toolResults) {
        row.toolResults = given.toolResults.map(({ tool_use_id, text, isError }) => ({ tool_use_id, text: cut(text), isError }))
      }
      // Neighbours of one side have to be one row: of parallel calls all but the last would be lost.
      const last = messages[messages.length - 1]
      if (last && !last.handle && last.role === row.role) {
        last.text = [last.text, row.text].filter(Boolean).join('\n\n')
        last.toolUses = [...last.toolUses, ...row.toolUses]
        if (row.toolResults) last.toolResults = [...(last.toolResults ?? []), ...row.toolResults]
      } else {
        messages.push(row)
      }
    }
    return { messages }
  })
}
