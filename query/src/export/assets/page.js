// The page: tabs, the point in time, the list, what is selected, keys.

const $ = id => document.getElementById(id);
const session = data.session;
const TABS = [['history', 'History'], ['context', 'Context'], ['chains', 'Chains'], ['todos', 'Todos'], ['memory', 'Memory']];
const now = { tab: 'history', turn: Math.max(0, turns.length - 1), selected: null, query: '' };
const seqNow = () => now.turn >= turns.length - 1 ? session.at : turns[now.turn].seq;
const timeline = items.concat(marks).sort((a, b) => a.seq - b.seq || (a.mark ? 1 : 0) - (b.mark ? 1 : 0) || a.ix - b.ix);

function cells(row, kind, lane, id, turn, what, said, tokens, stands) {
  const dot = el('i', 'lane-' + lane);
  const aboutCell = el('span', 'about', oneLine(said));
  const element = el('div', 'row ' + kind, el('span', 'id', id), el('span', 'turn', turn), el('span', 'lane', dot), el('span', 'what', what), aboutCell,
    el('span', 'tokens', tokens), el('span', 'stands', ...stands));
  return element;
}

// What made an item stale, with a way there.
function stale(item, at) {
  const edge = edgeOf(item, at);
  if (!edge) return [];
  return edge.next >= 0 ? ['superseded by ', jump(items[edge.next]), ' ' + edge.rule] : ['superseded at #' + edge.seq + ' ' + edge.rule];
}

function itemRow(item) {
  const at = seqNow();
  const it = stands(item, at);
  const later = !it;
  const shows = it ? stale(item, at) : [];
  if (it) shows.push((shows.length && standing(it) ? ', ' : '') + standing(it));
  const plain = now.tab === 'context' && it && !isRead(it) && it.outputText >= 0 ? text(it.outputText) : about(item, later ? item.seq : at) || '';
  const kind = (later ? 'later ' : '') + (it && !isRead(it) ? 'faded ' : '') + (it && edgeOf(item, at) ? 'stale ' : '') + (it && it.status === 'failed' ? 'failed' : '');
  const tokens = now.tab === 'context' ? it.tokens : item.tokens[0] + item.tokens[1];
  return cells(item, kind, laneOf(item), item.id, 't' + item.turn, oneLine(whatOf(item), 40), plain, brief(tokens), shows);
}

const markRow = mark => cells(mark, 'mark' + (mark.seq > seqNow() ? ' later' : ''), 3, mark.id, 't' + mark.turn, mark.kind, mark.says, '', ['']);

function chainRow(chain) {
  const newest = chain.members[chain.members.length - 1];
  const row = cells(chain, '', laneOf(newest), newest.id, 't' + newest.turn, whatOf(newest), about(newest, session.at), brief(chain.freed),
    [plural(chain.members.length, 'member') + ', ' + [...chain.rules].join(', ')]);
  return row;
}

const holds = memory => memory.seq <= seqNow() && !(memory.ended && memory.ended <= seqNow()) && (memory.ended || word(memory.standing) === 'current');
function memoryRow(memory) {
  const later = memory.seq > seqNow();
  const ended = memory.ended && memory.ended <= seqNow();
  const says = ended ? 'superseded by ' + memory.by : memory.ended ? 'held then' : word(memory.standing) + (word(memory.standing) === 'current' ? ' ' + memory.confidence.toFixed(2) : '');
  return cells(memory, (later ? 'later ' : '') + (holds(memory) ? '' : 'faded'), 3, '#' + memory.seq, '', word(memory.kind), memory.place + '  ' + text(memory.value), '', [says]);
}

const makers = { history: row => row.mark ? markRow(row) : itemRow(row), context: itemRow, chains: chainRow, memory: memoryRow };
const list = new VirtualList($('list'), $('rows'), row => makers[now.tab](row));

// Lower-case texts of a row, for the search.
function matches(row, query) {
  const has = it => it.toLowerCase().includes(query);
  if (row.mark) return has(row.id) || has(row.kind) || has(row.says);
  if (row.members) return row.members.some(item => matches(item, query));
  if (row.place !== undefined && row.kind !== undefined && row.value !== undefined) return has(row.id) || has(row.place) || has(text(row.value));
  const it = stands(row, seqNow());
  return has(row.id) || has(whatOf(row)) || has(row.about) || has(row.call) || has(row.hash) || (it && has(standing(it))) || row.newer.some(edge => has(edge.rule))
    || row.inputs.some(([, place]) => has(text(place))) || row.contents.some(([, places]) => places.some(place => has(text(place))));
}

function rowsOf(tab) {
  if (tab === 'context') return contextAt(seqNow());
  if (tab === 'chains') return chainsAt(seqNow());
  if (tab === 'memory') return data.memory;
  return timeline;
}

const isHidden = row => !row.mark && row.points && (() => { const it = stands(row, seqNow()); return it && !isRead(it); })();

function show() {
  const isBoard = now.tab === 'todos';
  $('board').hidden = !isBoard;
  $('list').hidden = isBoard;
  $('tools').hidden = isBoard;
  $('narrow').hidden = now.tab !== 'history' && now.tab !== 'context';
  for (const tab of $('tabs').children) {
    const is = tab.dataset.tab === now.tab;
    tab.setAttribute('aria-selected', is);
    tab.tabIndex = is ? 0 : -1;
  }
  const turn = turns[now.turn];
  $('turn').value = now.turn;
  $('point').textContent = turn ? 'turn ' + turn.turn + ' of ' + turns[turns.length - 1].turn + ', #' + seqNow() : '#' + session.at;
  if (turn) cursor(now.turn);
  if (isBoard) { drawTodos($('board'), seqNow()); return; }
  let rows = rowsOf(now.tab);
  const all = rows.length;
  if (!$('narrow').hidden && $('hidden-only').checked) rows = rows.filter(isHidden);
  if (now.query) rows = rows.filter(row => matches(row, now.query));
  list.set(rows, rows.indexOf(now.selected));
  $('count').textContent = rows.length === all ? plural(all, 'row') : rows.length + ' of ' + plural(all, 'row');
}

function textBlock(place) {
  const block = el('pre', problems.has(place) ? 'problem' : '', visible(text(place)));
  block.dir = 'auto';
  block.tabIndex = 0;
  return block;
}

function section(box, heading, ...children) {
  box.append(el('h3', '', heading), ...children);
}

function describeItem(box, item) {
  const at = Math.max(seqNow(), item.seq);
  const it = stands(item, at);
  box.append(el('h2', '', item.id + ' ' + oneLine(whatOf(item), 60)), el('p', '', el('bdi', '', oneLine(item.about, 200))));
  const facts = ['turn ' + item.turn];
  if (session.began > 0) facts.push(new Date(session.began / 1000 + item.seconds * 1000).toISOString().slice(0, 19).replace('T', ' '));
  facts.push('~' + brief(item.tokens[0] + item.tokens[1]) + ' tokens recorded, ' + brief(it.tokens) + ' shown');
  if (item.hash) facts.push(item.hash);
  if (item.call) facts.push(oneLine(item.call, 80));
  box.append(el('p', 'why', facts.join(' · ')));
  const why = stale(item, at);
  if (why.length) why.push(' since #' + edgeOf(item, at).seq, standing(it) ? ', ' : '');
  box.append(el('p', '', ...why, standing(it) || (why.length ? '' : 'current, whole')));
  if (item.newer.length || item.older.length) section(box, 'Chain', drawChain(chainOf(item, at), item, at));
  if (it.inputText >= 0) section(box, 'Current, of the parameters', textBlock(it.inputText));
  if (it.outputText >= 0) section(box, 'Current', textBlock(it.outputText));
  const input = inputOf(item, at);
  if (input >= 0) section(box, 'Parameters as recorded', textBlock(input));
  const content = contentOf(item, at);
  if (content.length) section(box, item.kind === 'call' ? 'Result as recorded' : 'As recorded', ...content.map(textBlock));
  else if (item.kind === 'call') section(box, 'Result', el('p', 'why', 'none yet'));
}

function describeMemory(box, memory) {
  box.append(el('h2', '', word(memory.kind) + ' ' + memory.place), el('p', '', memory.id + ' · #' + memory.seq + ' · ' + word(memory.standing) + ' · confidence ' + memory.confidence.toFixed(2)));
  if (memory.value >= 0) section(box, 'Value', textBlock(memory.value));
  const past = data.memory.filter(other => other.by === memory.id);
  if (memory.by) section(box, 'Superseded by', el('p', '', memory.by + ' at #' + memory.ended));
  if (past.length) section(box, 'It superseded', ...past.map(other => el('p', '', other.id + ': ' + oneLine(text(other.value), 200))));
}

// Selects a row of the list, or an item wherever it is.
function select(row, center) {
  now.selected = row;
  const box = $('detail');
  box.replaceChildren();
  if (!row) { box.hidden = true; list.pick(-1); return; }
  const close = el('button', 'close', 'Close');
  close.type = 'button';
  close.addEventListener('click', () => { select(null); $('list').focus(); });
  box.append(close);
  if (row.mark) box.append(el('h2', '', row.id + ' ' + row.kind), el('p', '', 'turn ' + row.turn), textOf(row.says));
  else if (row.members) { box.append(el('h2', '', plural(row.members.length, 'member') + ', ' + brief(row.freed) + ' tokens freed')); box.append(drawChain(row, null, seqNow())); }
  else if (row.points) describeItem(box, row);
  else describeMemory(box, row);
  box.hidden = false;
  box.scrollTop = 0;
  list.pick(list.rows.indexOf(row), center);
}

function textOf(it) {
  const block = el('pre', '', visible(it));
  block.dir = 'auto';
  return block;
}

// Goes to an item, in the list if it is there, else in the history.
function follow(id) {
  const item = byId.get(id);
  if (!item) return;
  if (now.tab !== 'history' && !(now.tab === 'context' && list.rows.includes(item))) setTab('history');
  if (!list.rows.includes(item)) { now.query = ''; $('search').value = ''; $('hidden-only').checked = false; show(); }
  select(item, true);
}

function setTab(tab) {
  now.tab = tab;
  $('list').scrollTop = 0;
  now.selected = null;
  $('detail').hidden = true;
  show();
}

function setTurn(turn) {
  if (!turns.length) return;
  now.turn = Math.max(0, Math.min(turns.length - 1, turn));
  const kept = now.selected && (now.selected.mark || now.selected.points || now.selected.place !== undefined) ? now.selected : null;
  show();
  if (kept && !$('detail').hidden) select(kept); else if (!kept) $('detail').hidden = true;
}

function step(by) {
  const place = Math.max(0, Math.min(list.rows.length - 1, (list.picked < 0 ? -1 : list.picked) + by));
  if (list.rows.length) select(list.rows[place]);
}

function keys(event) {
  const typing = event.target.id === 'search';
  if (event.key === 'Escape') { if (typing) $('list').focus(); else select(null); return; }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const inText = event.target.closest && event.target.closest('#detail pre');
  const page = Math.max(1, Math.floor($('list').clientHeight / list.height()) - 1);
  const selected = now.selected && now.selected.points ? now.selected : null;
  const acts = {
    ArrowDown: () => step(1), ArrowUp: () => step(-1), j: () => step(1), k: () => step(-1), PageDown: () => step(page), PageUp: () => step(-page),
    Home: () => step(-1e9), End: () => step(1e9), '[': () => setTurn(now.turn - 1), ']': () => setTurn(now.turn + 1), '/': () => $('search').focus(),
    n: () => { const edge = selected && edgeOf(selected, seqNow()); if (edge && edge.next >= 0) follow(items[edge.next].id); },
    p: () => { if (selected && selected.older.length) follow(items[selected.older[0].old].id); },
  };
  TABS.forEach(([tab], n) => { acts[n + 1] = () => setTab(tab); });
  const moves = event.key.startsWith('Arrow') || event.key.startsWith('Page') || event.key === 'Home' || event.key === 'End';
  if (moves && (inText || event.target.id === 'turn' || event.target.getAttribute('role') === 'tab' || now.tab === 'todos')) return;
  if (acts[event.key]) { acts[event.key](); event.preventDefault(); }
}

$('title').textContent = oneLine(session.title, 200);
const end = turns[turns.length - 1];
$('facts').textContent = [session.host, session.id, plural(turns.length, 'turn'), plural(items.length, 'item'), plural(edges.length, 'supersession'),
  end ? '~' + brief(end.shown) + ' of ' + brief(end.recorded) + ' tokens shown' : '', 'policy ' + session.policy, session.program].filter(Boolean).map(it => oneLine(it, 100)).join(' · ');
for (const [tab, label] of TABS) {
  const button = el('button', '', label);
  button.type = 'button';
  button.dataset.tab = tab;
  button.setAttribute('role', 'tab');
  button.setAttribute('aria-controls', 'panel');
  button.addEventListener('click', () => setTab(tab));
  $('tabs').append(button);
}
$('tabs').addEventListener('keydown', event => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by) return;
  const place = TABS.findIndex(([tab]) => tab === now.tab);
  setTab(TABS[(place + by + TABS.length) % TABS.length][0]);
  $('tabs').querySelector('[aria-selected="true"]').focus();
});
const cursor = turns.length ? drawTokens($('tokens'), setTurn) : null;
if (turns.length < 2) $('slider').hidden = true;
$('turn').max = Math.max(0, turns.length - 1);
$('turn').addEventListener('input', () => setTurn(Number($('turn').value)));
$('earlier').addEventListener('click', () => setTurn(now.turn - 1));
$('later').addEventListener('click', () => setTurn(now.turn + 1));
let typed = 0;
$('search').addEventListener('input', () => {
  clearTimeout(typed);
  typed = setTimeout(() => { now.query = $('search').value.trim().toLowerCase(); $('list').scrollTop = 0; show(); }, 80);
});
$('hidden-only').addEventListener('change', show);
$('list').addEventListener('click', event => {
  const row = event.target.closest('.row');
  if (row && !event.target.closest('.jump')) select(list.rows[Number(row.dataset.place)]);
});
document.addEventListener('click', event => {
  const link = event.target.closest('.jump');
  if (link) follow(link.dataset.item);
});
document.addEventListener('keydown', keys);
for (const [key, says] of [['j k', 'rows'], ['n', 'superseder'], ['p', 'superseded'], ['[ ]', 'turn'], ['/', 'search'], ['1-5', 'views'], ['Esc', 'close']]) {
  $('keys').append(el('kbd', '', key), ' ' + says + '  ');
}
show();
// `#812` or `#812.2` behind the file's name selects an item.
if (byId.has(location.hash)) follow(location.hash);
