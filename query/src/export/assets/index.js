// The index over sessions: filters, totals, an order by any column.

const $ = id => document.getElementById(id);
const FIELDS = ['id', 'host', 'title', 'project', 'began', 'ended', 'turns', 'calls', 'recorded', 'shown', 'superseded', 'cost', 'duration', 'models', 'series', 'file', 'below'];
let data, rows;
function hold(newer) {
  data = newer;
  rows = data.rows.map(row => Object.fromEntries(FIELDS.map((name, n) => [name, row[n]])));
  for (const row of rows) row.text = [row.title, row.id, row.host, row.project, row.models.join(' ')].join('\n').toLowerCase();
}
hold(JSON.parse($('data').textContent));
const day = micros => micros === null ? '' : new Date(micros / 1000).toISOString().slice(0, 16).replace('T', ' ') + 'Z';
const lastPart = path => path.split('/').filter(Boolean).pop() || '';

// Name, heading, text of a cell, whether it is a number, value that orders the rows.
const COLUMNS = [
  ['title', 'title', row => oneLine(row.title, 160), false, row => row.title.toLowerCase()],
  ['ended', 'last active', row => day(row.ended), false, row => row.ended || 0],
  ['host', 'host', row => oneLine(row.host, 40), false, row => row.host],
  ['project', 'project', row => oneLine(lastPart(row.project), 60), false, row => lastPart(row.project)],
  ['model', 'models', row => oneLine(row.models.join(', '), 80), false, row => row.models.join()],
  ['turns', 'turns', row => row.turns, true, row => row.turns],
  ['duration', 'duration', row => row.duration === null ? '' : lasted(row.duration), true, row => row.duration || 0],
  ['recorded', 'tokens', row => brief(row.recorded), true, row => row.recorded],
  ['context', 'shown', row => brief(row.shown), true, row => row.shown],
  ['superseded', 'superseded', row => row.superseded, true, row => row.superseded],
  ['cost', 'cost', row => dollars(row.cost), true, row => row.cost || 0],
];
const now = { by: 'ended', down: true };

function spark(series) {
  const picture = svg('svg', { class: 'spark', viewBox: '0 0 92 22', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  const most = Math.max(1, ...series);
  const x = n => series.length < 2 ? 92 : n * 92 / (series.length - 1);
  const line = series.map((value, n) => x(n).toFixed(1) + ' ' + (22 - value * 20 / most).toFixed(1));
  if (line.length === 1) line.unshift('0 ' + line[0].split(' ')[1]);
  if (line.length) picture.append(svg('path', { d: 'M0 22L' + line.join('L') + 'L92 22Z' }));
  return picture;
}

function rowOf(row) {
  const line = el('tr', row.below ? 'below' : '');
  for (const [name, , shows, isNumber] of COLUMNS) {
    const cell = el('td', name + (isNumber ? ' number' : ''));
    if (name === 'title' && row.file) {
      const link = el('a', '', shows(row) || row.id);
      link.href = row.file;
      cell.append(link);
    } else cell.append(String(shows(row) || (name === 'title' ? row.id : '')));
    if (name === 'project') cell.title = visible(row.project);
    if (name === 'title') cell.title = row.id;
    line.append(cell);
  }
  line.append(el('td', '', spark(row.series)));
  return line;
}

function wanted() {
  const words = $('search').value.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter(row => (!row.below || $('subagents').checked) && (!$('host').value || row.host === $('host').value)
    && (!$('project').value || row.project === $('project').value) && words.every(word => row.text.includes(word)));
}

function show() {
  const found = wanted();
  const order = COLUMNS.find(([name]) => name === now.by)[4];
  const sign = now.down ? -1 : 1;
  found.sort((a, b) => { const x = order(a), y = order(b); return x < y ? -sign : x > y ? sign : 0; });
  document.querySelector('tbody').replaceChildren(...found.map(rowOf));
  for (const head of document.querySelectorAll('th[data-by]')) {
    if (head.dataset.by === now.by) head.setAttribute('aria-sort', now.down ? 'descending' : 'ascending'); else head.removeAttribute('aria-sort');
  }
  const sum = of => found.reduce((total, row) => total + (of(row) || 0), 0);
  // The cost of a session includes its subagents.
  const costs = found.filter(row => !row.below && row.cost !== null).reduce((total, row) => total + row.cost, 0);
  const totals = { title: plural(found.length, 'session'), turns: sum(row => row.turns), duration: lasted(sum(row => row.duration)), recorded: brief(sum(row => row.recorded)),
    context: brief(sum(row => row.shown)), superseded: sum(row => row.superseded), cost: dollars(costs) };
  document.querySelector('tfoot').replaceChildren(el('tr', '', ...COLUMNS.map(([name, , , isNumber]) => el('td', name + (isNumber ? ' number' : ''), String(totals[name] ?? ''))), el('td', '')));
  $('count').textContent = found.length === rows.length ? '' : found.length + ' of ' + plural(rows.length, 'session');
}

function choices(select, all, label) {
  const counts = new Map();
  for (const value of all.filter(Boolean)) counts.set(value, (counts.get(value) || 0) + 1);
  const option = (value, says) => { const it = el('option', '', says); it.value = value; return it; };
  select.append(option('', label), ...[...counts].sort((a, b) => b[1] - a[1]).map(([value, count]) => option(value, oneLine(value, 60) + ' (' + count + ')')));
  select.hidden = counts.size < 2;
  select.addEventListener('change', show);
}

const heads = COLUMNS.map(([name, heading, , isNumber]) => {
  const button = el('button', '', heading);
  button.type = 'button';
  button.addEventListener('click', () => { now.down = now.by === name ? !now.down : isNumber || name === 'ended'; now.by = name; show(); });
  const head = el('th', name + (isNumber ? ' number' : ''), button);
  head.dataset.by = name;
  return head;
});
document.querySelector('thead').append(el('tr', '', ...heads, el('th', '', 'context')));
choices($('host'), rows.map(row => row.host), 'all hosts');
choices($('project'), rows.map(row => row.project), 'all projects');
$('facts').textContent = oneLine(data.program + ' · prices of ' + data.prices, 200);
let typed = 0;
$('search').addEventListener('input', () => { clearTimeout(typed); typed = setTimeout(show, 80); });
$('subagents').addEventListener('change', show);
document.addEventListener('keydown', event => {
  if (event.key === '/' && event.target.id !== 'search') { $('search').focus(); event.preventDefault(); }
});
show();
