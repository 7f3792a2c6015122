// Rows that change while one looks: the page is asked for again, and what differs takes the place of what was there.
const SECONDS = 3;
async function refresh() {
  try {
    const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, cache: 'no-store' });
    if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const now = document.getElementById('main'), next = page.getElementById('main');
      if (next && now.innerHTML !== next.innerHTML && !now.contains(document.activeElement)) now.replaceWith(next);
      if (!page.body.hasAttribute('data-live')) return;
    }
  } catch { /* the server is away: later */ }
  setTimeout(refresh, SECONDS * 1000);
}
if (document.body.hasAttribute('data-live')) setTimeout(refresh, SECONDS * 1000);
