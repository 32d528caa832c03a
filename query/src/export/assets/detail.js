// The panel that shows the selected row in full.

function section(box, heading, ...children) {
  box.append(el('h3', '', heading), ...children);
}

function describeItem(box, item) {
  const at = Math.max(seqNow(), item.seq);
  const it = stands(item, at);
  box.append(el('h2', '', item.id + ' ' + oneLine(whatOf(item), 60)), el('p', '', el('bdi', '', oneLine(item.about, 200))));
  const facts = ['turn ' + item.turn];
  if (hasTimes()) facts.push(dateTime(item.seconds));
  facts.push('~' + brief(Math.max(item.tokens[0] + item.tokens[1], it.tokens)) + ' tokens recorded, ' + brief(it.tokens) + ' shown');
  if (item.hash) facts.push(item.hash);
  if (item.call) facts.push(oneLine(item.call, 80));
  box.append(el('p', 'why', facts.join(' · ')));
  const why = stale(item, at);
  if (why.length) why.push(' since #' + edgeOf(item, at).seq, standing(it) ? ', ' : '');
  box.append(el('p', '', ...why, standing(it) || (why.length ? '' : 'current, whole')));
  if (item.newer.length || item.older.length) section(box, 'Chain', drawChain(chainOf(item, at), item, at));
  if (it.inputText >= 0) section(box, session.sent ? 'Current, of the parameters' : 'acpdb would send, of the parameters', codeBlock(text(it.inputText)));
  if (it.outputText >= 0) section(box, session.sent ? 'Current' : 'acpdb would send', codeBlock(text(it.outputText)));
  const input = inputOf(item, at);
  if (input >= 0) {
    const raw = el('details', '', el('summary', '', 'as recorded'), codeBlock(text(input)));
    section(box, 'Parameters', problems.has(input) ? codeBlock(text(input), 'problem') : parametersOf(text(input)), raw);
  }
  const content = contentOf(item, at);
  const prose = item.kind !== 'call' && item.kind !== 'result';
  if (content.length) section(box, item.kind === 'call' ? 'Result as recorded' : 'As recorded', ...content.map(place => textBlock(place, prose)));
  else if (item.kind === 'call') section(box, 'Result', el('p', 'why', 'none yet'));
}

function describeMemory(box, memory) {
  box.append(el('h2', '', word(memory.kind) + ' ' + memory.place), el('p', '', memory.id + ' · #' + memory.seq + ' · ' + word(memory.standing) + ' · confidence ' + memory.confidence.toFixed(2)));
  if (memory.value >= 0) section(box, 'Value', codeBlock(text(memory.value)));
  const past = data.memory.filter(other => other.by === memory.id);
  if (memory.by) section(box, 'Superseded by', el('p', '', memory.by + ' at #' + memory.ended));
  if (past.length) section(box, 'It superseded', ...past.map(other => el('p', '', other.id + ': ' + oneLine(text(other.value), 200))));
}

function describeTurn(box, turn) {
  box.append(el('h2', '', 'Turn ' + turn.turn), el('p', '', figuresOf(turn).join(' · ')));
  const own = requests.filter(request => request.turn === turn.turn);
  if (own.length) {
    const table = el('table', '', el('tr', '', ...['request', 'model', 'input', 'read', 'written', 'output', 'cost'].map(it => el('th', '', it))));
    for (const it of own) {
      table.append(el('tr', '', ...['#' + it.seq, visible(it.model), brief(it.input), brief(it.cacheRead), brief(it.cacheWrite), brief(it.output), dollars(it.cost) || 'no price'].map(cell => el('td', '', cell))));
    }
    section(box, 'Requests', el('div', 'table', table));
  }
  section(box, 'In it', ...turn.items.map(row => el('p', '', row.mark ? row.id : jump(row), ' ' + oneLine(whatOf(row), 40) + ' ', el('bdi', '', oneLine(row.mark ? row.says : about(row, seqNow()) || '', 120)))));
}
