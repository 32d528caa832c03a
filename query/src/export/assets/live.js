// Follows the store that serves this page: when the session grows, the page fetches its data anew and keeps its place.

const follower = { seq: session.at, busy: false, again: false, failed: false };
const address0 = location.pathname;

function sayLive(says) {
  let badge = $('live');
  if (!badge) { badge = el('span', ''); badge.id = 'live'; badge.setAttribute('role', 'status'); $('title').before(badge); }
  badge.textContent = says;
  badge.className = says;
}

// Replaces the shown data with newer data.
function renew(texts, data) {
  const id = page.sessions[now.session].session.id;
  const atEnd = now.turn >= turns.length - 1;
  const box = now.tab === 'talk' ? $('talk') : $('list');
  const top = box.scrollTop, below = box.scrollHeight - box.clientHeight - top < 40;
  const picked = now.selected && now.selected.points ? now.selected.id : null;
  hold(texts, data);
  now.session = Math.max(0, page.sessions.findIndex(of => of.session.id === id));
  load(now.session);
  if (atEnd) now.turn = Math.max(0, turns.length - 1);
  now.selected = picked && byId.get(picked) || null;
  surround();
  show();
  if (now.selected && !$('detail').hidden) select(now.selected);
  else if (!now.selected) $('detail').hidden = true;
  // Heights are known only once rows exist, so the end is looked for again.
  for (let round = 0; round < 3; round += 1) { box.scrollTop = below && atEnd ? box.scrollHeight : top; if (now.tab === 'talk') talk.fill(); }
}

async function fetchNewer() {
  if (follower.busy) { follower.again = true; return; }
  follower.busy = true;
  try {
    const answer = await fetch(address0 + '/data?after=' + follower.seq, { cache: 'no-store' });
    if (answer.status === 200) {
      const newer = await answer.json();
      follower.seq = newer.data.sessions[0].session.at;
      renew(newer.texts, newer.data);
    }
    sayLive(answer.ok ? 'live' : 'lost');
  } catch { sayLive('lost'); }
  // A long session takes long to fetch; there is a pause as long before the next time.
  setTimeout(() => { follower.busy = false; if (follower.again) { follower.again = false; fetchNewer(); } }, 400);
}

const changes = new EventSource('../changes');
changes.addEventListener('open', () => sayLive('live'));
changes.addEventListener('error', () => sayLive('lost'));
changes.addEventListener('message', fetchNewer);
