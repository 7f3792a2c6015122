// Pages that change while one looks. The server says when (server-sent events); then the page is asked for again, and what differs takes the place
// of what was there, unless somebody is at work in it. A log comes by itself.
const LOG_MOST = 400000; // characters

async function refresh() {
  try {
    const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, cache: 'no-store' });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const now = document.getElementById('main'), next = page.getElementById('main');
    const busy = now.contains(document.activeElement) && document.activeElement.matches('input, pre');
    const log = now.querySelector('[data-log]'), same = next && next.querySelector('[data-log]');
    if (log && same) same.replaceWith(log); // what was written so far stays
    if (next && !busy) now.replaceWith(next);
    follow();
  } catch { /* the server is away: its next word is waited for */ }
}

let late = null;
function soon() {
  late ??= setTimeout(() => { late = null; refresh(); }, 300);
}

let following = null;
function follow() {
  const log = document.querySelector('[data-log]');
  if (!log || following) return;
  following = new EventSource(`/a/${encodeURIComponent(log.dataset.log)}/events`);
  following.addEventListener('open', () => { log.textContent = ''; });
  following.addEventListener('log', (event) => {
    const low = log.scrollHeight - log.scrollTop - log.clientHeight < 8;
    log.append(JSON.parse(event.data).text);
    if (log.textContent.length > LOG_MOST) log.textContent = log.textContent.slice(-LOG_MOST / 2);
    if (low) log.scrollTop = log.scrollHeight;
  });
  following.addEventListener('end', () => { following.close(); following = null; soon(); });
}

if (document.body.hasAttribute('data-live')) {
  const events = new EventSource('/events');
  events.addEventListener('change', soon);
  events.addEventListener('error', soon);
  follow();
}
