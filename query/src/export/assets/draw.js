// Pictures: the context over turns, a chain as a graph, todos over time. Plain SVG.

// A link that selects an item.
function jump(item, label) {
  const link = el('button', 'jump', label || item.id);
  link.type = 'button';
  link.tabIndex = -1;
  link.dataset.item = item.id;
  return link;
}

// Stacked: shown, hidden by supersession and acts, no longer part of the context.
function drawTokens(box, onPick) {
  const WIDTH = 1000, HEIGHT = 120;
  const most = Math.max(1, ...turns.map(turn => turn.recorded));
  const x = place => turns.length < 2 ? WIDTH : place * WIDTH / (turns.length - 1);
  const y = tokens => (HEIGHT - tokens * (HEIGHT - 6) / most).toFixed(1);
  const area = value => {
    const line = turns.map((turn, place) => x(place).toFixed(1) + ' ' + y(value(turn)));
    if (turns.length === 1) line.unshift('0 ' + y(value(turns[0])));
    return 'M0 ' + HEIGHT + 'L' + line.join('L') + 'L' + WIDTH + ' ' + HEIGHT + 'Z';
  };
  const cursor = svg('line', { class: 'cursor', y1: 0, y2: HEIGHT, 'vector-effect': 'non-scaling-stroke' });
  const picture = svg('svg', { viewBox: '0 0 ' + WIDTH + ' ' + HEIGHT, preserveAspectRatio: 'none', height: 96, role: 'img' },
    svg('title', {}, 'Tokens of the context at the end of each turn: shown, hidden, left'),
    svg('path', { class: 'area-left', d: area(turn => turn.recorded) }),
    svg('path', { class: 'area-freed', d: area(turn => turn.whole) }),
    svg('path', { class: 'area-shown', d: area(turn => turn.shown) }), cursor);
  const legend = el('div', 'legend');
  box.append(el('div', 'picture', picture, ...cuts()), axis(), legend);
  const pick = event => {
    const place = (event.clientX - picture.getBoundingClientRect().left) / picture.getBoundingClientRect().width;
    onPick(Math.max(0, Math.min(turns.length - 1, Math.round(place * (turns.length - 1)))));
  };
  picture.addEventListener('pointerdown', event => { picture.setPointerCapture(event.pointerId); pick(event); });
  picture.addEventListener('pointermove', event => { if (event.buttons & 1) pick(event); });
  return place => {
    const at = turns[place];
    cursor.setAttribute('x1', x(place));
    cursor.setAttribute('x2', x(place));
    const entry = (kind, label, tokens) => el('span', kind, el('i'), label + ' ' + brief(tokens));
    legend.replaceChildren(entry('shown', session.sent ? 'shown' : 'would be shown', at.shown), entry('freed', session.sent ? 'hidden' : 'would be hidden', at.whole - at.shown),
      entry('left', 'left the context', at.recorded - at.whole), el('span', '', 'of ' + brief(at.recorded) + ' tokens recorded'));
  };
}

// Marks that change a context as a whole, and their names.
const CUTS = { 'context replaced': 'compaction', rewound: 'rewind', forked: 'fork', 'host cleared': 'clearing', 'context rebased': 'rewrite', 'prompt set': 'model' };
const placeOfTurn = turn => { const place = turns.findIndex(other => other.turn >= turn); return place < 0 ? turns.length - 1 : place; };
const leftOf = place => (turns.length < 2 ? 100 : place * 100 / (turns.length - 1)) + '%';

// A line through the picture for each of them; a click goes there.
function cuts() {
  return marks.filter(mark => CUTS[mark.kind] && mark.kind !== 'prompt set').map(mark => {
    const cut = el('button', 'cut ' + CUTS[mark.kind]);
    cut.type = 'button';
    cut.title = CUTS[mark.kind] + ' in turn ' + mark.turn + ': ' + oneLine(mark.says, 100);
    cut.setAttribute('aria-label', cut.title);
    cut.style.left = leftOf(placeOfTurn(mark.turn));
    cut.addEventListener('click', () => { setTurn(placeOfTurn(mark.turn)); select(mark, true); });
    return cut;
  });
}

// Turns and times below the picture, as many as have room.
function axis() {
  const box = el('div', 'axis');
  const count = Math.min(turns.length, document.documentElement.clientWidth < 700 ? 3 : 7);
  for (let n = 0; n < count; n += 1) {
    const place = count < 2 ? 0 : Math.round(n * (turns.length - 1) / (count - 1));
    const turn = turns[place], before = turns[Math.max(0, place - 1)];
    const isNewDay = n === 0 || (turn.first !== null && before.first !== null && dateTime(turn.first).slice(0, 10) !== dateTime(turns[Math.round((n - 1) * (turns.length - 1) / (count - 1))].first || 0).slice(0, 10));
    const time = turn.first === null || !hasTimes() ? '' : ' ' + dateTime(turn.first).slice(isNewDay ? 5 : 11, 16);
    const tick = el('span', n === 0 ? 'begin' : n === count - 1 ? 'end' : '', 't' + turn.turn + time);
    tick.style.left = leftOf(place);
    box.append(tick);
  }
  return box;
}

// Members from the oldest down, each edge an arc from the older to the newer one.
function drawChain(chain, self, at) {
  const STEP = 44, MOST = 200;
  const members = chain.members.slice(0, MOST);
  const place = new Map(members.map((item, n) => [item.ix, n]));
  const box = el('div', 'chain');
  const y = n => n * STEP + STEP / 2;
  const picture = svg('svg', { height: members.length * STEP, viewBox: '0 0 58 ' + members.length * STEP, 'aria-hidden': 'true' });
  for (const edge of chain.edges) {
    const from = place.get(edge.old), to = place.get(edge.next);
    if (from === undefined || to === undefined) continue;
    const bulge = 46 - Math.min(40, 8 + Math.abs(to - from) * 8);
    const d = Math.abs(to - from) === 1 ? 'M46 ' + y(from) + 'L46 ' + y(to) : 'M46 ' + y(from) + 'C' + bulge + ' ' + y(from) + ' ' + bulge + ' ' + y(to) + ' 46 ' + y(to);
    picture.append(svg('path', { d, class: edge.released ? 'released' : '' }));
  }
  members.forEach((item, n) => picture.append(svg('circle', { cx: 46, cy: y(n), r: 5, class: isRead(stands(item, at)) ? 'current' : '' })));
  box.append(picture);
  for (const item of members) {
    const edge = item.newer.find(edge => edge.seq <= at && !edge.released) || item.newer.find(edge => edge.seq <= at);
    const it = stands(item, at);
    let why = standing(it) || 'current';
    if (edge) {
      const by = edge.next >= 0 ? items[edge.next].id : 'event #' + edge.seq;
      why = (edge.released ? 'shown again; was superseded by ' : 'superseded by ') + by + ' (' + edge.rule + ', turn ' + edge.turn + ')';
      if (standing(it)) why += ', ' + standing(it);
      const freed = freedBy(edge, at);
      if (freed) why += ', frees ' + brief(freed);
    }
    box.append(el('div', item === self ? 'link self' : 'link',
      el('div', '', jump(item), ' ', whatOf(item) + ' ', el('bdi', '', oneLine(about(item, at), 160))), el('div', 'why', why)));
  }
  if (chain.members.length > MOST) box.append(el('p', 'empty', plural(chain.members.length - MOST, 'more member') + ' not drawn'));
  return box;
}

const todoKind = status => ({ completed: 's-completed', in_progress: 's-in_progress', pending: 's-pending' }[status] || 's-other');

// Entries down, versions across; then the list as it was at a seq.
function drawTodos(box, at) {
  const versions = data.todos.versions, entries = data.todos.entries;
  box.replaceChildren();
  if (!versions.length) { box.append(el('p', 'empty', 'This session kept no todo list.')); return; }
  const now = last(versions, at);
  const CELL = Math.max(4, Math.min(22, Math.floor(900 / versions.length))), STEP = 18;
  const grid = svg('svg', { width: versions.length * CELL + 420, height: entries.length * STEP + 16, role: 'img' },
    svg('title', {}, 'Each column is a change of the list, each row an entry'));
  versions.forEach((version, n) => {
    const [seq, turn, rows] = version;
    for (const [entry, status] of rows) {
      grid.append(svg('rect', { x: n * CELL, y: entry * STEP, width: Math.max(2, CELL - 1), height: STEP - 3, class: todoKind(word(status)), opacity: seq <= at ? 1 : .25 },
        svg('title', {}, 'turn ' + turn + ': ' + word(status) + ': ' + oneLine(text(entries[entry]), 120))));
    }
    if (version === now) grid.append(svg('line', { class: 'cursor', x1: (n + 1) * CELL - .5, x2: (n + 1) * CELL - .5, y1: 0, y2: entries.length * STEP }));
  });
  grid.append(svg('text', { x: 0, y: entries.length * STEP + 12 }, plural(versions.length, 'version') + ', ' + plural(entries.length, 'entry').replace('entrys', 'entries')));
  entries.forEach((entry, n) => grid.append(svg('text', { x: versions.length * CELL + 8, y: n * STEP + 12 }, oneLine(text(entry), 60))));
  box.append(el('div', 'todo-grid', grid), el('h3', '', now ? 'The list at #' + now[0] + ', turn ' + now[1] : 'No list yet at this turn'));
  for (const [entry, status] of now ? now[2] : []) {
    const kind = word(status);
    const mark = { completed: '✓', in_progress: '▶', pending: '○' }[kind] || '✗';
    box.append(el('div', 'todo-line ' + todoKind(kind), el('span', 'state', mark + ' ' + kind.replace('_', ' ')), el('span', '', oneLine(text(entries[entry]), 400))));
  }
}
