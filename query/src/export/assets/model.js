// The data, and the part of it that held at a seq. Mirrors page_data.rs; knows nothing of the document's parts.

const read = id => JSON.parse(document.getElementById(id).textContent);
let texts, page, problems;
function hold(newTexts, newPage) {
  texts = newTexts;
  page = newPage;
  problems = new Set(page.problems);
}
hold(read('texts'), read('data'));
// The data of the shown session: the session of the page, or a subagent of it.
let data, words, session, items, byId, edges, marks, turns, requests, timeline;
const word = place => place < 0 ? '' : words[place];
// A picture is a line that describes it, and an address that holds it.
const PICTURE = /^(\[media [^\n]*\])\n(data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+\/=]+)$/;
const pictureOf = place => place >= 0 && texts[place].startsWith('[media ') ? PICTURE.exec(texts[place]) : null;
const text = place => { const picture = pictureOf(place); return picture ? picture[1] : place < 0 ? '' : texts[place]; };

// Times are UTC: the page says the same wherever it is read.
const hasTimes = () => session.began > 0;
const timeOf = seconds => new Date(session.began / 1000 + seconds * 1000).toISOString();
const clock = seconds => hasTimes() ? timeOf(seconds).slice(11, 19) : '';
const dateTime = seconds => hasTimes() ? timeOf(seconds).slice(0, 19).replace('T', ' ') : '';

const STATES = ['whole', 'tombstone', 'summary', 'shortened', 'gone', 'absent'];
const STATUSES = ['', 'pending', 'completed', 'failed', 'aborted'];

// Makes a session of the page the one that everything below is about.
function load(place) {
  data = page.sessions[place];
  words = data.words;
  session = data.session;
  items = data.items.map((row, ix) => {
    const [seq, part, kind, role, turn, seconds, tool, about, hash, call, tokens, inputs, contents, points] = row;
    const id = '#' + seq + (part > 1 ? '.' + part : '');
    return { ix, id, seq, kind: word(kind), role: word(role), turn, seconds, tool: word(tool), about: word(about),
      hash, call, tokens, inputs, contents, points, newer: [], older: [] };
  });
  byId = new Map(items.map(item => [item.id, item]));
  edges = data.edges.map(([old, next, rule, key, seq, turn, released]) =>
    ({ old, next, rule: word(rule), key: word(key), seq, turn, released: released === 1 }));
  for (const edge of edges) {
    items[edge.old].newer.push(edge);
    if (edge.next >= 0) items[edge.next].older.push(edge);
  }
  marks = data.marks.map(([seq, turn, kind, says]) => ({ mark: true, id: '#' + seq, seq, turn, kind: word(kind), says }));
  timeline = items.concat(marks).sort((a, b) => a.seq - b.seq || (a.mark ? 1 : 0) - (b.mark ? 1 : 0) || a.ix - b.ix);
  requests = data.requests.map(([seq, turn, model, input, cacheRead, cacheWrite, output, cost]) =>
    ({ seq, turn, model: word(model), input, cacheRead, cacheWrite, output, cost }));
  turns = data.turns.map(([turn, seq, shown, whole, recorded]) => ({ row: 'turn', turn, seq, shown, whole, recorded, first: null, last: null,
    items: [], calls: 0, failed: 0, requests: 0, input: 0, cacheRead: 0, cacheWrite: 0, output: 0, cost: null }));
  // The newest turn goes on until the page was made.
  if (turns.length) turns[turns.length - 1].seq = session.at;
  const byTurn = new Map(turns.map(turn => [turn.turn, turn]));
  for (const [turn, first, last] of data.spans) {
    const of = byTurn.get(turn);
    if (of) { of.first = first; of.last = last; }
  }
  const answering = answeringTurns();
  for (const row of timeline) {
    const of = answering.get(row) || byTurn.get(row.turn) || turns[0];
    if (!of) continue;
    of.items.push(row);
    if (row.kind === 'call') of.calls += 1;
  }
  for (const request of requests) {
    const of = byTurn.get(request.turn) || turns[0];
    if (!of) continue;
    of.requests += 1;
    for (const field of ['input', 'cacheRead', 'cacheWrite', 'output']) of[field] += request[field];
    if (request.cost !== null) of.cost = (of.cost || 0) + request.cost;
  }
}

const isPrompt = row => !row.mark && row.role === 'user' && row.kind === 'text';

// The turn that answers a prompt, for prompts with which a turn ends: it is read with its answer.
function answeringTurns() {
  const found = new Map(), busy = new Set(), next = new Map();
  turns.forEach((turn, n) => { if (n + 1 < turns.length) next.set(turn.turn, turns[n + 1]); });
  for (const row of timeline.slice().reverse()) {
    if (!isPrompt(row)) { if (!row.mark) busy.add(row.turn); continue; }
    if (!busy.has(row.turn) && next.has(row.turn)) found.set(row, next.get(row.turn));
  }
  return found;
}

// The subagents that a session started, by the call that did; `''` for those of which no call is known.
function startedBy(place) {
  const started = new Map();
  page.sessions.forEach((other, number) => {
    if (other.session.parent !== place) return;
    const call = other.session.call || '';
    started.set(call, (started.get(call) || []).concat(number));
  });
  return started;
}

// The last of rows that begin with a seq, up to `at`.
function last(rows, at) {
  let low = 0, high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle][0] <= at) low = middle + 1; else high = middle;
  }
  return low ? rows[low - 1] : null;
}

// Where an item stood at a seq; null before it was recorded.
function stands(item, at) {
  const point = last(item.points, at);
  if (!point) return null;
  const [since, flags, input, output, hidden] = point;
  const [cause, by, shown, inputText, outputText] = hidden || [-1, -1, item.tokens, -1, -1];
  const inContext = (flags & 1) === 1;
  const tokens = input === 5 && output === 5 ? 0 : shown[0] + (output === 5 ? 0 : shown[1]);
  return { since, inContext, pinned: (flags & 2) !== 0, superseded: (flags & 4) !== 0, status: STATUSES[flags >> 3], input: STATES[input],
    output: STATES[output], cause: word(cause), by, tokens: inContext ? tokens : 0, inputText, outputText };
}

// Whether the model could read an item's content at a seq.
const isRead = it => it && it.inContext && (it.output === 'whole' || it.output === 'shortened' || it.output === 'absent');

// The items of the context at a seq, in the order of the conversation.
function contextAt(at) {
  const order = last(data.orders, at);
  const listed = order ? order[2] : [];
  const from = order ? order[1] : 0;
  const seen = new Set(listed);
  const all = listed.map(ix => items[ix]).concat(items.filter(item => item.ix >= from && !seen.has(item.ix)));
  if (from > 0) {
    // An item that left and came back stands where it was recorded.
    const back = items.filter(item => item.ix < from && !seen.has(item.ix));
    all.push(...back);
  }
  return all.filter(item => { const it = stands(item, at); return it && it.inContext; });
}

// An item, all that it superseded and all that superseded it, at a seq; oldest first.
function chainOf(item, at) {
  const members = new Set([item.ix]);
  const used = new Set();
  for (const ahead of [false, true]) {
    const open = [item.ix];
    while (open.length && members.size < 400) {
      const member = items[open.pop()];
      for (const edge of ahead ? member.newer : member.older) {
        if (edge.seq > at) continue;
        used.add(edge);
        const next = ahead ? edge.next : edge.old;
        if (next >= 0 && !members.has(next)) { members.add(next); open.push(next); }
      }
    }
  }
  return { members: [...members].sort((a, b) => a - b).map(ix => items[ix]), edges: [...used] };
}

// All chains at a seq, those that free most first.
function chainsAt(at) {
  const group = new Map();
  const root = ix => { while (group.has(ix) && group.get(ix) !== ix) { group.set(ix, group.get(group.get(ix)) ?? group.get(ix)); ix = group.get(ix); } return ix; };
  const found = edges.filter(edge => edge.seq <= at);
  for (const edge of found) {
    const one = root(edge.old), other = edge.next >= 0 ? root(edge.next) : one;
    group.set(one, Math.max(one, other));
    group.set(other, Math.max(one, other));
  }
  const chains = new Map();
  for (const edge of found) {
    const key = root(edge.old);
    const chain = chains.get(key) || { members: new Set(), edges: [], freed: 0, rules: new Set() };
    chain.members.add(edge.old);
    if (edge.next >= 0) chain.members.add(edge.next);
    chain.edges.push(edge);
    chain.freed += freedBy(edge, at);
    chain.rules.add(edge.rule);
    chains.set(key, chain);
  }
  const list = [...chains.values()].map(chain => ({ ...chain, members: [...chain.members].sort((a, b) => a - b).map(ix => items[ix]) }));
  return list.sort((a, b) => b.freed - a.freed || a.members[0].ix - b.members[0].ix);
}

// The recorded texts of an item at a seq.
const inputOf = (item, at) => { const row = last(item.inputs, at); return row ? row[1] : -1; };
const contentOf = (item, at) => { const row = last(item.contents, at); return row ? row[1] : []; };

// Of a path, its end, which tells more than its beginning.
function nearPath(path) {
  const parts = /^(\/|\\\\|[A-Za-z]:[\\/])/.test(path) && !/\n/.test(path) ? path.split(/[\\/]/) : [];
  return parts.length > 5 ? '…/' + parts.slice(-3).join('/') : path;
}

// Parameters that say best what a call is about, the first of them first.
const TELLING = ['command', 'cmd', 'script', 'pattern', 'query', 'file_path', 'filePath', 'path', 'url', 'description', 'subject', 'prompt', 'name', 'id', 'taskId'];

// What parameters are about, in a line: the value that tells most, without its name.
function subjectOf(it) {
  let value;
  try { value = JSON.parse(it); } catch { return it; }
  if (typeof value === 'string') return value;
  if (!value || typeof value !== 'object') return it;
  const list = Object.values(value).find(Array.isArray);
  const plain = name => typeof value[name] === 'string' || typeof value[name] === 'number';
  const best = TELLING.find(name => plain(name) && String(value[name]).trim());
  if (best) return nearPath(String(value[best]).trim().split('\n')[0]);
  if (list) return plural(list.length, 'item');
  const any = Object.keys(value).find(plain);
  return any ? String(value[any]).trim().split('\n')[0] : Object.keys(value).length ? it : '';
}

// The subject of an item, in a line.
function about(item, at) {
  // A key with a digest tells nothing, and that of a search is made of parts.
  const isPlain = item.about && !/~[0-9a-f]{16}/.test(item.about) && !/^(glob|grep|list):/i.test(item.about);
  if (isPlain) return nearPath(item.about);
  if (item.kind === 'call') return subjectOf(text(inputOf(item, at)));
  return text(contentOf(item, at)[0] ?? -1);
}

const whatOf = row => row.mark ? row.kind : row.tool || (row.kind === 'text' ? row.role : row.kind === 'reasoning' ? 'reasoning' : row.kind === 'injected' ? 'injected' : row.role + ' ' + row.kind);
const laneOf = row => row.mark || row.kind === 'injected' || row.role === 'system' ? 3 : row.kind === 'call' || row.kind === 'result' ? 2 : row.role === 'user' ? 0 : 1;

// The edge by which a rule made an item stale at a seq, also if another cause is shown.
const edgeOf = (item, at) => item.newer.find(edge => edge.seq <= at && !edge.released);

// Tokens that the context at a seq is shorter by because of an edge.
function freedBy(edge, at) {
  const item = items[edge.old], it = stands(item, at);
  const is = it && it.inContext && it.superseded && it.by === edge.next && it.cause === edge.rule;
  return is ? Math.max(0, item.tokens[0] + item.tokens[1] - it.tokens) : 0;
}

const CAUSES = { left: 'left the context', lost: 'lost to damage', 'off branch': 'on a branch that was left' };

// Where an item stands, in words, behind its superseder, which stands apart, as it can be followed.
function standing(it) {
  if (!it) return 'not there yet';
  const said = [];
  if (it.superseded) said.push('');
  else if (it.cause) said.push(CAUSES[it.cause] || it.cause);
  else if (!it.inContext) said.push('not in the context');
  if (it.output === 'shortened') said.push('shortened');
  else if (it.cause && it.output === 'whole' && it.inContext && it.input === 'whole') said.push('still whole');
  if (it.status === 'pending' || it.status === 'failed' || it.status === 'aborted') said.push(it.status);
  if (it.pinned) said.push('pinned');
  return said.filter(Boolean).join(', ');
}
