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
