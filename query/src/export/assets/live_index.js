// Follows the store that serves this index: rows of sessions that grew are fetched anew, and filters and order stay.

const follower = { busy: false, again: false };
const address0 = location.pathname.replace(/\/$/, '');

function sayLive(says) {
  let badge = $('live');
  if (!badge) { badge = el('span', ''); badge.id = 'live'; badge.setAttribute('role', 'status'); $('title').before(badge); }
  badge.textContent = says;
  badge.className = says;
}

async function fetchNewer() {
  if (follower.busy) { follower.again = true; return; }
  follower.busy = true;
  try {
    const answer = await fetch(address0 + '/data', { cache: 'no-store' });
    if (answer.ok) { hold(await answer.json()); show(); }
    sayLive(answer.ok ? 'live' : 'lost');
  } catch { sayLive('lost'); }
  setTimeout(() => { follower.busy = false; if (follower.again) { follower.again = false; fetchNewer(); } }, 1000);
}

const changes = new EventSource(address0 + '/changes');
changes.addEventListener('open', () => sayLive('live'));
changes.addEventListener('error', () => sayLive('lost'));
changes.addEventListener('message', fetchNewer);

// The server searches all texts; the rows of the index say titles only.
const asking = { number: 0 };
function found(...children) {
  $('found').replaceChildren(...children);
  $('found').hidden = !children.length;
}

function foundIn(session) {
  const link = (item, says) => { const to = el('a', '', says); to.href = session.file + (item ? '#' + item.slice(1) : ''); return to; };
  const hits = session.hits.map(hit => el('p', '', link(hit.item, hit.item), ' t' + hit.turn + ' ' + oneLine(hit.what, 40) + ' ' + hit.seen + ' ', el('code', '', oneLine(hit.line, 240))));
  return [el('h2', '', link('', oneLine(session.title || session.id, 120)), ' ' + oneLine(session.host, 40)), ...hits];
}

async function searchTexts() {
  const words = $('search').value.trim();
  if (!words) { found(); return; }
  const number = asking.number += 1;
  found(el('p', '', 'searching all texts'));
  let says;
  try {
    const answer = await fetch(address0 + '/search?q=' + encodeURIComponent(words), { cache: 'no-store' });
    if (!answer.ok) throw new Error(answer.status === 400 ? oneLine(await answer.text(), 120) : 'the server did not answer');
    const all = await answer.json();
    const count = all.sessions.reduce((sum, session) => sum + session.hits.length, 0);
    says = [el('p', '', (all.more ? 'the first ' : '') + plural(count, 'text') + ' in ' + plural(all.sessions.length, 'session')), ...all.sessions.flatMap(foundIn)];
  } catch (error) { says = [el('p', '', error instanceof TypeError ? 'the server did not answer' : error.message)]; }
  if (number === asking.number) found(...says);
}

const texts = el('button', '', 'Search all texts');
texts.id = 'texts';
texts.type = 'button';
texts.addEventListener('click', searchTexts);
$('search').after(texts);
$('search').placeholder = 'Title, project, model, id; Enter: all texts  /';
$('search').addEventListener('keydown', event => { if (event.key === 'Enter') searchTexts(); });
$('search').addEventListener('input', () => { asking.number += 1; found(); });
