// The page: tabs, the point in time, the list, the selected row, keys.

const $ = id => document.getElementById(id);
const TABS = [['talk', 'Conversation'], ['history', 'History'], ['context', 'Context'], ['chains', 'Chains'], ['turns', 'Turns'], ['todos', 'Todos'], ['memory', 'Memory']];
const now = { session: 0, tab: 'talk', turn: 0, selected: null, query: '', pattern: null };
const seqNow = () => now.turn >= turns.length - 1 ? session.at : turns[now.turn].seq;

function cells(row, kind, lane, id, turn, what, said, tokens, stands) {
  const dot = el('i', 'lane-' + lane);
  const aboutCell = el('span', 'about', oneLine(said));
  const element = el('div', 'row ' + kind, el('span', 'id', id), el('span', 'turn', turn), el('span', 'lane', dot), el('span', 'what', what), aboutCell,
    el('span', 'tokens', tokens), el('span', 'stands', ...stands));
  return element;
}

// The item or event that made an item stale, with a link to it.
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
  const plain = now.pattern ? excerptOf(item, at) : now.tab === 'context' && it && !isRead(it) && it.outputText >= 0 ? text(it.outputText) : about(item, later ? item.seq : at) || '';
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

const TURN_COLUMNS = ['turn', 'time', 'duration', 'calls', 'context', 'input', 'read', 'written', 'output', 'cost'];
function turnRow(turn) {
  const some = n => turn.requests ? brief(n) : '';
  const cells = ['t' + turn.turn, turn.first === null ? '' : dateTime(turn.first), turn.first === null ? '' : lasted(turn.last - turn.first), turn.calls || '',
    brief(turn.shown), some(turn.input), some(turn.cacheRead), some(turn.cacheWrite), some(turn.output), dollars(turn.cost)];
  return el('div', 'row turn-row' + (turn.seq > seqNow() ? ' later' : ''), ...cells.map((cell, n) => el('span', TURN_COLUMNS[n], String(cell))));
}

const makers = { history: row => row.mark ? markRow(row) : itemRow(row), context: itemRow, chains: chainRow, memory: memoryRow, turns: turnRow };
const list = new VirtualList($('list'), $('rows'), row => highlight(makers[now.tab](row), now.pattern));
const talk = new Talk($('talk'), open);

// The line in which a row was found.
function excerptOf(item, at) {
  const places = item.inputs.map(([, place]) => place).concat(...item.contents.map(([, found]) => found));
  const hit = places.map(text).find(it => now.pattern.test(it));
  if (hit === undefined || now.pattern.test(item.about)) return about(item, at) || '';
  const place = hit.search(now.pattern);
  return (place > 12 ? '…' : '') + hit.slice(Math.max(0, place - 12), place + 280);
}

// Whether a row matches the search.
function matches(row) {
  const has = it => now.pattern.test(it);
  if (row.row === 'turn') return row.items.some(matches);
  if (row.mark) return has(row.id) || has(row.kind) || has(row.says);
  if (row.members) return row.members.some(matches);
  if (row.value !== undefined) return has(row.id) || has(row.place) || has(text(row.value));
  const it = stands(row, seqNow());
  return has(row.id) || has(whatOf(row)) || has(row.about) || has(row.call) || has(row.hash) || (it && has(standing(it))) || row.newer.some(edge => has(edge.rule))
    || row.inputs.some(([, place]) => has(text(place))) || row.contents.some(([, places]) => places.some(place => has(text(place))));
}

function setQuery(query) {
  now.query = query.trim();
  now.pattern = now.query ? new RegExp(now.query.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i') : null;
}

function rowsOf(tab) {
  if (tab === 'context') return contextAt(seqNow());
  if (tab === 'chains') return chainsAt(seqNow());
  if (tab === 'memory') return data.memory;
  if (tab === 'turns') return turns;
  if (tab === 'talk') return timeline.filter(row => row.seq <= seqNow());
  return timeline;
}

const isHidden = row => !row.mark && row.points && (() => { const it = stands(row, seqNow()); return it && !isRead(it); })();

function show() {
  const isBoard = now.tab === 'todos';
  $('board').hidden = !isBoard;
  $('talk').hidden = now.tab !== 'talk';
  $('list').hidden = isBoard || now.tab === 'talk';
  $('columns').hidden = now.tab !== 'turns';
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
  let rows = isBoard ? [] : rowsOf(now.tab);
  const all = rows.length;
  if (!$('narrow').hidden && $('hidden-only').checked) rows = rows.filter(isHidden);
  $('kind').hidden = now.tab !== 'talk' && now.tab !== 'history' && now.tab !== 'context';
  $('prompts').hidden = now.tab !== 'talk' || $('prompts').length < 3;
  const kind = $('kind').hidden ? '' : $('kind').value;
  if (kind) rows = rows.filter(row => kindOf(row) === kind);
  if (now.pattern) rows = rows.filter(matches);
  list.set(rows, rows.indexOf(now.selected));
  if (isBoard) drawTodos($('board'), seqNow());
  if (now.tab === 'talk') talk.set(seqNow(), rows, now.pattern, Boolean(kind));
  $('count').textContent = rows.length === all ? plural(all, 'row') : rows.length + ' of ' + plural(all, 'row');
  tellAddress();
}

const KINDS = [['', 'all kinds'], ['user', 'prompts'], ['assistant', 'answers'], ['tool', 'calls'], ['reasoning', 'reasoning'], ['other', 'other']];
const kindOf = row => row.mark || row.kind === 'injected' ? 'other' : row.kind === 'call' || row.kind === 'result' ? 'tool' : row.kind === 'reasoning' ? 'reasoning'
  : row.role === 'user' || row.role === 'assistant' ? row.role : 'other';

const choice = (value, says) => { const option = el('option', '', says); option.value = value; return option; };

// The prompts, as a way through a long conversation. Texts in tags are of the host.
function listPrompts() {
  const said = row => oneLine(text(contentOf(row, row.seq)[0] ?? -1), 80);
  const prompts = timeline.filter(row => isPrompt(row) && said(row) && !said(row).startsWith('<'));
  $('prompts').replaceChildren(choice('', plural(prompts.length, 'prompt')), ...prompts.map(row => choice(row.id, 't' + row.turn + '  ' + said(row))));
}

// Selects a row of the list, or an item wherever it is.
function select(row, center) {
  now.selected = row;
  const box = $('detail');
  box.replaceChildren();
  tellAddress();
  if (!row) { box.hidden = true; list.pick(-1); talk.reveal({}); return; }
  const close = el('button', 'close', 'Close');
  close.type = 'button';
  close.addEventListener('click', () => { select(null); $('list').focus(); });
  box.append(close);
  if (row.mark) box.append(el('h2', '', row.id + ' ' + row.kind), el('p', '', 'turn ' + row.turn), codeBlock(row.says));
  else if (row.row === 'turn') describeTurn(box, row);
  else if (row.members) { box.append(el('h2', '', plural(row.members.length, 'member') + ', ' + brief(row.freed) + ' tokens freed')); box.append(drawChain(row, null, seqNow())); }
  else if (row.points) describeItem(box, row);
  else describeMemory(box, row);
  highlight(box, now.pattern);
  box.hidden = false;
  box.scrollTop = 0;
  list.pick(list.rows.indexOf(row), center);
  if (now.tab === 'talk') talk.reveal(row);
}

// Goes to an item, in the list if it is there, else in the history.
function follow(id) {
  const item = byId.get(id);
  if (!item) return;
  if (!list.rows.includes(item) && now.tab !== 'talk') setTab('history');
  if (item.seq > seqNow()) setTurn(turns.findIndex(turn => turn.turn >= item.turn));
  if (!list.rows.includes(item)) { setQuery(''); $('search').value = ''; $('hidden-only').checked = false; $('kind').value = ''; show(); }
  select(item, true);
}

function setTab(tab) {
  now.tab = tab;
  $('list').scrollTop = 0;
  now.selected = null;
  $('detail').hidden = true;
  show();
  if (now.turn < turns.length - 1) revealTurn();
}

// Brings the newest row at the end of the turn into sight.
function revealTurn() {
  const turn = turns[now.turn], at = seqNow();
  if (now.tab === 'talk') talk.revealTurn(turn);
  else if (now.tab === 'turns') list.reveal(list.rows.indexOf(turn));
  else if (now.tab === 'history' || now.tab === 'context' || now.tab === 'memory') list.reveal(list.rows.findLastIndex(row => row.seq <= at));
}

function setTurn(turn) {
  if (!turns.length) return;
  now.turn = Math.max(0, Math.min(turns.length - 1, turn));
  const kept = now.selected && !now.selected.members ? now.selected : null;
  show();
  if (kept && !$('detail').hidden) select(kept); else if (!kept) $('detail').hidden = true;
  revealTurn();
}

// Shows another session of the page: a subagent, or the one that started it.
function open(place) {
  now.session = place;
  load(place);
  now.turn = Math.max(0, turns.length - 1);
  now.selected = null;
  $('detail').hidden = true;
  setQuery('');
  $('search').value = '';
  surround();
  $('list').scrollTop = 0;
  show();
}

// Dollars of a session and of the subagents below it, as lists of sessions tell them; null without a price.
function costOf(place) {
  const below = page.sessions.map((_, number) => number).filter(number => page.sessions[number].session.parent === place);
  const own = page.sessions[place].requests.map(request => request[7]);
  const known = own.concat(below.map(costOf)).filter(cost => cost !== null);
  return known.length ? known.reduce((sum, cost) => sum + cost, 0) : null;
}

// Fills the frame around the views: title, figures, links to other sessions, the picture of tokens.
function surround() {
  const place = now.session;
  const longest = items.reduce((most, item) => Math.max(most, item.id.length), 3);
  document.documentElement.style.setProperty('--id', longest + 1 + 'ch');
  $('title').textContent = oneLine(session.title, 200);
  const end = turns[turns.length - 1];
  const cost = costOf(place);
  const isShared = page.sessions.some(other => other.session.parent === place);
  $('facts').textContent = [session.host, session.id, hasTimes() ? dateTime(0) + ' UTC' : '', plural(turns.length, 'turn'), plural(items.length, 'item'), plural(edges.length, 'supersession'),
    end ? (session.sent ? '~' : 'would show ~') + brief(end.shown) + ' of ' + brief(end.recorded) + (session.sent ? ' tokens shown' : ' tokens') : '', cost === null ? '' : dollars(cost) + (isShared ? ' with subagents' : ''), 'policy ' + session.policy, session.program].filter(Boolean).map(it => oneLine(it, 100)).join(' · ');
  const ways = [];
  if (session.parent >= 0) ways.push([session.parent, 'back to ' + (page.sessions[session.parent].session.title || 'what started it')]);
  for (const numbers of startedBy(place).values()) for (const number of numbers) ways.push([number, 'subagent: ' + (page.sessions[number].session.title || page.sessions[number].session.id)]);
  $('ways').replaceChildren(...ways.map(([number, label]) => {
    const way = el('button', 'way', oneLine(label, 60));
    way.type = 'button';
    way.addEventListener('click', () => open(number));
    return way;
  }));
  $('ways').hidden = !ways.length;
  $('tokens').replaceChildren();
  cursor = turns.length ? drawTokens($('tokens'), setTurn) : null;
  $('slider').hidden = turns.length < 2;
  $('turn').max = Math.max(0, turns.length - 1);
  listPrompts();
  const holds = { chains: edges.length, todos: data.todos.versions.length, memory: data.memory.length };
  for (const tab of $('tabs').children) tab.hidden = holds[tab.dataset.tab] === 0;
  if (holds[now.tab] === 0) now.tab = 'talk';
}

// The address of the shown place: `#t40`, `#812`, `#context/t40/812`; `s2` is the page's second further session.
function address() {
  const parts = [];
  if (now.session > 0) parts.push('s' + now.session);
  if (now.tab !== 'talk') parts.push(now.tab);
  if (now.turn < turns.length - 1) parts.push('t' + turns[now.turn].turn);
  if (now.selected && now.selected.points) parts.push(now.selected.id.slice(1));
  return parts.length ? '#' + parts.join('/') : '';
}

let told = null;
function tellAddress() {
  const it = address();
  if (it === told) return;
  told = it;
  // Some browsers refuse this for files; the page works without.
  try { window.history.replaceState(null, '', it || '#'); } catch { told = null; }
}

function goTo(hash) {
  const parts = hash.replace(/^#/, '').split('/').filter(Boolean);
  const place = Number((parts.find(part => /^s\d+$/.test(part)) || 's0').slice(1));
  if (place !== now.session && page.sessions[place]) open(place);
  const tab = parts.find(part => TABS.some(([name]) => name === part));
  const turn = parts.find(part => /^t\d+$/.test(part));
  const id = parts.find(part => byId.has('#' + part));
  // The calls below set addresses of their own.
  if ((tab || 'talk') !== now.tab) setTab(tab || 'talk');
  const found = turn ? turns.findIndex(it => it.turn >= Number(turn.slice(1))) : turns.length - 1;
  if (found >= 0 && found !== now.turn) setTurn(found);
  if (id) follow('#' + id);
}

function step(by) {
  const place = Math.max(0, Math.min(list.rows.length - 1, (list.picked < 0 ? -1 : list.picked) + by));
  if (list.rows.length) select(list.rows[place]);
}

// Keys that scroll the conversation, and which way.
const SCROLLS = { ArrowDown: 1, ArrowUp: -1, PageDown: 1, PageUp: -1, ' ': 1, Home: 'end', End: 'end' };

function keys(event) {
  const typing = event.target.id === 'search';
  // In the search, Enter goes from hit to hit.
  if (typing && event.key === 'Enter') { if (now.pattern && now.query === $('search').value.trim()) step(event.shiftKey ? -1 : 1); event.preventDefault(); return; }
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
  TABS.forEach(([tab], n) => { if (!$('tabs').children[n].hidden) acts[n + 1] = () => setTab(tab); });
  // The conversation is read as any text: keys scroll it.
  const own = event.target.closest && event.target.closest('button, summary, select, input, pre');
  if (now.tab === 'talk' && !own && SCROLLS[event.key]) {
    const box = $('talk'), room = box.clientHeight;
    talk.aimed = null;
    if (SCROLLS[event.key] === 'end') box.scrollTop = event.key === 'End' ? box.scrollHeight : 0;
    else box.scrollBy(0, SCROLLS[event.key] * (event.key.startsWith('Arrow') ? 60 : (event.shiftKey ? -1 : 1) * room * .9));
    event.preventDefault();
    return;
  }
  const moves = event.key.startsWith('Arrow') || event.key.startsWith('Page') || event.key === 'Home' || event.key === 'End';
  if (moves && (inText || event.target.id === 'turn' || event.target.getAttribute('role') === 'tab' || now.tab === 'todos')) return;
  if (acts[event.key]) { acts[event.key](); event.preventDefault(); }
}

let cursor = null;
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
  const there = TABS.filter((_, n) => !$('tabs').children[n].hidden);
  const place = there.findIndex(([tab]) => tab === now.tab);
  setTab(there[(place + by + there.length) % there.length][0]);
  $('tabs').querySelector('[aria-selected="true"]').focus();
});
$('turn').addEventListener('input', () => setTurn(Number($('turn').value)));
$('earlier').addEventListener('click', () => setTurn(now.turn - 1));
$('later').addEventListener('click', () => setTurn(now.turn + 1));
let typed = 0;
$('search').addEventListener('input', () => {
  clearTimeout(typed);
  typed = setTimeout(() => { setQuery($('search').value); $('list').scrollTop = 0; $('talk').scrollTop = 0; show(); }, 120);
});
$('hidden-only').addEventListener('change', show);
$('kind').append(...KINDS.map(([value, says]) => choice(value, says)));
$('kind').addEventListener('change', show);
$('prompts').addEventListener('change', () => { const id = $('prompts').value; $('prompts').value = ''; if (id) follow(id); });
$('list').addEventListener('click', event => {
  const row = event.target.closest('.row');
  if (row && !event.target.closest('.jump')) select(list.rows[Number(row.dataset.place)]);
});
document.addEventListener('click', event => {
  const link = event.target.closest('.jump');
  if (link) follow(link.dataset.item);
});
document.addEventListener('keydown', keys);
for (const [key, says] of [['j k', 'rows'], ['n', 'superseder'], ['p', 'superseded'], ['[ ]', 'turn'], ['/', 'search'], ['1-7', 'views'], ['Esc', 'close']]) {
  $('keys').append(el('kbd', '', key), ' ' + says + '  ');
}
$('columns').append(...TURN_COLUMNS.map(name => el('span', name, name)));
// On paper everything is there.
window.addEventListener('beforeprint', () => { list.all = talk.all = true; list.draw(); talk.fill(); });
window.addEventListener('afterprint', () => { list.all = talk.all = false; list.forget(); list.draw(); });
if (page.index) { $('index').href = page.index; $('index').hidden = false; }
const asked = location.hash;
open(0);
goTo(asked);
// Keys scroll the conversation at once.
if (now.tab === 'talk') $('talk').focus({ preventScroll: true });
window.addEventListener('hashchange', () => goTo(location.hash));
