// The token comes in the part of the address that no request has: into the form, and out of the address.
const token = location.hash.slice(1);
if (token) {
  history.replaceState(null, '', location.pathname + location.search);
  const form = document.getElementById('login');
  form.elements.token.value = token;
  form.submit();
}
