// The conversation as one would read it: a part for each turn, made when it comes near to the part in sight.

const TEXT_MOST = 20000, LINES_SHOWN = 12, CHARACTERS_SHOWN = 2400;
// Turns that a browser lays out together.
const CHUNK = 20;

class Talk {
  constructor(box, opened) {
    this.box = box;
    this.opened = opened;
    this.parts = [];
    this.chunks = [];
    this.all = false;
    // The part that is being brought into sight.
    this.aimed = null;
    box.addEventListener('scroll', () => this.fill(), { passive: true });
    for (const moved of ['wheel', 'touchmove', 'pointerdown', 'keydown']) box.addEventListener(moved, () => { this.aimed = null; }, { passive: true });
    new ResizeObserver(() => this.fill()).observe(box);
  }

  // Shows the turns up to a seq; of those only rows that a pattern or a kind chose, if there is one.
  set(at, rows, pattern, isNarrow) {
    this.rest();
    this.at = at;
    this.pattern = pattern;
    this.wanted = pattern || isNarrow ? new Set(rows) : null;
    this.started = startedBy(now.session);
    if (this.of !== data) {
      this.of = data;
      this.parts = turns.map(turn => ({ turn, element: el('section', 'part') }));
      this.chunks = [];
      for (let n = 0; n < this.parts.length; n += CHUNK) {
        const parts = this.parts.slice(n, n + CHUNK);
        this.chunks.push({ parts, element: el('div', 'chunk', ...parts.map(part => part.element)) });
      }
      this.box.replaceChildren(...this.chunks.map(chunk => chunk.element));
      this.box.scrollTop = 0;
    }
    for (const part of this.parts) {
      part.rows = part.turn.items.filter(row => row.seq <= at && (!this.wanted || this.wanted.has(row)));
      part.element.hidden = !part.rows.length;
      if (part.isFull) { part.isFull = false; part.element.replaceChildren(); }
    }
    for (const chunk of this.chunks) chunk.element.hidden = chunk.parts.every(part => part.element.hidden);
    this.fill();
  }

  // Makes the parts in sight, and some around them. The style guesses the heights of the others.
  fill() {
    if (this.box.hidden) return;
    if (this.all) { this.parts.filter(part => !part.element.hidden).forEach(part => this.make(part)); return; }
    // Places are those in sight: browsers count offsets from different elements where parts are laid out apart.
    const sight = this.box.getBoundingClientRect(), top = sight.top - 800, bottom = sight.top + this.box.clientHeight + 800;
    const isAbove = ({ element }) => element.getBoundingClientRect().bottom < top;
    const isBelow = ({ element }) => element.getBoundingClientRect().top > bottom;
    const chunks = this.chunks.filter(chunk => !chunk.element.hidden);
    let low = 0, high = chunks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isAbove(chunks[middle])) low = middle + 1; else high = middle;
    }
    for (let n = low; n < chunks.length && !isBelow(chunks[n]); n += 1) {
      for (const part of chunks[n].parts) {
        if (part.element.hidden || part.isFull || isAbove(part)) continue;
        if (isBelow(part)) return;
        this.make(part);
      }
    }
  }

  make(part) {
    if (part.isFull) return;
    part.isFull = true;
    part.element.replaceChildren(headingOf(part.turn, this.at), ...part.rows.map(row => this.block(row)));
    highlight(part.element, this.pattern);
  }

  // Brings an element of a part into sight. Browsers guess the heights of parts that they have not drawn yet: those around it are
  // laid out at once, so that the place is right however late the browser draws.
  aim(part, element, block) {
    const place = this.chunks.findIndex(chunk => chunk.parts.includes(part));
    const chunks = this.chunks.slice(Math.max(0, place - 1), place + 2);
    for (let round = 0, last = NaN; round < 8; round += 1) {
      for (const chunk of chunks) for (const { element } of [chunk, ...chunk.parts.filter(part => part.isFull)]) element.classList.add('laid');
      element.scrollIntoView({ block });
      this.fill();
      const top = element.getBoundingClientRect().top;
      if (top === last) return;
      last = top;
    }
  }

  // From now on the browser lays out again only the parts in sight. It remembers the heights that it has drawn.
  rest() {
    this.aimed = null;
    for (const element of this.box.querySelectorAll('.laid')) element.classList.remove('laid');
  }

  // Keeps an element of a part in sight while the browser draws, unless the reader moves on.
  // A busy machine draws late: the place counts once it stood still for some frames.
  keep(part, element, block) {
    const aimed = { part, element };
    this.aimed = aimed;
    this.aim(part, element, block);
    let frames = 0, still = 0, last = NaN;
    const again = () => {
      if (this.aimed !== aimed) { if (!this.aimed) this.rest(); return; }
      if (this.box.hidden) { this.rest(); return; }
      this.aim(part, element, block);
      const top = element.getBoundingClientRect().top;
      still = top === last ? still + 1 : 0;
      last = top;
      frames += 1;
      if (still < 3 && frames < 60) requestAnimationFrame(again); else this.rest();
    };
    requestAnimationFrame(again);
  }

  // Brings a row into sight, and marks it.
  reveal(row) {
    const part = this.parts.find(part => part.rows && part.rows.includes(row));
    if (this.picked) this.picked.classList.remove('picked');
    if (!part) return;
    this.make(part);
    const block = [...part.element.children].find(child => child.dataset.id === row.id && !child.dataset.mark === !row.mark);
    if (!block) return;
    this.keep(part, block, 'nearest');
    block.classList.add('picked');
    this.picked = block;
  }

  // Brings a turn into sight.
  revealTurn(turn) {
    const part = this.parts.find(part => part.turn === turn);
    if (part && !part.element.hidden) this.keep(part, part.element, 'start');
  }

  block(row) {
    if (row.mark) {
      const block = el('div', 'said mark', el('span', 'who', visible(row.kind)), ' ', el('bdi', '', visible(row.says)));
      block.dataset.id = row.id;
      block.dataset.mark = '1';
      return block;
    }
    const it = stands(row, this.at);
    const isCall = row.kind === 'call';
    const block = el('article', 'said ' + (isCall ? 'tool' : row.kind === 'reasoning' || row.kind === 'injected' ? 'aside' : row.role));
    block.dataset.id = row.id;
    if (it && !isRead(it)) block.classList.add('unread');
    if (it && it.status === 'failed') block.classList.add('failed');
    const head = el('header', '', el('span', 'who', oneLine(whatOf(row), 40)), ' ', el('bdi', 'about', isCall ? oneLine(about(row, this.at), 160) : ''), el('span', 'when', clock(row.seconds)), jump(row));
    block.append(head);
    const why = it ? stale(row, this.at) : [];
    if (why.length) block.classList.add('stale');
    if (it && standing(it)) {
      // The border alone shows that an item left with a compaction: most items of a long session did.
      if (why.length || it.cause !== 'left') why.push((why.length ? ', ' : '') + standing(it));
      else head.title = standing(it);
    }
    if (why.length) block.append(el('p', 'why', ...why));
    if (it && it.outputText >= 0) block.append(el('p', 'why', session.sent ? 'the model sees: ' : 'acpdb would send: ', el('bdi', '', oneLine(text(it.outputText), 300))));
    const input = isCall ? inputOf(row, this.at) : -1;
    if (input >= 0) block.append(this.cut(input, () => parametersOf(text(input))));
    const prose = !isCall && row.kind !== 'result';
    const contents = contentOf(row, this.at).map(place => this.cut(place, () => textBlock(place, prose)));
    if (row.kind === 'reasoning' || row.kind === 'injected') {
      const fold = el('details', '', el('summary', '', oneLine(about(row, this.at), 140)), ...contents);
      fold.open = Boolean(this.pattern);
      block.append(fold);
    } else if (isCall && contents.length) block.append(this.result(row, contents));
    else block.append(...contents);
    for (const number of this.started.get(row.call || null) || []) block.append(this.way(number));
    return block;
  }

  // A long result is folded, with its first lines.
  result(row, contents) {
    const said = contentOf(row, this.at).map(text).join('\n');
    const lines = said.split('\n', 2000);
    const isLong = lines.length > LINES_SHOWN || said.length > CHARACTERS_SHOWN;
    if (!isLong || this.pattern) return el('div', 'result', ...contents);
    const fold = el('details', 'result', el('summary', '', lines.length > LINES_SHOWN ? plural(lines.length, 'line') + (lines.length === 2000 ? ' and more' : '') : brief(said.length) + ' characters'), ...contents);
    return el('div', '', codeBlock(lines.slice(0, 4).join('\n').slice(0, CHARACTERS_SHOWN / 4), 'first'), fold);
  }

  // A text that is very long is read in the detail.
  cut(place, make) {
    if (text(place).length <= TEXT_MOST) return make();
    return el('div', '', codeBlock(text(place).slice(0, 2000)), el('p', 'why', brief(text(place).length) + ' characters; open the item to read all'));
  }

  way(number) {
    const of = page.sessions[number];
    const way = el('button', 'way', 'subagent: ' + oneLine(of.session.title || of.session.id, 100) + ' · ' + plural(of.turns.length, 'turn') + ' · ' + plural(of.items.length, 'item'));
    way.type = 'button';
    way.addEventListener('click', () => this.opened(number));
    return way;
  }
}

// The figures of a turn, in a line.
function figuresOf(turn) {
  const said = [];
  if (turn.first !== null) said.push(dateTime(turn.first));
  if (turn.first !== null && turn.last > turn.first) said.push(lasted(turn.last - turn.first));
  if (turn.calls) said.push(plural(turn.calls, 'call'));
  said.push('context ' + brief(turn.shown));
  if (turn.requests) said.push('in ' + brief(turn.input + turn.cacheRead + turn.cacheWrite), 'out ' + brief(turn.output));
  if (turn.cost !== null) said.push(dollars(turn.cost));
  return said;
}

// A turn of which only the prompt is there yet has none.
function headingOf(turn, at) {
  const figures = turn.items.some(row => !isPrompt(row) && row.seq <= at) ? figuresOf(turn).join(' · ') : '';
  return el('h2', 'turn', el('span', '', 'Turn ' + turn.turn), el('span', 'figures', figures));
}
